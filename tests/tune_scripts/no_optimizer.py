"""Evaluate a model without gradients and without an optimizer: there is no step to count."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Linear(64, 10)

for step in range(args.steps):
    inputs = torch.randn(32, 64)
    with torch.no_grad():
        mean = model(inputs).mean().item()
    if step % 10 == 0:
        print(f"step {step} mean {mean:.4f}")
