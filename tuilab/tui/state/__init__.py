"""What the screens know: the session, the form, the runs that are followed, played or listed.

Imports the packages before `tui`, and `looks`; no widget and no screen.
"""
