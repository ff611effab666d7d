"""What stands on PYTHONPATH of a command: one package and its entry point, which torch itself loads when it is imported.

It runs in whatever Python and torch the command has: nothing here imports tuilab, or more than the standard library.
"""
