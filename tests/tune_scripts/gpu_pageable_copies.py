"""Train on a GPU with batches from pageable memory, between which Python prepares the next batch.

Planted slowness: the copy of each batch waits until the GPU has finished the step before. So the CPU
prepares nothing while the GPU computes.
Remedy: `pin_memory=True` and `.to(device, non_blocking=True)` (treatment `pin`).
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 4096
BATCH = 64


class PreparedItems(Dataset):
    """Items that take a core some time, so that the CPU has something to do."""

    def __init__(self, count):
        self.count = count
        self.features = torch.randn(256, FEATURES)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = 0
        for number in range(2000):
            label = (label + index * number) % 10
        return self.features[index % 256], label


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda")
loader = DataLoader(PreparedItems(BATCH * args.steps), batch_size=BATCH)
model = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step, (features, labels) in enumerate(loader):
    features = features.to(device)
    labels = labels.to(device)
    loss = nn.functional.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
