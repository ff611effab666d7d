"""Train on a GPU with large batches that are copied from pageable memory.

Planted slowness: a copy from pageable memory is slow. It also makes the CPU wait for the GPU, so that
the GPU then waits for the CPU.
Remedy: `pin_memory=True` and `.to(device, non_blocking=True)` (treatment `pin`).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 16384
BATCH = 64


class Images(Dataset):
    """Images in memory."""

    def __init__(self, count):
        self.count = count
        self.pixels = torch.randn(256, FEATURES)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.pixels[index % 256], index % 10


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

torch.set_float32_matmul_precision("high")  # TF32
torch.manual_seed(0)
device = torch.device("cuda")
loader = DataLoader(Images(BATCH * args.steps), batch_size=BATCH)
model = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

for step, (images, labels) in enumerate(loader):
    images = images.to(device)
    labels = labels.to(device)
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
