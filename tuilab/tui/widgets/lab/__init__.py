"""The parts of the Lab screen.

Imports `looks`, `state` and the widgets that all screens share.
"""
