"""Run the user's own commands: unchanged, watched from inside and outside, and raced.

This package imports the shared modules and the packages up to `lab`. It imports only modules that
need no torch, because a command brings its own torch.
"""
