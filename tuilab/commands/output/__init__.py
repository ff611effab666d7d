"""What a command prints: passed on as it comes, and looked through for numbers."""
