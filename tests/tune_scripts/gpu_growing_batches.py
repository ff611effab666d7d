"""Train on a GPU with batches that become larger with each step, as in a curriculum of lengths.

Planted slowness: no cached block is large enough for the next step. So the allocator asks the driver
for new ones in each step, and gives the old ones back when memory is full, while the GPU is idle.
Remedy: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (treatment `expandable-segments`).
"""

import argparse

import torch
from torch import nn

WIDTH = 256


class Scaling(nn.Module):
    """A model with few parameters and large results between its operators."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(WIDTH))
        self.second = nn.Parameter(torch.randn(WIDTH))

    def forward(self, inputs):
        return torch.tanh(inputs * self.first) * self.second


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda")
model = Scaling().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(args.steps):
    rows = 1000 + 32 * (step % 90)  # more would not fit into the memory
    inputs = torch.randn(rows, WIDTH, device=device)
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
