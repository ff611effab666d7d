"""The parts of the Compare screen.

Imports `looks`, `state` and the widgets that all screens share.
"""
