"""Train wide layers on a GPU in float32, whose products use no tensor cores.

Planted slowness: nearly all time goes into float32 products with full precision, torch's default.
Remedy: TF32 (treatment `tf32`), or autocast to bfloat16 (treatment `bf16`), which is faster still.
"""

import argparse

import torch
from torch import nn

WIDTH = 256
BATCH = 64

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(BATCH, WIDTH, device=device)
targets = torch.randn(BATCH, WIDTH, device=device)

for step in range(args.steps):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
