"""Weigh each rank's loss by its rows: DDP takes a mean of means, also on CPUs.

DDP needs no GPU: torch contains gloo, which joins processes on CPUs over TCP. The extension of the
source (torch-ccl) fits certain releases of torch only. On CPUs as on GPUs, DDP gives the gradient
of the whole batch only under a condition that is easy to violate.

Each rank has a copy of the net and a part of the rows. After backward, `.grad` is the mean of the
gradients of all ranks. If the loss is a mean over rows, this is a mean of means. It is the mean
over all rows if all parts have the same size. If the parts differ, a row of a small part counts
more than another row. If the loss is a sum over rows, the result is too small by the number of
ranks.

The bytes that a rank sends depend on the parameters, and not on the rows. So small batches pay most
for them. Ranks find each other by the name of their host. In a container this name may be unknown,
and the ranks then try for a long time.

In practice: start the ranks of one machine with `torchrun --local-addr 127.0.0.1` and
`GLOO_SOCKET_IFNAME=lo`, and use `init_process_group("gloo")`. Give all ranks parts of one size. If
they differ, as with padded tokens, multiply the loss of a rank by `ranks * own_rows / all_rows`.
## Predict
Rank 0 has 56 rows, rank 1 has 8, and the loss is a mean. In `.grad`, a row of rank 1 counts how
many times as much as a row of rank 0?
## Look for
- [same-start] nets that each rank builds with another seed have the weights of rank 0 once DDP
  wraps them
- [mean] with a mean over parts of 32 rows, both ranks have the gradient of all 64 rows, to 1e-6
- [sum] with a sum over parts of 32 rows, both ranks have half of the gradient of all 64 rows, to
  1e-6
- [uneven] with means over 56 and 8 rows, a row of the small part counts 7 times as much as
  a row of the large part, to 0.001
- [weighed] with means over 56 and 8 rows, times ranks * own rows / all rows, both ranks have the
  gradient of all 64 rows, to 1e-6
- [bytes] for 64 rows and for 256, each rank hands over as many bytes as its parameters have
## Try next
`--loss sum`: nothing divides by the rows, and DDP divides by the ranks. refutes: mean
`--first 32`: parts of one size need no weights. refutes: uneven
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 18,
https://www.toymoban.com/news/detail-808122.html: DDP on CPUs with torch-ccl. Ours: gloo instead,
and which loss gives which gradient.
"""

from typing import Literal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

WIDTH = 64
RANKS = 2
ROWS = 64
MANY_ROWS = 256
CUTS = range(8, ROWS, 8)  # rows of rank 0


def build_net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))


def sum_loss(output, y):
    return F.mse_loss(output, y, reduction="sum")


def weighed_loss(output, y):
    return F.mse_loss(output, y) * RANKS * len(y) / ROWS


def gradient_of(net, x, y, loss):
    net.zero_grad()
    loss(net(x), y).backward()
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])  # (parameters,)


def distance(gradient, right):
    return ((gradient - right).norm() / right.norm()).item()


def has_same_weights(net, other):
    for weight, other_weight in zip(net.parameters(), other.parameters(), strict=True):
        if not torch.equal(weight, other_weight):
            return False
    return True


def record_buckets(net):
    """Return a list to which DDP will add the bytes of each bucket that it all-reduces."""
    sent = []

    def all_reduce(state, bucket):
        sent.append(bucket.buffer().nbytes)
        return allreduce_hook(None, bucket)

    net.register_comm_hook(None, all_reduce)
    return sent


def weight_of_small_part(gradient, whole, x, y, cut):
    """Return how many times as much a row after the cut counts in a gradient as a row before it."""
    before = gradient_of(whole, x[:cut], y[:cut], sum_loss)
    after = gradient_of(whole, x[cut:], y[cut:], sum_loss)
    sums = torch.stack([before, after], dim=1).double()  # (parameters, 2)
    weights = torch.linalg.lstsq(sums, gradient.double()[:, None]).solution  # (2, 1)
    return (weights[1] / weights[0]).item()


def compare(lab, loss, first):
    """Return how far the gradients of this rank are from those of all rows, and other facts."""
    rank = dist.get_rank()
    net = DistributedDataParallel(build_net(seed=rank))
    whole = build_net(seed=0)  # without DDP, for the gradients of all rows
    is_same_start = has_same_weights(net, whole)
    sent = record_buckets(net)
    torch.manual_seed(2)
    x = torch.randn(MANY_ROWS, WIDTH)
    y = x[:, :1].exp()  # (256, 1), a target that differs much between rows

    def gradient_of_part(cut, rows, loss):
        part = slice(0, cut) if rank == 0 else slice(cut, rows)
        sent.clear()
        return gradient_of(net, x[part], y[part], loss)

    right = gradient_of(whole, x[:ROWS], y[:ROWS], F.mse_loss)
    right_sum = gradient_of(whole, x[:ROWS], y[:ROWS], sum_loss)
    even = gradient_of_part(32, ROWS, F.mse_loss if loss == "mean" else sum_loss)
    sent_bytes = [sum(sent)]
    even_sum = gradient_of_part(32, ROWS, sum_loss)
    uneven = gradient_of_part(first, ROWS, F.mse_loss)
    weighed = gradient_of_part(first, ROWS, weighed_loss)
    gradient_of_part(128, MANY_ROWS, F.mse_loss)
    sent_bytes.append(sum(sent))

    curves = {"mean": [], "weighed": []}
    for cut in CUTS:
        curves["mean"].append(distance(gradient_of_part(cut, ROWS, F.mse_loss), right))
        curves["weighed"].append(distance(gradient_of_part(cut, ROWS, weighed_loss), right))
    return {
        "is_same_start": is_same_start,
        "mean": distance(even, right),
        "sum": distance(2 * even_sum, right_sum),
        "weighed": distance(weighed, right),
        "times": weight_of_small_part(uneven, whole, x[:ROWS], y[:ROWS], first),
        "sent_bytes": sent_bytes,
        "parameter_bytes": sum(weight.nbytes for weight in whole.parameters()),
        "curves": curves,
    }


def largest(ranks, key):
    return max(rank[key] for rank in ranks)


def run(
    lab: Lab,
    loss: Literal["mean", "sum"] = "mean",  # over the rows of a rank
    first: int = 56,  # rows of rank 0 in uneven parts of 64, 1..63
) -> None:
    lab.stage("2 ranks")
    ranks = lab.ranks(RANKS, compare, loss, first)

    y = "distance from the gradient of all rows, relative"
    lab.axes("distance", x="rows of rank 0, of 64", y=y, log="y")
    curves = ranks[0]["curves"]  # both ranks have the same gradients
    for arm, distances in curves.items():
        for cut, far in zip(CUTS, distances, strict=True):
            lab.log(cut, arm=arm, distance=max(far, 1e-9))  # a distance of 0 has no logarithm

    starts = [rank["is_same_start"] for rank in ranks]
    lab.claim("same-start", starts, equals=[True, True])
    lab.claim("mean", largest(ranks, "mean"), at_most=1e-6)
    lab.claim("sum", largest(ranks, "sum"), at_most=1e-6)
    lab.claim("uneven", ranks[0]["times"], equals=7, tolerance=0.001, answers=True)
    lab.claim("weighed", largest(ranks, "weighed"), at_most=1e-6)
    sent_bytes = []
    for rank in ranks:
        sent_bytes += rank["sent_bytes"]
    lab.claim("bytes", sent_bytes, equals=[ranks[0]["parameter_bytes"]] * 4, unit="B")
