"""What reports say about runs: their pages, charts and advice; the formats stand in `formats`, one file each.

Imports the shared modules and the packages before it, but neither `lab` nor `engine`.
"""
