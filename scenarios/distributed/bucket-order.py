"""With find_unused_parameters, build layers in the order of forward.

DDP sends gradients while backward still computes. DDP collects gradients in buckets of up to
`bucket_cap_mb`, and all-reduces a bucket when its last gradient is there. All ranks send the
buckets in the same order, so a bucket that is not complete delays all later buckets.

Before the first backward, DDP does not know in which order gradients are computed. It assumes the
reverse order of the constructor. By default, the first step uses one bucket for all gradients.
After the first step DDP makes the buckets again, in the order of the gradients in backward. With
`find_unused_parameters=True` the order may change from step to step, so DDP keeps its first
buckets. Some nets build their layers in another order than they call them: the head first, or a
decoder before its encoder. Such a net sends the same bytes and raises no error, but its buckets may
be complete only at the end of backward.

The flag `find_unused_parameters` is for parameters that a forward does not use. Without the flag,
DDP waits for a gradient that is never computed. That step sends only the buckets before the missing
gradient, and the next step raises the error. If the same parameters are unused in every step,
`static_graph=True` works as well, and makes the buckets again after two steps. For an unused
parameter, both options still send zeros by default.

The lesson has one process in its group. DDP makes and sends buckets as in a group of many
processes, and a hook records after which gradient. The chart uses a model of the network: to send a
MiB takes as long as to compute a MiB of gradients. On two GPUs the lesson also times steps with
NCCL, and measures the real overlap.

In practice: leave `find_unused_parameters` off if you can, or use `static_graph=True`. If you need
the flag, create the layers in `__init__` in the order of `forward`.
## Predict
A net builds its 8 layers in the reverse order of its forward. DDP has find_unused_parameters=True.
How many of the 8 gradients exist when DDP sends the first bucket?
## Look for
- [first] by default the first step of DDP sends one bucket, after all 8 gradients
- [again] by default, after the first step, DDP sends a bucket after each gradient, although the
  layers are built in reversed order
- [as-called] with find_unused_parameters and layers built as they are called, each step sends a
  bucket after each gradient
- [reversed] with find_unused_parameters and layers built in reversed order, no step sends a bucket
  before its gradient number 8
- [exposed] in a model of the network, 2 of 9 MiB are sent after backward with layers built as
  called, and 9 in reversed order
- [static] with static_graph=True and layers built in reversed order, a bucket is sent after each
  gradient from the third step on
- [zeros] with find_unused_parameters an unused layer of 1 MiB makes DDP send 9 MiB in place of 8
- [nothing] with an unused layer and without find_unused_parameters, the first step sends 0 buckets
- [raises] with an unused layer and default options, the second step raises a RuntimeError that
  names find_unused_parameters
- [gpu-overlap] on two GPUs with find_unused_parameters, a step takes at least 1.05 times as long
  with layers in reversed order as with layers built as called
## Try next
`--built as-called`: all nets build their layers as they call them, which is the remedy.
refutes: reversed, exposed
`--cap 25`: one bucket of 25 MiB holds all gradients here. This is the default size in DDP, but by
default the first bucket is 1 MiB. refutes: again, as-called, exposed, static
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 27,
https://www.toymoban.com/news/detail-808122.html: with find_unused_parameters=True build the layers
in the order of execution. Ours: after which gradient a bucket is sent,
static_graph, and the race.
"""

import time
from typing import Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

LAYERS = 8
WIDTH = 512  # the weight of a layer is 1 MiB
STEPS = 4
MIB = 2**20
GPU_WIDTH = 4096  # the weight of a layer is 64 MiB
GPU_ROWS = 512
GPU_STEPS = 20
TORCHRUN = ("torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2")


class Net(nn.Module):
    """Layers that are built in one order and called in another."""

    def __init__(self, built, has_spare, width=WIDTH):
        super().__init__()
        if has_spare:
            self.spare = nn.Linear(width, width, bias=False)  # forward does not use it
        numbers = list(range(LAYERS))
        if built == "reversed":
            numbers.reverse()
        for number in numbers:
            setattr(self, f"layer{number}", nn.Linear(width, width, bias=False))

    def forward(self, x):  # (rows, width)
        for number in range(LAYERS):
            layer = getattr(self, f"layer{number}")
            x = layer(x).relu()
        return x


def train(steps, built, has_spare=False, **options):
    """Train, and append to `steps` the buckets of each step.

    A bucket is the number of gradients that existed when it was sent, and its bytes.
    """
    net = DistributedDataParallel(Net(built, has_spare), **options)
    gradients = []

    def send(state, bucket):  # DDP calls it to have a bucket all-reduced
        steps[-1].append((len(gradients), bucket.buffer().nbytes))
        return allreduce_hook(None, bucket)

    net.register_comm_hook(None, send)
    for weight in net.parameters():
        weight.register_post_accumulate_grad_hook(gradients.append)
    for _ in range(STEPS):
        gradients.clear()
        steps.append([])
        net(torch.randn(4, WIDTH)).sum().backward()


def show_overlap(lab, arm, buckets):
    """Show the modelled transfers of a step, and return how many MiB travel after backward."""
    lab.span("backward", 0, LAYERS, "computes", arm=arm, unit="gradients")
    end = 0
    for number, (gradients, nbytes) in enumerate(buckets, 1):
        lab.log(number, arm=arm, gradients_there=gradients)
        start = max(end, gradients)
        end = start + nbytes / MIB  # a MiB travels as long as its gradient is computed
        lab.span("network", start, end, "sends", arm=arm, unit="gradients")
    return end - LAYERS


def time_steps(lab, built):
    """Return the seconds of a step with NCCL and find_unused_parameters."""
    device = lab.device()
    dist.init_process_group("nccl", device_id=device)
    net = Net(built, has_spare=True, width=GPU_WIDTH).to(device)
    options = {"find_unused_parameters": True, "gradient_as_bucket_view": True}
    net = DistributedDataParallel(net, **options)
    x = torch.randn(GPU_ROWS, GPU_WIDTH, device=device)
    for _ in range(3):  # the first step connects the GPUs
        net(x).sum().backward()
    torch.accelerator.synchronize()
    start = time.perf_counter()
    for _ in range(GPU_STEPS):
        net.zero_grad()
        net(x).sum().backward()
    torch.accelerator.synchronize()
    elapsed_s = time.perf_counter() - start
    dist.destroy_process_group()
    return elapsed_s / GPU_STEPS


def run(
    lab: Lab,
    built: Literal["reversed", "as-called"] = "reversed",  # the order of layers in the constructor
    cap: int = 1,  # bucket_cap_mb: MiB of a bucket, 1..25
) -> None:
    has_gpus = lab.device().type == "cuda" and torch.accelerator.device_count() > 1
    lacks = "" if has_gpus else "two CUDA devices"

    @lab.once
    def exact():
        spare = {"has_spare": True, "bucket_cap_mb": cap}
        unused = {**spare, "find_unused_parameters": True}
        arms = {
            "default": (built, {"bucket_cap_mb": cap}),
            "find_unused, as called": ("as-called", unused),
            f"find_unused, {built}": (built, unused),
            "static_graph": (built, {**spare, "static_graph": True}),
        }
        lab.axes("gradients_there", x="bucket of the last step", y="gradients when it is sent")
        gradients = []  # for each arm, step and bucket
        exposed = []
        totals = []
        with lab.group():
            for arm, (order, options) in lab.sweep(arms.items(), "arms"):
                steps = []
                train(steps, order, **options)
                gradients_by_step = []
                for buckets in steps:
                    gradients_by_step.append([count for count, _ in buckets])
                gradients.append(gradients_by_step)
                totals.append(sum(nbytes for _, nbytes in steps[-1]) / MIB)
                exposed.append(show_overlap(lab, arm, steps[-1]))
            lab.stage("an unused layer without a flag")
            unflagged = []
            error = lab.raises(lambda: train(unflagged, built, **spare))
        lab.text(error, title="the second step, without a flag")

        default, as_called, reversed_order, static = gradients
        each = list(range(1, LAYERS + 1))
        each_and_spare = [*each, LAYERS]  # the unused layer is in the last bucket
        lab.claim("first", default[0], equals=[LAYERS])
        lab.claim("again", default[1:], equals=[each] * (STEPS - 1))
        lab.claim("as-called", as_called, equals=[each_and_spare] * STEPS)
        earliest = min(min(step) for step in reversed_order)
        lab.claim("reversed", earliest, equals=LAYERS, answers=True)
        lab.claim("exposed", exposed[1:3], equals=[2, 9])
        lab.claim("static", static[2:], equals=[each_and_spare] * (STEPS - 2))
        lab.claim("zeros", totals[:2], equals=[8, 9])
        lab.claim("nothing", unflagged[0], equals=[])
        names_flag = "find_unused_parameters" in error
        raised = [error.partition(":")[0], len(unflagged), names_flag]
        lab.claim("raises", raised, equals=["RuntimeError", 2, True])

    lab.claim_ratio("gpu-overlap", "reversed/as-called", at_least=1.05, lacks=lacks)
    if lacks:
        return
    lab.stage("two GPUs")
    orders = ("reversed", "as-called")
    lab.race(**{order: lab.arm(order, time_steps, order, prefix=TORCHRUN) for order in orders})
