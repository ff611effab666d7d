"""How each kind of record changes the summary of a run: one file a family of kinds."""
