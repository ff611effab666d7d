"""Stand-ins for what this machine does not have."""
