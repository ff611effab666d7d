"""The command line: its subcommands, their options, and the one place where errors are caught.

It is the last package and may import all others.
"""
