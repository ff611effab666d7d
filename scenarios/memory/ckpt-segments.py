"""Checkpoints trade a third more arithmetic for memory, but only if the net is cut into segments.

Backward needs what forward computed: of each block here three activations, 96 in all. A checkpoint around a segment of blocks
keeps the segment's input alone (ckpt-targets tells which layers suit), and computes the inside again, to the same bits. After
forward n segments hold n activations; in backward the inside of one is added, 96/n. One segment around everything therefore
saves nothing: its inside is the whole net, just later. The sum is smallest near n = 10: the chart has a valley, unless weights
outweigh activations. The price hardly depends on n: forward is a third of a step's arithmetic, and nearly all of it is done
twice. So are side effects: a BatchNorm counts its batch again, and dropout is drawn as before only under `preserve_rng_state`.
## Predict
One checkpoint is put around the whole net. What share of a step's peak is left, from 0 to 1?
## Look for
- [gradients] gradients with checkpoints are bitwise equal to those without
- [activations] with checkpoints a net keeps one activation per segment for backward
- [one-segment] one segment around the whole net lowers the peak of a step by less than 2 %
- [quarter-less] the chosen number of segments lowers the peak by a quarter or more
- [valley] the best number of segments peaks at least 1.15 times lower than 2 segments, and than one for each block
- [products-again] forward's matrix products are done again, except the last of each segment
- [batch-norm] a BatchNorm inside a checkpoint counts its batch twice
- [slower] where matrix products are most of a step, it takes at least 1.2 times as long
## Try next
`--dropout 0.1 --forget-rng`: other masks; the last one is saved behind the last product; refutes: gradients, products-again
`--segments 1`: the peak stays, the time is spent all the same; refutes: quarter-less
`--rows 64`: weights outweigh activations, the peak stays; refutes: quarter-less, valley
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 8,
https://www.toymoban.com/news/detail-808122.html. Ours: the experiment and the price.
"""

import torch
import torch._dynamo  # the first checkpoint would load it: a second or two, which no step is to pay
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.Dropout(dropout))

    def forward(self, x):
        return x + self.inside(x)


def forward(net, x, segments, keeps_rng=True):  # x (rows, width)
    for k in range(segments):
        part = net[k * len(net) // segments : (k + 1) * len(net) // segments]
        x = checkpoint(part, x, use_reentrant=False, preserve_rng_state=keeps_rng)
    return x if segments else net(x)


def step(net, x, segments):
    torch.manual_seed(0)
    net.zero_grad()
    forward(net, x, segments).sum().backward()
    return net[0].inside[0].bias.grad


def run(
    lab: Lab,
    blocks: int = 32,  # residual blocks of two Linears, 2..128 (quick 16)
    width: int = 0,  # features; 0 is 64 on a CPU and 1024 on a GPU, 0..4096
    rows: int = 0,  # rows of the batch; 0 is 2048 on a CPU (1024 with --quick) and 8192 on a GPU, 0..65536
    segments: int = 4,  # the chosen number of checkpoints, 1..128
    dropout: float = 0.0,  # share that the dropout in each block drops, 0..0.9
    forget_rng: bool = False,  # turn preserve_rng_state off
) -> None:
    device, segments = lab.device(), min(segments, blocks)
    usual = (1024, 8192) if device.type == "cuda" else (64, 1024 if lab.is_quick else 2048)
    width, rows = width or usual[0], rows or usual[1]

    def build():
        torch.manual_seed(0)
        with device:
            return nn.Sequential(*[Block(width, dropout) for _ in range(blocks)]), torch.randn(rows, width)

    def measure(n, timeline=False):
        with lab.memory("step", arm=f"{n} segments", timeline=timeline) as memory:
            net, x = build()
            total = forward(net, x, n, not forget_rng).sum()
            after_forward = memory.live_bytes
            total.backward()
        return memory, after_forward, [weight.grad for weight in net.parameters()]

    @lab.once
    def exact():
        lab.axes("mb", x="segments, 0 is no checkpoint", y="memory, MB")
        counts = sorted({0, 1, segments, blocks} | {n for n in (2, 4, 8, 16) if n < blocks})
        peak, kept, grads = {}, {}, {}
        for n in lab.sweep(counts, "memory against the number of segments; 0 is no checkpoint"):
            memory, after_forward, grads[n] = measure(n)
            peak[n], kept[n] = memory.peak_bytes, memory.saved_bytes / (4 * rows * width)
            lab.log(n, arm="peak of the step", mb=peak[n] / 1e6)
            lab.log(n, arm="after forward", mb=after_forward / 1e6)
        lab.claim("gradients", all(torch.equal(*pair) for n in counts for pair in zip(grads[n], grads[0], strict=True)))
        lab.claim("activations", [*kept.values()][1:], equals=counts[1:])
        lab.claim("one-segment", peak[1] / peak[0], at_least=0.98, answers=True)
        lab.claim("quarter-less", peak[segments] / peak[0], at_most=0.75)
        lab.claim("valley", min(peak[2], peak[blocks]) / min(peak.values()), at_least=1.15)
        (net, x), products = build(), {}
        for n in (0, segments):
            lab.stage(f"the course of a step with {n} segments")
            measure(n, timeline=True)
            products[n] = lab.count(step, net, x, n).flops / (2 * rows * width**2)
        lab.claim("products-again", products[segments] - products[0], equals=2 * blocks - segments)
        norm = nn.BatchNorm1d(2)
        checkpoint(nn.Sequential(norm, nn.ReLU()), torch.ones(3, 2, requires_grad=True), use_reentrant=False).sum().backward()
        lab.claim("batch-norm", norm.num_batches_tracked, equals=2)

    lab.stage("the price")
    net, x = build()
    lab.claim_ratio("slower", "ckpt/plain", at_least=1.2)
    lab.race(plain=lambda: step(net, x, 0), ckpt=lambda: step(net, x, segments), same=1e-6, seconds=0.5, device=device)
