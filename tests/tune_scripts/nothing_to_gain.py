"""Train one wide layer with a fused optimizer: nearly all time goes into three large products.

There is no DataLoader, no small operator and no second layer, so no treatment should be SUPPORTED.
"""

import argparse

import torch
from torch import nn

WIDTH = 1024

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Linear(WIDTH, WIDTH)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
inputs = torch.randn(WIDTH, WIDTH)
targets = torch.randn(WIDTH, WIDTH)

for step in range(args.steps):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
