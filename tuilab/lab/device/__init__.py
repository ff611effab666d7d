"""What the lab asks of a device; nothing else in tuilab asks `torch.cuda` anything.

`Cpu` has finished its work when a call returns. `Cuda` queues the work and finishes it later.
"""
