"""Advice on settings: the values that won on a machine, valid while the machine is the same."""
