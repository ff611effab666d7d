"""What scenario files say, read without importing them: lesson, form, claims, and what is missing.

Imports the shared modules, `record` and `probes`.
"""
