"""Train a small model on records that are compressed, so that each item is work for a core.

Planted slowness: the DataLoader has no workers, so the process that trains also unpacks all items.
Remedy: `num_workers=2` (treatment `workers`). It needs a second core.
"""

import argparse
import random
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 16
FEATURES = 512


class PackedRecords(Dataset):
    """Compressed lines of numbers. All items share 64 records."""

    def __init__(self, count):
        self.count = count
        source = random.Random(0)
        self.records = []
        for _ in range(64):
            numbers = [source.gauss(0, 1) for _ in range(4 * FEATURES)]
            text = " ".join(f"{number:.6f}" for number in numbers)
            self.records.append(zlib.compress(text.encode()))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        text = zlib.decompress(self.records[index % 64]).decode()
        numbers = [float(word) for word in text.split()]
        features = []
        for begin in range(0, len(numbers), 4):
            features.append(sum(numbers[begin : begin + 4]) / 4)
        return torch.tensor(features), index % 10


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
loader = DataLoader(PackedRecords(BATCH * args.steps), batch_size=BATCH, shuffle=True)
model = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step, (features, labels) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
