"""The parts of the History screen.

Imports `looks`, `state` and the widgets that all screens share.
"""
