"""A small net whose steps torch's own profiler times as well: data, backward and optimizer, printed as JSON."""

import json

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader, TensorDataset

FIRST, COUNT = 10, 40  # of the steps that are profiled

torch.manual_seed(0)
torch.set_num_threads(1)
rows = TensorDataset(torch.randn(64 * (FIRST + COUNT), 256), torch.randn(64 * (FIRST + COUNT), 1))
net = torch.nn.Sequential(
    torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256), torch.nn.Linear(256, 1)
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)


def train(batches: int) -> None:
    for _ in range(batches):
        x, y = next(loader)
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        with record_function("backward of the step"):
            loss.backward()
        optimizer.step()


loader = iter(DataLoader(rows, batch_size=64))
train(FIRST)
with profile(activities=[ProfilerActivity.CPU]) as seen:
    train(COUNT)
total_ms = {event.key: event.cpu_time_total / 1e3 for event in seen.key_averages()}
parts = {
    "waits for data": sum(
        ms for key, ms in total_ms.items() if key.startswith("enumerate(DataLoader)")
    ),
    "backward": total_ms["backward of the step"],
    "optimizer": sum(ms for key, ms in total_ms.items() if key.startswith("Optimizer.step#")),
}
print(json.dumps({name: ms / COUNT for name, ms in parts.items()}))
