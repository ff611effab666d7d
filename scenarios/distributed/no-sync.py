"""no_sync sends the gradient once a step instead of once a micro-batch, if forward stands in it as well.

DDP all-reduces gradients in every backward. With gradient accumulation only their sum counts, so all but the last micro-batch
of a step can go without: `no_sync` lets them add up in `.grad` of each rank, and the next backward outside of it sends the sum.
The bytes are those of one gradient however many micro-batches there are, and the mean over ranks of a sum is the sum of means.

Whether a backward sends is decided in forward: there DDP prepares its buckets, or does not. `no_sync` around backward alone
comes too late. It changes nothing, and nobody says so. Around forward alone it is enough.

What is left in `no_sync` is local. Where an epoch ends in the middle of a step, and the optimizer steps all the same, each rank
has stepped along its own gradient. Their weights differ from then on: DDP copies weights at its start, and never again. Count
bytes, not calls: the first backward that sends has one bucket, later ones have several.
## Predict
A gradient of 4 MiB, 4 micro-batches a step, no_sync around the first 3 backwards alone: how many MiB does DDP send in 5 steps?
## Look for
- [every] without it each of 20 backwards sends the whole gradient
- [quarter] with it 5 of 20 backwards send, a quarter of the bytes
- [right] both ways the gradient of the first step is that of all micro-batches of both ranks, to 1e-6
- [backward] around backward alone it saves no byte
- [forward] around forward alone it saves as many as around both
- [calls] in the first step there are 13 calls without it and 1 with it, so calls do not tell what it saves
- [together] after 5 steps both ranks have the same weights
- [apart] after one step with all its micro-batches in no_sync they have not
## Try next
`--inside backward`: the mistake. refutes: quarter, calls
`--micro 2`: half the bytes travel. refutes: every, quarter, calls
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 26,
https://www.toymoban.com/news/detail-808122.html: skip the unneeded all-reduce. Ours: the bytes, what has to be inside, and
what is left at the end.
"""

from contextlib import nullcontext
from typing import Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

LAYERS, WIDTH, ROWS, STEPS, MIB = 4, 512, 4, 5, 2**20  # the weight of a layer is 1 MiB


def build_net():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])


def batches(step, micro):
    """The rows of all ranks, (ranks, micro, ROWS, WIDTH)."""
    return torch.randn(dist.get_world_size(), micro, ROWS, WIDTH, generator=torch.Generator().manual_seed(step))


def accumulate(net, xs, inside, total):
    """Backwards of micro-batches, of `total` in a step; what `inside` names stands in no_sync until the last."""
    for number, x in enumerate(xs, 1):
        quiet = net.no_sync if number < total else nullcontext
        with quiet() if inside in ("forward", "both") else nullcontext():
            loss = net(x).square().mean() / total
        with quiet() if inside in ("backward", "both") else nullcontext():
            loss.backward()


def train(lab, inside, micro, total, steps):
    """Train on one rank; return what each backward sent, how far the first gradient is off, and whether all ranks agree."""
    net, sent = DistributedDataParallel(build_net(), bucket_cap_mb=1), []

    def hook(state, bucket):  # DDP calls it to have a bucket all-reduced
        sent[-1].append(bucket.buffer().nbytes)
        return allreduce_hook(None, bucket)

    net.register_comm_hook(None, hook)
    net.register_forward_pre_hook(lambda module, inputs: sent.append([]))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        xs = batches(step, micro)
        optimizer.zero_grad()
        accumulate(net, xs[dist.get_rank()], inside, total)
        if step == 0:
            alone = build_net()  # not in DDP: all rows of all ranks at once
            alone(xs).square().mean().backward()
            pairs = zip(net.parameters(), alone.parameters(), strict=True)
            off = max(((own.grad - right.grad).norm() / right.grad.norm()).item() for own, right in pairs)
        optimizer.step()
    sums = [None] * dist.get_world_size()
    dist.all_gather_object(sums, [weight.double().sum().item() for weight in net.parameters()])
    return sent, off, sums[0] == sums[-1]


def train_all(lab, inside, micro):
    arms = {"every": "nothing", "no_sync": inside, "backward": "backward", "forward": "forward"}
    found = {arm: train(lab, what, micro, micro, STEPS) for arm, what in arms.items()}
    return {**found, "left over": train(lab, "both", micro, micro + 1, 1)}


def run(
    lab: Lab,
    inside: Literal["both", "forward", "backward"] = "both",  # what stands in no_sync in the second arm
    micro: int = 4,  # micro-batches of a step, 1..16
) -> None:
    lab.axes("sent_bytes", x="backward", y="sent by a rank so far")
    lab.stage("2 ranks train")
    ranks = lab.ranks(2, train_all, inside, micro)
    sent = {arm: [sum(sizes) for sizes in found[0]] for arm, found in ranks[0].items()}
    for arm in ("every", "no_sync"):
        for number in range(len(sent[arm])):
            lab.log(number + 1, arm=arm, sent_bytes=sum(sent[arm][: number + 1]))
    total = {arm: sum(sizes) for arm, sizes in sent.items() if arm != "left over"}
    lab.bars("sent in 5 steps", total, unit="B")
    lab.claim("every", sent["every"], equals=[LAYERS * MIB] * 20, unit="B")
    lab.claim("quarter", [sum(map(bool, sent["no_sync"])), total["no_sync"] / total["every"]], equals=[5, 1 / 4])
    lab.claim("right", max(rank[arm][1] for rank in ranks for arm in ("every", "no_sync")), at_most=1e-6)
    lab.claim("backward", total["backward"], equals=total["every"], unit="B", answers=total["backward"] / MIB)
    lab.claim("forward", total["forward"], equals=total["every"] / micro, unit="B")
    calls = [sum(len(sizes) for sizes in ranks[0][arm][0][:micro]) for arm in ("every", "no_sync")]
    lab.claim("calls", calls, equals=[13, 1])
    lab.claim("together", all(rank[arm][2] for rank in ranks for arm in ("every", "no_sync")))
    lab.claim("apart", ranks[1]["left over"][2], equals=False)
