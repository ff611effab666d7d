"""Reports about runs: their pages, charts and advice; `formats` has a file for each format.

Imports the shared modules and the packages before it, but neither `lab` nor `engine`.
"""
