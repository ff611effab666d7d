"""Train 400 small parameter tensors with an Adam that updates them one by one.

Planted slowness: on a CPU, Adam calls about ten operators for each tensor, 4,000 in a step.
Remedy: `Adam(..., fused=True)` (treatment `fused`), which calls one.
"""

import argparse

import torch
from torch import nn

TENSORS = 400
SIZE = 32


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

torch.set_num_threads(1)
torch.manual_seed(0)
model = Scales()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
inputs = torch.randn(64, TENSORS)
targets = torch.randn(64, SIZE)

for step in range(args.steps):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
