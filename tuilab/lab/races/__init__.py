"""How arms are timed against each other, and what disturbs them meanwhile."""
