"""Measure the CPU time of a command: of its steps, and of its descendants."""
