"""Holds the records of a run: their kinds, their files, and the summary folded from them.

Imports only the shared modules: errors, text, storage, scrub and the like.
"""
