"""What is recorded of a scenario that failed, and what its author is told to do about it."""
