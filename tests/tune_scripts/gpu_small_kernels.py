"""Train a recurrent cell on a GPU that is written as many small operators.

Planted slowness: launching a kernel takes the CPU longer than computing it takes the GPU.
Remedy: `torch.compile(model)` (treatment `compile`), which launches few kernels, and
`mode="reduce-overhead"`, which launches them all at once by a CUDA graph.
"""

import argparse

import torch
from torch import nn

TURNS = 10
SIZE = 32


class Oscillators(nn.Module):
    """Numbers that change each other for some turns."""

    def __init__(self):
        super().__init__()
        self.pull = nn.Parameter(torch.full((SIZE,), 0.1))
        self.push = nn.Parameter(torch.full((SIZE,), 0.2))
        self.last = nn.Linear(SIZE, 10)

    def forward(self, state):
        speed = torch.zeros_like(state)
        for _ in range(TURNS):
            force = torch.tanh(state * self.pull) - torch.sigmoid(speed * self.push)
            speed = 0.9 * speed + 0.1 * force
            state = state + 0.1 * speed
        return self.last(state)


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda")
model = Oscillators().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    inputs = torch.randn(16, SIZE, device=device)
    labels = torch.randint(10, (16,), device=device)
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
