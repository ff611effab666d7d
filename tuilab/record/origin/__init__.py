"""Describes where a run comes from that does not run here: an archive, or another machine."""
