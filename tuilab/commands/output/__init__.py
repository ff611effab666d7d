"""Pass on what a command prints as it comes, and search it for numbers."""
