"""Finding runs again: the store, what is known of past ones, notes, archives, and what differs between runs.

Imports the shared modules and the packages before it, up to `judging`; it starts and ends nothing.
"""
