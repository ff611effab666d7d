"""Checkpoints trade a third more arithmetic for activations; cut the net into several segments.

Backward needs what forward computed: a plain step keeps three activations a block here, 96 in all. A checkpoint around a segment
of blocks keeps only the segment's input, and computes the inside again, with the very same bits, when backward arrives there.

How to cut? After forward, n segments hold n activations. During backward the inside of one segment comes on top, blocks/n times
three. One segment around everything therefore saves nothing: its inside is the whole net, only later. The sum is least near
sqrt(3 * blocks); the peak of a step keeps falling beyond that, because the gradients of the weights grow in backward while the
kept inputs are given back. The price hardly depends on n: nearly every matrix product of forward happens twice, which is a
third of a step (backward is two thirds) plus the Python around it.

Whatever has a side effect happens twice, too: a BatchNorm counts its batch twice. Dropout is drawn again as it was, as long as
`preserve_rng_state` stays on. And always write `use_reentrant=False`; the old variant loses gradients without a word when no
input requires one.

## Predict
How many times the memory of a plain step does one checkpoint around the whole net need at the peak?
## Look for
- gradients with checkpoints are bitwise those without
- after forward, a checkpointed net holds one activation per segment
- one segment around the whole net does not lower the peak of a step
- the chosen number of segments lowers the peak of a step by a quarter or more
- backward computes every matrix product of forward again, except the last of each segment
- a BatchNorm inside a checkpoint counts its batch twice
- a checkpointed step takes at least 1.2 times as long: it depends on how much of a step is matrix products
## Try next
`--dropout 0.1 --forget-rng`: the second forward draws another mask, and the gradients are REFUTED.
`--segments 1`: the peak is where it was.
`--rows 32 --width 512`: weights and gradients outweigh activations, and the peak hardly moves.
## Source
Tip 8 of "28 PyTorch best practices" (after the official Performance Tuning Guide) and the page on three memory tricks; neither
has a number for the price. The page says that a sigmoid saves its input; it saves its output. The measurement is ours.
"""

from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from tuilab import Lab


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.Dropout(dropout))

    def forward(self, x):
        return x + self.inside(x)


def forward(net, x, segments, keeps_rng=True):  # x (rows, width)
    if not segments:
        return net(x)
    for k in range(segments):
        part = net[k * len(net) // segments : (k + 1) * len(net) // segments]
        x = checkpoint(part, x, use_reentrant=False, preserve_rng_state=keeps_rng)
    return x


def step(net, x, segments):
    net.zero_grad()
    forward(net, x, segments).sum().backward()
    return net[0].inside[0].bias.grad


def run(
    lab: Lab,
    blocks: int = 32,  # residual blocks of two Linears, 2..128
    width: int = 256,  # features, 8..4096 (quick 128)
    rows: int = 512,  # rows of the batch, 1..65536 (quick 256)
    segments: int = 4,  # checkpoints that are timed against none, 1..128
    dropout: float = 0.0,  # dropout in each block, 0..0.9
    forget_rng: bool = False,  # do not restore the random state for the second forward
    device: Literal["auto", "cpu", "cuda"] = "auto",  # where the tensors live
) -> None:
    device = lab.device(device)
    activation = rows * width * 4  # bytes
    x = torch.randn(rows, width, device=device)
    counts = sorted({0, 1, segments, blocks} | {n for n in (2, 4, 8, 16) if n < blocks})
    held, peak, products, grads = {}, {}, {}, {}
    for n in counts:
        lab.stage(f"{n} segments" if n else "no checkpoint")
        timeline = n in (0, segments, blocks)
        with lab.memory("step", arm=f"{n} segments", timeline=timeline) as memory:
            torch.manual_seed(0)
            with device:
                net = nn.Sequential(*[Block(width, dropout) for _ in range(blocks)])
            weights = memory.live_bytes
            loss = forward(net, x, n, not forget_rng).sum()
            held[n] = memory.live_bytes - weights
            after=memory.live_bytes
            loss.backward()
        peak[n] = memory.peak_bytes
        products[n] = 0
        grads[n] = [p.grad for p in net.parameters()]
        lab.log(n, peak_mb=peak[n] / 1e6, after_forward_mb=held[n]/1e6, products=products[n])
        print(n, held[n]/activation, after/1e6, peak[n]/1e6, products[n])
