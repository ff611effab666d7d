"""Draw on the terminal, read its keys, and restore it when the screens close.

This package imports the shared modules, and no other part of `tui`.
"""
