"""Scalars of a step that are still on a GPU when they are logged."""
