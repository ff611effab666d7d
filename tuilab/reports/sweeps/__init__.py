"""The results of a sweep, from the runs of all its points."""
