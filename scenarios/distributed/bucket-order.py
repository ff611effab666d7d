"""find_unused_parameters keeps DDP's buckets in the order of the constructor: build the layers as forward calls them.

DDP sends gradients while backward computes the next ones. It puts them in buckets of `bucket_cap_mb` and hands a full one over
to be all-reduced. The buckets go in one order, the same on all ranks: one that is not full holds up those behind it. Before the
first backward nobody knows in which order gradients come. DDP takes the parameters of the constructor, from the last to the
first; the first step makes one bucket of all. Then DDP makes the buckets again, in the order that it saw.

With `find_unused_parameters=True` that order may change from step to step, so DDP never makes them again. A net that builds its
layers in another order than it calls them (the head first, or a decoder before its encoder) has the last gradient in its first
bucket: all wait until backward is over. That costs no byte and raises nothing, but no byte travels while backward computes.

The flag is for parameters that a forward does not use. Without it DDP waits for a gradient that never comes: that step sends
only what stands before it, the first nothing, and the next one says so. Where the same ones are unused in every step,
`static_graph=True` does as well, and makes the buckets again after two steps. The gradient of what is unused is zeros, and is
sent all the same.
The process here is alone in its group. DDP makes and hands over buckets as it does among many, and a hook notes when.
## Predict
A net builds its 8 layers in reversed order, with find_unused_parameters: how many gradients are there when a bucket goes first?
## Look for
- [first] by default the first step hands over one bucket, after all 8 gradients
- [again] in later steps a bucket goes after each gradient, although the layers were built in reversed order
- [as-called] with find_unused_parameters it does so where the layers were built as they are called, from the first step on
- [reversed] built in reversed order, no bucket of any step goes before the 8th gradient
- [exposed] if the network takes as long for a MiB as backward, 2 MiB of 9 travel after backward; reversed, all 9
- [static] with static_graph=True a bucket goes after each gradient from the third step on, built in reversed order
- [zeros] the unused layer makes 9 MiB of 8
- [nothing] with an unused layer and no flag, the first step sends 0 bytes
- [raises] and the second one raises a RuntimeError that names find_unused_parameters
## Try next
`--built as-called`: the cure. refutes: reversed, exposed
`--cap 25`: what DDP takes by itself. All is one bucket, and nothing overlaps. refutes: again, as-called, exposed, static
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 27,
https://www.toymoban.com/news/detail-808122.html: with find_unused_parameters=True let the order of layers in the constructor
match that of the execution. Ours: after which gradient a bucket is sent, and static_graph.
"""

from typing import Literal

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

LAYERS, WIDTH, STEPS, MIB = 8, 512, 4, 2**20  # the weight of a layer is 1 MiB


class Net(nn.Module):
    def __init__(self, built, has_spare):
        super().__init__()
        if has_spare:
            self.spare = nn.Linear(WIDTH, WIDTH, bias=False)  # forward does not use it
        for number in range(LAYERS) if built == "as-called" else reversed(range(LAYERS)):
            setattr(self, f"layer{number}", nn.Linear(WIDTH, WIDTH, bias=False))

    def forward(self, x):  # (rows, WIDTH)
        for number in range(LAYERS):
            x = getattr(self, f"layer{number}")(x).relu()
        return x


def train(sent, built, has_spare=False, **options):
    """Note of each step its buckets in `sent`: how many gradients were there when one was handed over, and its bytes."""
    net, gradients = DistributedDataParallel(Net(built, has_spare), **options), []

    def hook(state, bucket):  # DDP calls it to have a bucket all-reduced
        sent[-1].append((len(gradients), bucket.buffer().nbytes))
        return allreduce_hook(None, bucket)

    net.register_comm_hook(None, hook)
    for weight in net.parameters():
        weight.register_post_accumulate_grad_hook(gradients.append)
    for _ in range(STEPS):
        gradients.clear()
        sent.append([])
        net(torch.randn(4, WIDTH)).sum().backward()


def run(
    lab: Lab,
    built: Literal["reversed", "as-called"] = "reversed",  # the order of layers in the constructor of the second arms
    cap: int = 1,  # bucket_cap_mb: MiB of a bucket, 1..25
) -> None:
    spare = {"has_spare": True, "bucket_cap_mb": cap}
    arms = {
        "default": (built, {"bucket_cap_mb": cap}),
        "find_unused, as called": ("as-called", {**spare, "find_unused_parameters": True}),
        f"find_unused, {built}": (built, {**spare, "find_unused_parameters": True}),
        "static_graph": (built, {**spare, "static_graph": True}),
    }
    lab.axes("gradients_there", x="bucket of the last step", y="gradients that are there when it goes")
    there, after, nbytes = [], [], []
    with lab.group():
        for arm, (order, options) in lab.sweep(arms.items(), "arms"):
            train(steps := [], order, **options)
            there.append([[gradients for gradients, _ in step] for step in steps])
            nbytes.append(sum(size for _, size in steps[-1]))
            lab.span("backward", 0, LAYERS, "computes", arm=arm, unit="gradients")
            ended = 0
            for number, (gradients, size) in enumerate(steps[-1]):  # a model: a MiB travels as long as one is computed
                lab.log(number + 1, arm=arm, gradients_there=gradients)
                began = max(ended, gradients)
                ended = began + size / MIB
                lab.span("network", began, ended, "sends", arm=arm, unit="gradients")
            after.append(ended - LAYERS)
        lab.stage("an unused layer without a flag")
        sent = []
        said = lab.raises(lambda: train(sent, built, **spare))
    lab.text(said, title="the second step, without a flag")
    each = [*range(1, LAYERS + 1)]
    lab.claim("first", there[0][0], equals=[LAYERS])
    lab.claim("again", there[0][1:], equals=[each] * (STEPS - 1))
    lab.claim("as-called", there[1], equals=[[*each, LAYERS]] * STEPS)  # the unused layer is in the last bucket
    lab.claim("reversed", min(min(step) for step in there[2]), equals=LAYERS, answers=True)
    lab.claim("exposed", after[1:3], equals=[2, 9])
    lab.claim("static", there[3][2:], equals=[[*each, LAYERS]] * (STEPS - 2))
    lab.claim("zeros", [size / MIB for size in nbytes[:2]], equals=[8, 9])
    lab.claim("nothing", sent[0], equals=[])
    lab.claim("raises", [said.split(":")[0], len(sent), "find_unused_parameters" in said], equals=["RuntimeError", 2, True])
