"""Subcommands that run a command of the user: exec, ab and tune."""
