"""What torch.compile makes of a net, or with --step of the optimizer's own step; --backend eager needs no compiler."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--step", action="store_true", help="compile optimizer.step instead of the net")
parser.add_argument("--backend", default="inductor", help="eager, aot_eager or inductor")
args = parser.parse_args()

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
predict = net if args.step else torch.compile(net, backend=args.backend)
update = torch.compile(optimizer.step, backend=args.backend) if args.step else optimizer.step

for step in range(1, 31):
    x = torch.randn(32, 16)
    loss = (predict(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    update()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
