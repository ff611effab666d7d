"""Train a model with sixteen large experts, of which each step uses one.

Planted slowness: `zero_grad(set_to_none=False)` fills the gradients of all experts with zeros, and the
optimizer then subtracts these zeros from all weights.
Remedy: `zero_grad()` (treatment `set-to-none`): an expert without a gradient is skipped.
"""

import argparse

import torch
from torch import nn

EXPERTS = 16
WIDTH = 768

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    expert = model[step % EXPERTS]
    inputs = torch.randn(16, WIDTH)
    loss = nn.functional.mse_loss(expert(inputs), inputs)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
