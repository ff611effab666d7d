"""The subcommands, one module each; a module is loaded only when its subcommand is used.

They may import all that `cli` may import, and `cli` itself.
"""
