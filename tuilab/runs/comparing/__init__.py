"""Compare runs: their settings, their results, and when a result changed."""
