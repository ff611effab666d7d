"""Train on two ranks that exchange each gradient by itself. Start it with torchrun.

Planted slowness: `bucket_cap_mb=0.001` makes a message for nearly each of 200 small gradients.
Remedy: `bucket_cap_mb=25`, the default (treatment `ddp-bucket`), which makes one or two messages.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TENSORS = 200
SIZE = 512


class Scales(nn.Module):
    """A model that is cheap to compute, with many small parameters."""

    def __init__(self):
        super().__init__()
        tensors = [torch.randn(SIZE) for _ in range(TENSORS)]
        self.scales = nn.ParameterList(nn.Parameter(tensor) for tensor in tensors)

    def forward(self, inputs):
        return inputs @ torch.stack(list(self.scales))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
model = DistributedDataParallel(Scales(), bucket_cap_mb=0.001)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())

for step in range(args.steps):
    inputs = torch.randn(8, TENSORS)
    targets = torch.randn(8, SIZE)
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0 and dist.get_rank() == 0:
        print(f"step {step} loss {loss.item():.4f}")

dist.destroy_process_group()
