"""A trainer that sets a variable and starts itself once more in its own place, then changes the folder; its arguments stay."""

import os
import sys
import tempfile
from pathlib import Path

if "TRAINER_IS_SET" not in os.environ:
    os.environ.update(
        TRAINER_IS_SET="1", MKL_NUM_THREADS="1"
    )  # read when a library is loaded, hence the new start
    print(f"starts again as process {os.getpid()}", flush=True)
    os.execv(sys.executable, [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]])

import torch

torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
with tempfile.TemporaryDirectory() as folder:
    began_in = Path.cwd()
    os.chdir(folder)
    for step in range(1, 31):
        x = torch.randn(32, 16)
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            Path("last.txt").write_text(
                f"step {step} loss {loss.item():.4f}"
            )  # a name without a folder
            print(Path("last.txt").read_text(), sys.argv[1:], flush=True)
    os.chdir(began_in)
