"""A loader whose two workers are fresh interpreters that load this file again, and stay from epoch to epoch."""

import os

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset[tuple[torch.Tensor, int]]):
    """Eighty rows from each worker; how many come is not known before."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        worker = get_worker_info()
        chance = torch.Generator().manual_seed(worker.id if worker else 0)
        for _ in range(80):
            yield torch.randn(16, generator=chance), os.getpid()


def main() -> None:
    torch.manual_seed(0)
    loader = DataLoader(
        Stream(),
        batch_size=8,
        num_workers=2,
        multiprocessing_context="spawn",
        persistent_workers=True,
        prefetch_factor=4,
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


if __name__ == "__main__":
    main()
