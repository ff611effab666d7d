"""The formats that a run's summary is rendered in, one file each."""
