"""Which run another one is held against: the baseline of its scenario, or one before it."""
