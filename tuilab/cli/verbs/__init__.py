"""One file a verb of the command line, loaded when it is asked for.

Imports what `cli` may import, and `cli` itself.
"""
