"""Train while Python collects garbage in each step, with many objects in memory.

Planted slowness: `gc.collect()` in each step visits the 100,000 records that stay until the end.
Remedy: `gc.freeze()` after the data are loaded (treatment `gc-freeze`): frozen objects are not visited.
"""

import argparse
import gc

import torch
from torch import nn

RECORDS = 100_000


class Node:
    """A node that knows its parent, so that only the garbage collector frees it."""

    def __init__(self, parent):
        self.parent = parent
        self.children = []


def build_tree(count):
    """Return the root of a tree with `count` nodes below it: many cycles of references."""
    root = Node(None)
    for _ in range(count):
        root.children.append(Node(root))
    return root


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
records = [{"words": [number, number + 1]} for number in range(RECORDS)]
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    tree = build_tree(1000)
    inputs = torch.randn(32, 64)
    labels = torch.tensor(
        [records[(step * 32 + row) % RECORDS]["words"][0] % 10 for row in range(32)]
    )
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f} nodes {len(tree.children)}")
