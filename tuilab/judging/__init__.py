"""Compute verdicts from measurements, and verify both.

Imports the packages that come before it: `record`, `probes`, `catalogue`.
"""
