"""Find and compare recorded runs: the store, the index, the queue, notes, archives, differences.

Imports the shared modules and the packages before it, up to `judging`. It neither starts nor stops
runs.
"""
