"""Runs held against each other: what was asked, what came of it, and since when."""
