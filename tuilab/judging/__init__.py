"""From measurements to verdicts, and the check of both.

Imports the ground and the rooms before it: `record`, `probes`, `catalogue`.
"""
