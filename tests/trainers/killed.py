"""A trainer that is gone from one step to the next: no handler, no finally and no exit hook of anyone runs."""

import argparse
import os
import signal

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument(
    "--by",
    choices=["exit", "kill", "abort"],
    default="kill",
    help="os._exit(3), SIGKILL or SIGABRT",
)
parser.add_argument("--after", type=int, default=25, help="steps before that")
args = parser.parse_args()

torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(1, args.after + 1):
    x = torch.randn(32, 16)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
if args.by == "exit":
    os._exit(3)
os.kill(os.getpid(), signal.SIGKILL if args.by == "kill" else signal.SIGABRT)
