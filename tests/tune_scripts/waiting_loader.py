"""Train a small model on items that are waited for, as from a slow disk or a remote store.

Planted slowness: the DataLoader has no workers, so the training waits for each of 16 items in turn.
Remedy: `num_workers=2` or more (treatment `workers`). Workers wait at the same time and use no core.
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEM_S = 0.002  # the delay of a remote store
BATCH = 16


class RemoteItems(Dataset):
    """Items that arrive after a delay."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(ITEM_S)
        generator = torch.Generator().manual_seed(index)
        image = torch.randn(64, generator=generator)
        return image, index % 10


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
loader = DataLoader(RemoteItems(BATCH * args.steps), batch_size=BATCH, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step, (images, labels) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
