"""What the points of a sweep tell together."""
