"""Measure what tuilab costs, next to comparable programs (peers)."""
