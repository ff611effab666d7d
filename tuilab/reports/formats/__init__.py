"""One file a format of a report, with the templates and the schema that it needs.

Imports what `reports` may import, and `reports` itself.
"""
