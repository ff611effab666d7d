"""The CPU time of a command: of its steps, and of the processes below it."""
