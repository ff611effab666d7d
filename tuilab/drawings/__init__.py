"""Charts and pictures for the screen, drawn by pure functions.

They take data and return rows of characters with the names of their roles. The package imports only
the shared modules and `record`, and no library of screens.
"""
