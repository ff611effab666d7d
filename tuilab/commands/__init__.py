"""The user's own commands under the lab: started as they are, watched from inside and outside, and raced against each other.

Imports the shared modules and the packages up to `lab`, of which only what needs no torch: a command brings its own.
"""
