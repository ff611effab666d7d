"""Split the weight instead of tiling the input.

To feed a layer with features of every step and one vector of the whole sequence, the vector is usually repeated for every
step and concatenated: the layer then multiplies the same vector again at each step. But a linear layer of a concatenation is a
sum of two linear layers, W [a, b] = Wa a + Wb b, where Wa and Wb are column blocks of the same W. Compute Wb b once for each
sequence and let the addition broadcast it over the steps. Nothing is tiled, nothing is concatenated, and what is kept for
backward is a and the small b instead of the tiled pair. The gain grows with the share of b in the input; with a b much
narrower than a there is none. Add the bias only once, and add the two parts before applying the nonlinearity. Any two shapes
will do whose dimensions broadcast, but for the last. The split layer calls more operators than the tiled one (11, not 7), each
with far less to do: on small tensors that costs what was saved. Small for a GPU is what it has done before the next launch
arrives: then it is launch-bound, and its time that of launches, not of operations. So it gets more sequences here than a CPU.
The chart shows the operations of both ways, in GFLOP, for b from narrow to twice as wide as asked for.
## Predict
At 64 features a step, 512 shared ones and 256 steps: how many times fewer operations does the split layer need?
## Look for
- [same-numbers] both ways give the same numbers, to 1e-12 in float64
- [any-shapes] so they do where both broadcast: (5, 1, features) with (1, 3, shared features)
- [no-activation] the layer of the source, called as it was made, fails: its activation is None
- [source-shape] at the size of the source both give (5, 3, 10)
- [source-operations] at the size of the source operations fall from 3300 to 2100
- [source-bytes] at the size of the source bytes kept for backward fall from 1260 to 1020
- [quarter-operations] the split layer needs at most a quarter of the operations
- [half-bytes] the split layer keeps at most half of the bytes for backward
- [twice-as-fast] the split layer's forward is at least twice as fast
## Try next
`--shared 8`: b is narrower than a, and hardly anything was computed twice. 89 % of the operations remain, and with four
operators more to call expect the split layer to be no faster. refutes: quarter-operations, half-bytes
`--batch 8 --device cuda`: nothing of what is counted changes, but expect a large GPU to be launch-bound, and the speed gone.
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly", https://github.com/vahidk/EffectivePyTorch: shorter, and less
memory. At its size (5 x 3 x 5 with 5 x 1 x 6, 10 units) 36 % of the operations are saved. Ours: the speed and the sweep.
"""

import torch
import torch.nn.functional as F

from tuilab import Lab


def tile(a, b, weight, bias):  # (batch, steps, own), (batch, 1, shared), (units, own + shared), (units,)
    both = torch.cat([a, b.expand(-1, a.shape[1], -1)], dim=-1)  # (batch, steps, own + shared)
    return F.linear(both, weight, bias).relu()


def as_in_the_source(a, b, weight, bias, activation=None):
    of_a, of_b = weight.split([a.shape[-1], b.shape[-1]], dim=-1)  # views, not copies
    return activation(F.linear(a, of_a, bias) + F.linear(b, of_b))  # (batch, steps, units) + (batch, 1, units)


def split(a, b, weight, bias):
    return as_in_the_source(a, b, weight, bias, torch.relu)


def make(batch, steps, own, shared, units, device, dtype=torch.float32):
    """Return a, b, weight and bias."""
    shapes = (batch, steps, own), (batch, 1, shared), (units, own + shared), (units,)
    a, b, weight, bias = (torch.randn(shape, dtype=dtype, device=device) for shape in shapes)
    return a, b, torch.nn.Parameter(weight / (own + shared) ** 0.5), torch.nn.Parameter(bias)


def run(
    lab: Lab,
    batch: int = 0,  # sequences; 0 is 32 on a CPU (8 with --quick) and 1024 on a GPU, 0..1024
    steps: int = 256,  # of a sequence, 1..4096
    own: int = 64,  # features of every step, 1..4096
    shared: int = 512,  # features of the whole sequence, 1..4096
    units: int = 256,  # outputs of the layer, 1..4096
) -> None:
    device = lab.device()
    batch = batch or (1024 if device.type == "cuda" else 8 if lab.is_quick else 32)
    tensors = make(batch, steps, own, shared, units, device)

    @lab.once
    def exact():
        lab.axes("gflop", x="features of b", y="operations, GFLOP")
        widths = range(max(1, shared // 16), 2 * shared + 1, max(1, shared // 16))
        for width in lab.sweep(widths, "counting operations for b from narrow to wide"):
            on_paper = make(batch, steps, own, width, units, "meta")  # shapes without numbers: nothing is computed
            for arm in (tile, split):
                lab.log(width, arm=arm.__name__, gflop=lab.count(arm, *on_paper).flops / 1e9)

        lab.stage("comparing results, operations and bytes")
        precise = make(max(5, batch), 4, own, shared, units, device, torch.float64)
        gap = (tile(*precise) - split(*precise)).abs().max()
        lab.claim("same-numbers", gap, at_most=1e-12)
        a, b, *layer = precise
        a, b = a[:5, :1], b[:3].transpose(0, 1)  # (5, 1, own), (1, 3, shared)
        gap = (tile(a.expand(5, 3, -1), b.expand(5, 3, -1), *layer) - split(a, b, *layer)).abs().max()
        lab.claim("any-shapes", gap, at_most=1e-12)
        toy = make(5, 3, 5, 6, 10, device)
        tiled, parted = (lab.count(arm, *toy) for arm in (tile, split))
        lab.claim("source-shape", [list(counted.value.shape) for counted in (tiled, parted)], equals=[[5, 3, 10]] * 2)
        lab.claim("source-operations", [tiled.flops, parted.flops], equals=[3300, 2100])
        lab.claim("source-bytes", [tiled.saved_bytes, parted.saved_bytes], equals=[1260, 1020])
        lab.claim("no-activation", lab.raises(as_in_the_source, *toy), equals="TypeError: 'NoneType' object is not callable")
        tiled, parted = (lab.count(arm, *tensors) for arm in (tile, split))
        lab.claim("quarter-operations", parted.flops / tiled.flops, at_most=0.25, answers=tiled.flops / parted.flops)
        lab.claim("half-bytes", parted.saved_bytes / tiled.saved_bytes, at_most=0.5)

    lab.stage("timing both")
    lab.claim_ratio("twice-as-fast", "tile/split", at_least=2)
    lab.race(tile=lambda: tile(*tensors), split=lambda: split(*tensors), same=1e-4, seconds=0.5, device=device)
