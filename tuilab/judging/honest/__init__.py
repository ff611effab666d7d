"""Whether the record of a run was edited."""
