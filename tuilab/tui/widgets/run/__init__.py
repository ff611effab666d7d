"""The parts of the Run screen.

Imports `looks`, `state` and the widgets that all screens share.
"""
