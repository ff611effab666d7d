"""The subcommands for authors of scenarios."""
