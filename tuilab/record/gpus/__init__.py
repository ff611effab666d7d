"""Finds the GPUs that a run used, by its records and by the names of torch and NVML."""
