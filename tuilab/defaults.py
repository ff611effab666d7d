"""Defaults and limits of options that several packages need."""

REPEATS = 6  # fresh processes for a claim about time: the fewest that give a confidence interval
MAX_REPEATS = 1000
