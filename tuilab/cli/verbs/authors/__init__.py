"""The verbs for who writes scenarios."""
