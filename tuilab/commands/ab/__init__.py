"""A race between the arms of a command: what is measured of each, in which order, and what that can see."""
