"""Read the facts about GPUs from NVML, from files of the driver, and by the rules of CUDA."""
