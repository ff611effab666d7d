"""The state of the screens: the session, the forms, and the live, replayed and listed runs.

Imports the packages before `tui`, and `looks`; no widget and no screen.
"""
