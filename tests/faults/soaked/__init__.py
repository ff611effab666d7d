"""What the soak is made of: the place, the faults, those who look on, and what must hold afterwards."""
