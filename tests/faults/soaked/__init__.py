"""The parts of the soak test: its place, the faults, the long-lived processes and the checks."""
