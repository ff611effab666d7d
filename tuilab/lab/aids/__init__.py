"""What lessons would else write by hand: complaints, sweeps and limits, ranks, busy neighbours, how a process begins."""
