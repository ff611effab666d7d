"""Which GPUs a run used, as its records tell: the names that torch and NVML have for one, and those to show."""
