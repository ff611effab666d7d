"""The looks of the screens: themes, styles, marks of verdicts, times, lessons and code.

Imports the packages before `tui`, and no other part of it.
"""
