"""Train wide layers in float32 on a processor that multiplies bfloat16 faster.

Planted slowness: nearly all time goes into products of large float32 matrices.
Remedy: autocast to bfloat16 (treatment `bf16`), on a processor with AMX. With avx512_bf16 alone,
products in bfloat16 can be slower than in float32.
"""

import argparse

import torch
from torch import nn

WIDTH = 1024
BATCH = 2048

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(WIDTH, WIDTH),
    nn.ReLU(),
    nn.Linear(WIDTH, WIDTH),
    nn.ReLU(),
    nn.Linear(WIDTH, WIDTH),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(BATCH, WIDTH)
targets = torch.randn(BATCH, WIDTH)

for step in range(args.steps):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
