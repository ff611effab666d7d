"""What lessons would else write by hand: complaints of a call, sweeps and limits, busy neighbours."""
