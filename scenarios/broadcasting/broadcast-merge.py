"""Split the weight instead of tiling the input.

A layer often needs features of every step and one vector of the whole sequence. The usual code
repeats the vector for every step and concatenates: the layer then multiplies the same vector again
at each step. But a linear layer of a concatenation is a sum of two: W [a, b] = Wa a + Wb b. Wa and
Wb are column blocks of the same W. Compute Wb b once for each sequence, and let the addition
broadcast it over the steps. Nothing is tiled, and nothing is concatenated. Autograd keeps a and the
small b for backward instead of the tiled pair.

The source prints another identity: f(m(x + y)) = f(mx + my). This is the distributive law for a sum
of two inputs. But a and b have different widths, so they have no sum. The law leads to the split
only after padding with zeros: [a, b] = [a, 0] + [0, b]. The source also gives each part a layer of
its own. Its two layers have two biases, and only the sum of the biases matters.

The gain grows with the share of b in the input. With a b much narrower than a there is none. The
split layer calls 11 operators, the tiled layer 7. Each has far less to do, but on small tensors the
four calls cost the gain. On a GPU, tensors are small if it computes faster than the CPU launches.
So a GPU gets more sequences here than a CPU. The chart shows the operations of both layers in
GFLOP, for b from narrow to twice as wide as asked for.

In practice: keep one `nn.Linear`, and split its weight:
`wa, wb = linear.weight.split([own, shared], dim=-1)`, then
`F.linear(a, wa, linear.bias) + F.linear(b, wb)`. Add the bias once, and apply the activation after
the addition.
## Predict
At 64 features for a step, 512 shared ones and 256 steps: how many times fewer operations does the
split layer need?
## Look for
- [same-numbers] in float64 the tiled and the split layer give the same numbers to 1e-12
- [any-shapes] if the inputs broadcast, (5, 1, features) with (1, 3, shared features), the tiled and
  the split layer give the same numbers to 1e-12
- [no-sum] the inputs of the source, (5, 3, 5) and (5, 1, 6), have no sum: + raises a RuntimeError
- [padded] for inputs that are padded with zeros, the identity of the source gives the numbers of
  the split layer to 1e-12
- [two-biases] two layers of their own give the numbers of the one layer to 1e-12, if their biases
  add up to its bias
- [no-activation] the layer of the source, called as it was made, raises a TypeError: its activation
  is None
- [source-shape] at the size of the source both layers give (5, 3, 10)
- [source-operations] at the size of the source operations fall from 3300 to 2100
- [source-bytes] at the size of the source bytes kept for backward fall from 1260 to 1020
- [quarter-operations] the split layer needs at most a quarter of the operations
- [half-bytes] the split layer keeps at most half of the bytes for backward
- [twice-as-fast] the forward of the split layer is at least twice as fast
## Try next
`--shared 8`: b is narrower than a, and hardly anything was computed twice. 89 % of the operations
remain. With four operators more to call, expect the split layer to be no faster.
refutes: quarter-operations, half-bytes
`--batch 8 --device cuda`: the counts stay the same. But expect that a large GPU waits for launches,
and that the gain in speed is gone.
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly",
https://github.com/vahidk/EffectivePyTorch: shorter, and less memory. At its size (5 x 3 x 5 with
5 x 1 x 6, 10 units) 36 % of the operations are saved. The identity that it prints needs padding.
Ours: the blocks of the weight, the speed and the sweep.
"""

import torch
import torch.nn.functional as F

from tuilab import Lab


def tile(a, b, weight, bias):
    # (batch, steps, own), (batch, 1, shared), (units, own + shared), (units,)
    tiled = b.expand(-1, a.shape[1], -1)  # (batch, steps, shared)
    both = torch.cat([a, tiled], dim=-1)  # (batch, steps, own + shared)
    return F.linear(both, weight, bias).relu()


def split_as_in_the_source(a, b, weight, bias, activation=None):
    of_a, of_b = weight.split([a.shape[-1], b.shape[-1]], dim=-1)  # views, not copies
    steps = F.linear(a, of_a, bias)  # (batch, steps, units)
    sequences = F.linear(b, of_b)  # (batch, 1, units)
    return activation(steps + sequences)


def split(a, b, weight, bias):
    return split_as_in_the_source(a, b, weight, bias, torch.relu)


def use_two_layers(a, b, weight, bias):
    """Give each part a weight and a bias of its own, as the two layers of the source have."""
    of_a, of_b = weight.split([a.shape[-1], b.shape[-1]], dim=-1)
    bias_of_b = 0.25 * bias
    return (F.linear(a, of_a, bias - bias_of_b) + F.linear(b, of_b, bias_of_b)).relu()


def draw(batch, steps, own, shared, units, device, dtype=torch.float32):
    """Return a, b, weight and bias."""
    a = torch.randn(batch, steps, own, dtype=dtype, device=device)
    b = torch.randn(batch, 1, shared, dtype=dtype, device=device)
    weight = torch.randn(units, own + shared, dtype=dtype, device=device)
    bias = torch.randn(units, dtype=dtype, device=device)
    scaled = weight / (own + shared) ** 0.5
    return a, b, torch.nn.Parameter(scaled), torch.nn.Parameter(bias)


def largest_gap(x, y):
    return (x - y).abs().max()


def compare_numbers(lab, batch, own, shared, units, device):
    lab.stage("comparing numbers")
    a, b, weight, bias = draw(max(5, batch), 4, own, shared, units, device, torch.float64)
    tiled = tile(a, b, weight, bias)
    lab.claim("same-numbers", largest_gap(tiled, split(a, b, weight, bias)), at_most=1e-12)
    two_layers = use_two_layers(a, b, weight, bias)
    lab.claim("two-biases", largest_gap(tiled, two_layers), at_most=1e-12)

    few_steps = a[:5, :1]  # (5, 1, own)
    few_sequences = b[:3].transpose(0, 1)  # (1, 3, shared)
    tiled = tile(few_steps.expand(5, 3, -1), few_sequences.expand(5, 3, -1), weight, bias)
    parted = split(few_steps, few_sequences, weight, bias)
    lab.claim("any-shapes", largest_gap(tiled, parted), at_most=1e-12)


def try_printed_identity(lab, device):
    """Apply m(x + y) = mx + my to the inputs of the source, as they are and padded with zeros."""
    a, b, weight, bias = draw(5, 3, 5, 6, 10, device, torch.float64)
    error = lab.raises(torch.add, a, b)
    lab.claim("no-sum", error.partition(":")[0], equals="RuntimeError")
    x = F.pad(a, (0, 6))  # (5, 3, 11): a, then zeros
    y = F.pad(b, (5, 0))  # (5, 1, 11): zeros, then b
    of_sum = F.linear(x + y, weight, bias).relu()
    lab.claim("padded", largest_gap(of_sum, split(a, b, weight, bias)), at_most=1e-12)


def count_at_size_of_source(lab, device):
    tensors = draw(5, 3, 5, 6, 10, device)
    tiled = lab.count(tile, *tensors)
    parted = lab.count(split, *tensors)
    shapes = [list(tiled.value.shape), list(parted.value.shape)]
    lab.claim("source-shape", shapes, equals=[[5, 3, 10], [5, 3, 10]])
    lab.claim("source-operations", [tiled.flops, parted.flops], equals=[3300, 2100])
    lab.claim("source-bytes", [tiled.saved_bytes, parted.saved_bytes], equals=[1260, 1020])
    error = lab.raises(split_as_in_the_source, *tensors)
    lab.claim("no-activation", error, equals="TypeError: 'NoneType' object is not callable")


def run(
    lab: Lab,
    batch: int = 0,  # sequences; 0 is 32 on a CPU (8 with --quick) and 1024 on a GPU, 0..1024
    steps: int = 256,  # of a sequence, 1..4096
    own: int = 64,  # features of every step, 1..4096
    shared: int = 512,  # features of the whole sequence, 1..4096
    units: int = 256,  # outputs of the layer, 1..4096
) -> None:
    device = lab.device()
    if batch == 0:
        batch = 8 if lab.is_quick else 32
        if device.type == "cuda":
            batch = 1024
    tensors = draw(batch, steps, own, shared, units, device)

    @lab.once
    def exact():
        lab.axes("gflop", x="features of b", y="operations, GFLOP")
        narrow = max(1, shared // 16)
        widths = range(narrow, 2 * shared + 1, narrow)
        for width in lab.sweep(widths, "counting operations for b from narrow to wide"):
            on_meta = draw(batch, steps, own, width, units, "meta")  # shapes without numbers
            lab.log(width, arm="tile", gflop=lab.count(tile, *on_meta).flops / 1e9)
            lab.log(width, arm="split", gflop=lab.count(split, *on_meta).flops / 1e9)

        compare_numbers(lab, batch, own, shared, units, device)
        try_printed_identity(lab, device)
        lab.stage("counting operations and bytes")
        count_at_size_of_source(lab, device)
        tiled = lab.count(tile, *tensors)
        parted = lab.count(split, *tensors)
        operations = parted.flops / tiled.flops
        kept = parted.saved_bytes / tiled.saved_bytes
        lab.claim("quarter-operations", operations, at_most=0.25, answers=1 / operations)
        lab.claim("half-bytes", kept, at_most=0.5)

    lab.stage("timing both")
    lab.claim_ratio("twice-as-fast", "tile/split", at_least=2)
    lab.race(
        tile=lambda: tile(*tensors),
        split=lambda: split(*tensors),
        same=1e-4,
        seconds=0.5,
        device=device,
    )
