"""Runs on other machines through Ray: the same supervisor carries them out, and we follow them."""
