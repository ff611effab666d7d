"""The parts of screens, one in each file. Parts of a single screen are in its folder.

Imports `looks`, `state` and the packages before `tui`; no screen.
"""
