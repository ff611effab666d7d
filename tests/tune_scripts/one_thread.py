"""Train large matrices with one thread.

Planted slowness: all products of matrices run on one core.
Remedy: a thread for each core (treatment `threads`). It needs a second core.
"""

import argparse

import torch
from torch import nn

torch.set_num_threads(1)

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    inputs = torch.randn(1024, 1024)
    labels = torch.randint(10, (1024,))
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
