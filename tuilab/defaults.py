"""Values that tuilab uses unless an option says otherwise, where several packages need them."""

REPEATS = 6  # fresh processes for a claim about time: the fewest that give a confidence interval
