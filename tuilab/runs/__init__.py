"""Finding runs again: the store, what is known of past ones, notes, archives, and what differs between runs.

Imports the ground and the rooms before it, up to `judging`; it starts and ends nothing.
"""
