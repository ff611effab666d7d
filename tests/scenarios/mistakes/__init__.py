"""Mistakes in copies of the lessons, by topic: each refutes just the claims that tell of it."""
