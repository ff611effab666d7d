"""Runs on other boxes, through Ray: placed there, carried out by the same supervisor, and followed from here."""
