"""One file a part of a screen; those of one screen alone stand in its folder.

Imports `looks`, `state` and the packages before `tui`; no screen.
"""
