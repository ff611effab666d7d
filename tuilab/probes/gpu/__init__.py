"""The GPUs of this box: what NVML, the files of the driver and the rules of CUDA tell of them."""
