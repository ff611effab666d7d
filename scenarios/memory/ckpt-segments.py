"""Cut a net into several checkpoints: a single one around everything saves nothing.

Backward needs activations that forward computed. A block of this lesson keeps three activations,
and 32 blocks keep 96. A checkpoint around a segment of blocks keeps only the input of the segment.
In backward it computes the inside of the segment again, to the same bits.

The gain depends on the number of segments. After forward, n segments hold n activations. Backward
computes the inside of one segment at a time, which adds 96/n activations. So one segment around the
whole net saves nothing: backward then has all 96 activations in memory. The sum n + 96/n is
smallest near n = 10, and the chart has a valley there. If the weights need more memory than the
activations, the valley is flat, because checkpoints do not change the memory of weights.

The price in time hardly depends on n. Forward is a third of the arithmetic of a step. It runs
twice, except for the last product of each segment. Side effects also happen twice: a batch norm
counts its batch again. Dropout draws the same mask again, but only because `preserve_rng_state` is
on by default.

In practice: checkpoint each block of a deep net, or groups of a few blocks, with
`use_reentrant=False`. Accept the longer step only if memory limits the batch or the model. The
lesson ckpt-targets shows which layers to choose. The lesson selective-ckpt shows how much larger
the batch can be.
## Predict
The net is cut into 4 checkpoints. What share of the peak memory of a step without checkpoints is
left, from 0 to 1?
## Look for
- [gradients] the gradients are bitwise equal with and without checkpoints
- [activations] a net in n checkpoints keeps n activations for backward
- [one-segment] one checkpoint around the whole net lowers the peak of a step by less than 2 %
- [quarter-less] the chosen number of checkpoints, by default 4, lowers the peak of a step by 25 %
  or more
- [valley] with 2 checkpoints, and with one around each block, the peak is at least 1.15 times that
  of the best number
- [products-again] backward with checkpoints computes all matrix products of forward again, except
  the last product of each segment
- [batch-norm] a batch norm inside a checkpoint counts its batch twice
- [slower] if matrix products take most of a step, the step takes at least 1.2 times as long with
  checkpoints
## Try next
`--dropout 0.1 --forget-rng`: backward draws other masks. The last mask of a segment is saved after
the last product, so that product is also repeated. refutes: gradients, products-again
`--segments 1`: the peak does not fall, and the step still takes longer. refutes: quarter-less
`--rows 64`: the weights need more memory than the activations, and the peak hardly falls with
checkpoints. refutes: quarter-less, valley
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 8,
https://www.toymoban.com/news/detail-808122.html: keep the inputs of a few layers, and compute the
rest again. Ours: the experiment and the price.
"""

from functools import partial

import torch
import torch._dynamo  # the first checkpoint imports it: a second that no step should pay for
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.inside = nn.Sequential(
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x):  # (rows, width)
        return x + self.inside(x)


def build_net(blocks, width, rows, dropout, device):
    """Return a net and its input, the same in each call."""
    torch.manual_seed(0)
    with device:
        net = nn.Sequential(*[Block(width, dropout) for _ in range(blocks)])
        x = torch.randn(rows, width)
    return net, x


def forward(net, x, segments, keeps_rng=True):  # (rows, width); 0 segments have no checkpoint
    if segments == 0:
        return net(x)
    for k in range(segments):
        start = k * len(net) // segments
        end = (k + 1) * len(net) // segments
        part = net[start:end]
        x = checkpoint(part, x, use_reentrant=False, preserve_rng_state=keeps_rng)
    return x


def step(net, x, segments):
    torch.manual_seed(0)
    net.zero_grad()
    forward(net, x, segments).sum().backward()
    return net[0].inside[0].bias.grad


def measure(lab, build, segments, keeps_rng, timeline=False):
    """Return the memory of a step, the bytes alive after its forward, and its gradients."""
    with lab.memory("step", arm=f"{segments} segments", timeline=timeline) as memory:
        net, x = build()
        total = forward(net, x, segments, keeps_rng).sum()
        after_forward = memory.live_bytes
        total.backward()
    gradients = [weight.grad for weight in net.parameters()]
    return memory, after_forward, gradients


def are_equal(gradients, others):
    for gradient, other in zip(gradients, others, strict=True):
        if not torch.equal(gradient, other):
            return False
    return True


def choose_counts(blocks, segments):
    """Return the numbers of segments for the sweep: 0, 1, powers of two, and the chosen number."""
    counts = {0, 1, segments, blocks}
    for count in (2, 4, 8, 16):
        if count < blocks:
            counts.add(count)
    return sorted(counts)


def claim_memory(lab, build, counts, segments, keeps_rng):
    lab.axes("mb", x="segments, 0 is no checkpoint", y="memory, MB")
    peaks = {}
    kept = []
    equal = []
    plain = None
    for count in lab.sweep(counts, "memory against the number of segments"):
        memory, after_forward, gradients = measure(lab, build, count, keeps_rng)
        lab.log(count, arm="peak of the step", mb=memory.peak_bytes / 1e6)
        lab.log(count, arm="after forward", mb=after_forward / 1e6)
        peaks[count] = memory.peak_bytes
        if count == 0:
            plain = gradients
        else:
            equal.append(are_equal(gradients, plain))
            kept.append(memory.saved_bytes)
    blocks = counts[-1]
    lowest = min(peaks.values())
    _, x = build()
    activations = [saved / x.nbytes for saved in kept]
    lab.claim("gradients", all(equal))
    lab.claim("activations", activations, equals=counts[1:])
    lab.claim("one-segment", peaks[1] / peaks[0], at_least=0.98)
    lab.claim("quarter-less", peaks[segments] / peaks[0], at_most=0.75, answers=True)
    lab.claim("valley", min(peaks[2], peaks[blocks]) / lowest, at_least=1.15)


def claim_products(lab, build, segments, keeps_rng):
    net, x = build()
    flops_of_product = 2 * x.shape[0] * x.shape[1] ** 2
    products = {}
    for count in (0, segments):
        lab.stage(f"a step with {count} segments")
        measure(lab, build, count, keeps_rng, timeline=True)
        products[count] = lab.count(step, net, x, count).flops / flops_of_product
    repeated = products[segments] - products[0]
    lab.claim("products-again", repeated, equals=2 * len(net) - segments)


def claim_batch_norm(lab):
    norm = nn.BatchNorm1d(2)
    part = nn.Sequential(norm, nn.ReLU())
    x = torch.ones(3, 2, requires_grad=True)
    checkpoint(part, x, use_reentrant=False).sum().backward()
    lab.claim("batch-norm", norm.num_batches_tracked, equals=2)


def run(
    lab: Lab,
    blocks: int = 32,  # residual blocks of two Linears, 2..128 (quick 16)
    width: int = 0,  # features; 0 is 64 on a CPU and 1024 on a GPU, 0..4096
    rows: int = 0,  # of the batch; 0 is 2048 on a CPU (1024 with --quick), 8192 on a GPU, 0..65536
    segments: int = 4,  # the chosen number of checkpoints, 1..128
    dropout: float = 0.0,  # share that the dropout in each block drops, 0..0.9
    forget_rng: bool = False,  # turn preserve_rng_state off
) -> None:
    device = lab.device()
    if device.type == "cuda":
        usual_width, usual_rows = 1024, 8192
    elif lab.is_quick:
        usual_width, usual_rows = 64, 1024
    else:
        usual_width, usual_rows = 64, 2048
    segments = min(segments, blocks)
    width = width or usual_width
    rows = rows or usual_rows
    build = partial(build_net, blocks, width, rows, dropout, device)

    @lab.once
    def exact():
        counts = choose_counts(blocks, segments)
        claim_memory(lab, build, counts, segments, not forget_rng)
        claim_products(lab, build, segments, not forget_rng)
        claim_batch_norm(lab)

    lab.stage("the price")
    net, x = build()
    lab.claim_ratio("slower", "ckpt/plain", at_least=1.2)
    lab.race(
        plain=lambda: step(net, x, 0),
        ckpt=lambda: step(net, x, segments),
        same=1e-6,
        seconds=0.5,
        device=device,
    )
