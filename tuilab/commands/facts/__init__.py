"""Facts about a watched process that are no steps: compiled graphs, and who holds its memory."""
