"""Time the arms of a command against each other.

The modules define what is measured of each arm, in which order the arms run, and how small a
difference can be detected.
"""
