"""Provide the folder that is on the PYTHONPATH of a command: one package and its entry point.

Torch itself loads the entry point when it is imported. The package runs in whatever Python and
torch the command has. So nothing here imports tuilab, or anything but the standard library.
"""
