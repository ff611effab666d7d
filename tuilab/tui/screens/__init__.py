"""One file a screen, and what all have in `page`.

Imports the widgets and everything below them.
"""
