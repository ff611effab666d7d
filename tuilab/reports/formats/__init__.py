"""The formats of a report: a module for each, with the templates that it needs.

They may import whatever `reports` may import, and `reports` itself.
"""
