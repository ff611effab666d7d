"""The subcommands for runs that are shared with another machine."""
