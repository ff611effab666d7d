"""Which device a scenario gets."""
