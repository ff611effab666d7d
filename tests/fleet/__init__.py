"""Runs on the nodes of a real Ray cluster: three of them on this box, with made-up GPUs."""
