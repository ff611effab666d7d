"""The other runs next to the shown run: which are running, and whose curves are overlaid.

Imports the packages before `tui`, and the modules of `state`; no widget and no screen.
"""
