"""Train on a GPU whose memory is nearly full, with batches of a size that changes in each step.

Planted slowness: the cached blocks of one step have the wrong sizes for the next. So the allocator
gives them back to the driver and asks for others, and the GPU is idle meanwhile.
Remedy: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (treatment `expandable-segments`).
"""

import argparse

import torch
from torch import nn

WIDTH = 256

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(args.steps):
    rows = 3000 + 700 * (step * 5 % 7)
    inputs = torch.randn(rows, WIDTH, device=device)
    labels = torch.randint(10, (rows,), device=device)
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
