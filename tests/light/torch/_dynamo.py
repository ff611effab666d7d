"""What an optimizer of the real torch loads in its first step."""
