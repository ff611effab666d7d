"""A loader whose two workers are forks of the trainer, new ones in each epoch; no `if __name__` stands before the loop."""

import os

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 160

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return torch.randn(16, generator=torch.Generator().manual_seed(row)), os.getpid()


torch.manual_seed(0)
loader = DataLoader(
    Rows(), batch_size=8, num_workers=2, multiprocessing_context="fork"
)  # 20 batches an epoch
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
makers: set[int] = set()
for epoch in range(1, 3):
    for x, made_by in loader:
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        makers.update(made_by.tolist())
    others = os.getpid() not in makers
    print(
        f"epoch {epoch} loss {loss.item():.4f} rows of {len(makers)} processes, not ours: {others}",
        flush=True,
    )
