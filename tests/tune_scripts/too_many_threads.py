"""Train small matrices with far more threads than cores.

Planted slowness: 32 threads have to meet after each small operator, on few cores.
Remedy: `torch.set_num_threads(1)` (treatment `threads`).
"""

import argparse

import torch
from torch import nn

torch.set_num_threads(32)

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    inputs = torch.randn(256, 256)
    labels = torch.randint(10, (256,))
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
