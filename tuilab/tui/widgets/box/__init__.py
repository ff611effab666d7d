"""The parts of the Box screen.

Imports `looks`, `state` and the widgets that all screens share.
"""
