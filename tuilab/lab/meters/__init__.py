"""Exact numbers, the same on every machine: bytes, operators, operations and nodes of the graph."""
