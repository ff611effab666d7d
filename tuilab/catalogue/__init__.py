"""What scenario files say, read without importing them: lesson, form, claims, and what is missing.

Imports the ground, `record` and `probes`.
"""
