"""Changes the summary of a run by each kind of record; one file for each family of kinds."""
