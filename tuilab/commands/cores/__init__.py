"""Which core time the processes of a command had, and which they waited for."""
