"""DDP needs no GPU, and gives the gradient of the whole batch only where the loss is a mean over parts of equal size.

torch brings gloo, which joins processes on CPUs over TCP. The extension of the source (torch-ccl) is tied to certain releases
of torch; gloo is always there. Each rank has a copy of the net and a part of the rows. Backward leaves in `.grad` the mean
over ranks of their gradients. The mean of means is the mean over all rows if the parts are of one size. If they are not, a row
of the small part counts more: multiply the loss of a rank by its rows, times ranks, over all rows. Of a sum over rows it is too
small, by the number of ranks.

What travels has the size of the parameters, however many rows there are. So small batches pay most for it.

Ranks find each other by the name of the host. In a container nobody may know that name, and they try for a long time.
`torchrun --local-addr 127.0.0.1` and `GLOO_SOCKET_IFNAME=lo` do without it on one box; so these ranks were started.
## Predict
Rank 0 has 56 rows, rank 1 has 8, the loss is a mean. How many times as much as others does a row of rank 1 count in `.grad`?
## Look for
- [same-start] nets that are built with another seed on each rank have the weights of rank 0 once DDP has them
- [mean] with a mean over parts of 32 rows both ranks have the gradient of all 64 rows, to 1e-6
- [sum] with a sum they have half of it, to 1e-6
- [uneven] with means over parts of 56 and 8 rows, a row of the small part counts 7 times as much as the others, to 0.001
- [weighed] multiplied by their share of rows they give the right one, to 1e-6
- [bytes] each rank hands over as many bytes as its parameters have, for 64 rows and for 256
## Try next
`--loss sum`: nothing divides by the rows, but DDP by the ranks. refutes: mean
`--first 32`: equal parts need no weighing. refutes: uneven
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 18,
https://www.toymoban.com/news/detail-808122.html: DDP on CPUs with torch-ccl. Ours: gloo in its place, and which loss gives
which gradient.
"""

from typing import Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

WIDTH, CUTS = 64, range(8, 64, 8)


def build_net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))


def gradient(net, x, y, loss):
    net.zero_grad()
    loss(net(x), y).backward()
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


def compare(lab, loss, first):
    """Return for each case how far the gradient of this rank is from that of all rows, and other facts."""
    rank, sent = dist.get_rank(), []
    net, whole = DistributedDataParallel(build_net(seed=rank)), build_net(seed=0)  # whole: not in DDP
    starts = all(torch.equal(*pair) for pair in zip(net.parameters(), whole.parameters(), strict=True))

    def hook(state, bucket):  # DDP calls it to have a bucket all-reduced
        sent.append(bucket.buffer().nbytes)
        return allreduce_hook(None, bucket)

    net.register_comm_hook(None, hook)
    torch.manual_seed(2)
    x = torch.randn(256, WIDTH)
    y = x[:, :1].exp()  # (256, 1): rows differ
    mean, total = nn.MSELoss(), nn.MSELoss(reduction="sum")

    def weighed(found, y):  # 2 ranks, 64 rows
        return mean(found, y) * 2 * len(y) / 64

    cases = {
        "mean": (32, 64, mean if loss == "mean" else total, mean),
        "sum": (32, 64, total, total),
        "uneven": (first, 64, mean, mean),
        "weighed": (first, 64, weighed, mean),
        "256 rows": (128, 256, mean, mean),
    }
    cases |= {f"{name} {cut}": (cut, 64, ours, mean) for cut in CUTS for name, ours in (("mean", mean), ("weighed", weighed))}
    far, nbytes = {}, {}
    for case, (cut, rows, ours, theirs) in cases.items():
        sent.clear()
        part = slice(0, cut) if rank == 0 else slice(cut, rows)
        found, right = gradient(net, x[part], y[part], ours), gradient(whole, x[:rows], y[:rows], theirs)
        if case == "uneven":
            uneven = found
        found *= 2 if case == "sum" else 1  # what it lacks
        far[case], nbytes[case] = ((found - right).norm() / right.norm()).item(), sum(sent)
    parts = slice(0, first), slice(first, 64)
    sums = torch.stack([gradient(whole, x[part], y[part], total) for part in parts], dim=1)  # (parameters, 2)
    counts = torch.linalg.lstsq(sums.double(), uneven.double()[:, None]).solution  # (2, 1): how much a row of each counts
    size = sum(weight.nbytes for weight in whole.parameters())
    return {"far": far, "times": (counts[1] / counts[0]).item(), "bytes": nbytes, "parameters": size, "starts": starts}


def run(
    lab: Lab,
    loss: Literal["mean", "sum"] = "mean",  # over the rows of a rank
    first: int = 56,  # rows of rank 0 in uneven parts of 64, 1..63
) -> None:
    lab.stage("2 ranks")
    ranks = lab.ranks(2, compare, loss, first)
    far = {case: max(rank["far"][case] for rank in ranks) for case in ranks[0]["far"]}
    lab.axes("distance", x="rows of rank 0, of 64", y="distance from the gradient of all rows, relative", log="y")
    for cut in CUTS:
        for arm in ("mean", "weighed"):
            lab.log(cut, arm=arm, distance=max(far[f"{arm} {cut}"], 1e-9))  # a distance of 0 has no logarithm
    lab.claim("same-start", [rank["starts"] for rank in ranks], equals=[True, True])
    lab.claim("mean", far["mean"], at_most=1e-6)
    lab.claim("sum", far["sum"], at_most=1e-6)
    lab.claim("uneven", ranks[0]["times"], equals=7, tolerance=0.001, answers=True)
    lab.claim("weighed", far["weighed"], at_most=1e-6)
    sent = [rank["bytes"][case] for rank in ranks for case in ("mean", "256 rows")]
    lab.claim("bytes", sent, equals=[ranks[0]["parameters"]] * 4, unit="B")
