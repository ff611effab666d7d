"""With gradient accumulation, put both forward and backward inside no_sync.

DDP all-reduces the gradient in every backward. With gradient accumulation only the sum over the
micro-batches counts, so the all-reduces of all micro-batches but the last are wasted. Inside
`no_sync`, gradients add up in `.grad` of each rank. The next backward outside of `no_sync` sends
the sum. The mean over ranks of a sum is the sum of the means, so the result is the same.

It matters which part of a step is inside `no_sync`: DDP prepares its buckets in forward, and hooks
start the all-reduce in backward. The claims below test each part alone. No choice raises an error.

Gradients that are left in `no_sync` are local. An epoch may end in the middle of a step. If the
optimizer steps all the same, each rank steps along a gradient of its own. From then on the weights
of the ranks differ, because DDP copies weights only when it is created. Count bytes, not calls: the
first backward that sends has one bucket, and later ones have several.

The processes here are on CPUs, with the backend gloo. On two GPUs with NCCL a race shows how much
time the bytes take. Its layers are wide and its batches are small, so that sending takes much of a
step. A large batch hides the sending behind the computation, and then no_sync saves little time.

In practice: write `with net.no_sync() if is_not_last else nullcontext():` around both `net(x)` and
`loss.backward()`, and count the last batch of an epoch as a last micro-batch. FSDP has
`net.set_requires_gradient_sync(False)` in its place.
## Predict
A gradient of 4 MiB, 4 micro-batches a step, no_sync around the first 3 backwards alone: how many
MiB does DDP send in 5 steps?
## Look for
- [every] without no_sync, each of 20 backwards sends the whole gradient of 4 MiB
- [quarter] with no_sync, 5 of 20 backwards send, and a quarter of the bytes travels
- [right] with and without no_sync, the gradient of the first step is within 1e-6 of the gradient of
  all rows of both ranks
- [backward] no_sync around backward alone saves no byte
- [forward] no_sync around forward alone sends as many bytes as one backward in each step
- [calls] in the first step DDP makes 13 calls without no_sync and 1 with it, which is not the ratio
  of the bytes
- [together] after 5 steps both ranks have the same weights
- [apart] after one step with all its micro-batches in no_sync, the ranks have different weights
- [gpu-time] on two GPUs with NCCL, a step of 4 small micro-batches takes at least 1.2 times as long
  without no_sync as with it
## Try next
`--inside backward`: the mistake. refutes: quarter, calls
`--micro 2`: half of the bytes travel with no_sync. refutes: every, quarter, calls
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 26,
https://www.toymoban.com/news/detail-808122.html: skip the unneeded all-reduce in all backwards but
the last. Ours: the bytes, each part alone, and gradients that are left at the end.
"""

import time
from contextlib import nullcontext
from typing import Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

LAYERS = 4
WIDTH = 512  # the weight of a layer is 1 MiB
ROWS = 4  # of a micro-batch
STEPS = 5
MIB = 2**20
GPU_WIDTH = 4096  # the weight of a layer is 64 MiB
GPU_ROWS = 64
GPU_STEPS = 20
GPU_MICRO = 4
TORCHRUN = ("torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2")


def build_net(width):
    torch.manual_seed(0)
    layers = []
    for _ in range(LAYERS):
        layers.append(nn.Linear(width, width, bias=False))
    return nn.Sequential(*layers)


def draw_batches(step, micro):
    """Return the rows of all ranks, (ranks, micro, ROWS, WIDTH)."""
    generator = torch.Generator().manual_seed(step)
    return torch.randn(dist.get_world_size(), micro, ROWS, WIDTH, generator=generator)


def accumulate(net, batches, inside, total):
    """Call backward for each batch of a step with `total` micro-batches.

    `inside` names the part that is inside no_sync, for all micro-batches but the last.
    """
    for number, x in enumerate(batches, 1):  # x (rows, width)
        context = net.no_sync if number < total else nullcontext
        forward_context = context if inside in ("forward", "both") else nullcontext
        backward_context = context if inside in ("backward", "both") else nullcontext
        with forward_context():
            loss = net(x).square().mean() / total
        with backward_context():
            loss.backward()


def largest_error(net, batches):
    """Return how far the gradients are from those of all rows of all ranks, without DDP."""
    alone = build_net(WIDTH)
    alone(batches).square().mean().backward()
    errors = []
    for weight, expected in zip(net.parameters(), alone.parameters(), strict=True):
        error = (weight.grad - expected.grad).norm() / expected.grad.norm()
        errors.append(error.item())
    return max(errors)


def have_equal_weights(net):
    """Return whether the first and the last rank have the same weights."""
    own = [weight.double().sum().item() for weight in net.parameters()]
    sums = [None] * dist.get_world_size()
    dist.all_gather_object(sums, own)
    return sums[0] == sums[-1]


def train(lab, inside, micro, total, steps):
    """Train on this rank.

    Return the bytes of each call of each backward, the error of the first gradient, and whether
    the ranks end with equal weights.
    """
    net = DistributedDataParallel(build_net(WIDTH), bucket_cap_mb=1)
    sent = []

    def start_backward(module, inputs):
        sent.append([])

    def send(state, bucket):  # DDP calls it to have a bucket all-reduced
        sent[-1].append(bucket.buffer().nbytes)
        return allreduce_hook(None, bucket)

    net.register_forward_pre_hook(start_backward)
    net.register_comm_hook(None, send)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    error = 0.0
    for step in range(steps):
        batches = draw_batches(step, micro)
        optimizer.zero_grad()
        accumulate(net, batches[dist.get_rank()], inside, total)
        if step == 0:
            error = largest_error(net, batches)
        optimizer.step()
    return sent, error, have_equal_weights(net)


def train_all(lab, inside, micro):
    arms = {"every": "nothing", "no_sync": inside, "backward": "backward", "forward": "forward"}
    results = {}
    for arm, part in arms.items():
        results[arm] = train(lab, part, micro, micro, STEPS)
    results["left over"] = train(lab, "both", micro, micro + 1, 1)
    return results


def time_steps(lab, inside):
    """Return the seconds of a step with NCCL."""
    device = lab.device()
    dist.init_process_group("nccl", device_id=device)
    net = DistributedDataParallel(build_net(GPU_WIDTH).to(device))
    batches = torch.randn(GPU_MICRO, GPU_ROWS, GPU_WIDTH, device=device)
    for _ in range(3):  # the first steps connect the GPUs and make the buckets
        accumulate(net, batches, inside, GPU_MICRO)
    torch.accelerator.synchronize()
    start = time.perf_counter()
    for _ in range(GPU_STEPS):
        net.zero_grad()
        accumulate(net, batches, inside, GPU_MICRO)
    torch.accelerator.synchronize()
    elapsed_s = time.perf_counter() - start
    dist.destroy_process_group()
    return elapsed_s / GPU_STEPS


def run(
    lab: Lab,
    inside: Literal["both", "forward", "backward"] = "both",  # the part in no_sync in the 2nd arm
    micro: int = 4,  # micro-batches of a step, 1..16
) -> None:
    has_gpus = lab.device().type == "cuda" and torch.accelerator.device_count() > 1
    lacks = "" if has_gpus else "two CUDA devices"

    @lab.once
    def exact():
        lab.axes("sent_bytes", x="backward", y="sent by a rank so far")
        lab.stage("2 ranks train")
        ranks = lab.ranks(2, train_all, inside, micro)
        sent = {}  # bytes of each backward
        errors = []
        totals = {}
        are_equal = []
        for arm in ("every", "no_sync", "backward", "forward"):
            sent[arm] = [sum(sizes) for sizes in ranks[0][arm][0]]
            totals[arm] = sum(sent[arm])
        for arm in ("every", "no_sync"):
            sent_bytes = 0
            for number, nbytes in enumerate(sent[arm], 1):
                sent_bytes += nbytes
                lab.log(number, arm=arm, sent_bytes=sent_bytes)
            for rank in ranks:
                errors.append(rank[arm][1])
                are_equal.append(rank[arm][2])
        lab.bars("sent in 5 steps", totals, unit="B")

        lab.claim("every", sent["every"], equals=[LAYERS * MIB] * 20, unit="B")
        sending = sum(nbytes > 0 for nbytes in sent["no_sync"])
        lab.claim("quarter", [sending, totals["no_sync"] / totals["every"]], equals=[5, 1 / 4])
        lab.claim("right", max(errors), at_most=1e-6)
        answer = totals["backward"] / MIB
        lab.claim("backward", totals["backward"], equals=totals["every"], unit="B", answers=answer)
        lab.claim("forward", totals["forward"], equals=totals["every"] / micro, unit="B")
        calls = []
        for arm in ("every", "no_sync"):
            first_step = ranks[0][arm][0][:micro]
            calls.append(sum(len(sizes) for sizes in first_step))
        lab.claim("calls", calls, equals=[13, 1])
        lab.claim("together", all(are_equal))
        lab.claim("apart", ranks[1]["left over"][2], equals=False)

    lab.claim_ratio("gpu-time", "every/no_sync", at_least=1.2, lacks=lacks)
    if not lacks:
        lab.stage("two GPUs")
        lab.race(
            every=lab.arm("every", time_steps, "nothing", prefix=TORCHRUN),
            no_sync=lab.arm("no_sync", time_steps, "both", prefix=TORCHRUN),
        )
