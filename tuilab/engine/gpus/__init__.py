"""What the sampler learns of GPUs while a run goes on."""
