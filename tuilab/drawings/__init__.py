"""Charts and pictures for the screen, drawn by pure functions: data in, rows of characters with the names of styles out.

Imports the shared modules and `record` alone, and no library of screens.
"""
