"""Two processes that share their gradients: `python -m torch.distributed.run --standalone --nproc_per_node 2 ddp_gloo.py`."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    os.environ.setdefault(
        "GLOO_SOCKET_IFNAME", "lo"
    )  # a name of the box that does not resolve is no matter then
    dist.init_process_group("gloo")
    # DDP keeps the first group and its threads after the group is destroyed; a thread that is the last to let go of a tensor
    # of Python's aborts the process when that is at its end. This group's threads are joined before.
    of_losses = dist.new_group()
    torch.manual_seed(0)
    x = torch.randn(640, 16)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler: DistributedSampler[object] = DistributedSampler(data)  # each rank has a half
    loader = DataLoader(data, batch_size=16, sampler=sampler)  # 20 batches an epoch
    net = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    step = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            loss = (net(inputs) - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        dist.all_reduce(loss := loss.detach(), group=of_losses)  # the sum over the ranks
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
