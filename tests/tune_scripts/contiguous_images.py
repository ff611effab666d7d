"""Train convolutions on images in the contiguous memory format.

Planted slowness: the channels of a pixel are far apart in memory, which slows these layers down.
Remedy: `memory_format=torch.channels_last` for model and images (treatment `channels-last`).
"""

import argparse

import torch
from torch import nn

CHANNELS = 64
SIZE = 32


class Block(nn.Module):
    """A depthwise and a pointwise convolution, as in networks for phones."""

    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS)
        self.pointwise = nn.Conv2d(CHANNELS, CHANNELS, 1)
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.pool = nn.MaxPool2d(3, stride=1, padding=1)

    def forward(self, images):
        return torch.relu(self.norm(self.pool(self.pointwise(self.depthwise(images)))))


class Network(nn.Module):
    """Three blocks and a mean over the image."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.last = nn.Linear(CHANNELS, 10)

    def forward(self, images):
        return self.last(self.blocks(self.first(images)).mean(dim=(2, 3)))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
model = Network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    images = torch.randn(16, 3, SIZE, SIZE)
    labels = torch.randint(10, (16,))
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
