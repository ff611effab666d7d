"""Train a small model, and write, change and delete files in the folder where it is started.

It writes `log.csv` and `checkpoints/step-N.pt`. It changes `counter.txt` and deletes `cache.bin` if
they are there, as scripts do that count their starts or empty a cache.
"""

import argparse
from pathlib import Path

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

counter = Path("counter.txt")
if counter.exists():
    counter.write_text(f"{int(counter.read_text()) + 1}\n")
Path("cache.bin").unlink(missing_ok=True)
checkpoints = Path("checkpoints")
checkpoints.mkdir(exist_ok=True)

torch.manual_seed(0)
model = nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

with open("log.csv", "w") as log:
    for step in range(args.steps):
        inputs = torch.randn(32, 64)
        labels = torch.randint(10, (32,))
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.write(f"{step},{loss.item():.6f}\n")
        if step % 20 == 0:
            torch.save(model.state_dict(), checkpoints / f"step-{step}.pt")
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")
