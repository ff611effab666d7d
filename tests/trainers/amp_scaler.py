"""A scaler of losses on the CPU that meets an inf: two of thirty steps of the optimizer are not made."""

import torch
from torch import nn

OVERFLOWS = {7, 19}

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
skipped = 0

for number in range(1, 31):
    x = torch.randn(32, 16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = (net(x).float() - x.sum(1, keepdim=True)).square().mean()
    if number in OVERFLOWS:
        loss = loss * float("inf")
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
    if number % 10 == 0:
        print(
            f"batch {number} loss {loss.item():.4f} steps {number - skipped} scale {scaler.get_scale():g}",
            flush=True,
        )
