"""What the screens know of other runs beside the one that is shown: which go on, and whose curves lie behind.

Imports the packages before `tui`, and the modules of `state`; no widget and no screen.
"""
