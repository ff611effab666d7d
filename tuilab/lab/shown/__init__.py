"""What a scenario shows beside numbers."""
