"""Keep float32 weights: bfloat16 loses small updates, and float16 also overflows.

Both dtypes have 16 bits. In float16, 10 bits are for digits and 5 for range. From 65520 on a number
is inf, and at 3e-8 and below it is 0. Squares of gradients reach 0 at once, and Adam adds them up.
The square of 0.0001 is 0, and so is Adam's eps of 1e-8. Adam divides by their sum. A factor on the
loss, before backward, moves the gradients into the range.

The dtype bfloat16 has the range of float32 and needs no factor. The price is digits. If an update
is half a step or less, the weight does not change. For a weight of 1 that is 2^-8 upwards. It is
2^-9 downwards, because below a power of two the steps are half as long. For float16 the limits
are 2^-11 and 2^-12. So a fit in bfloat16 stops when rate times gradient is as small as that, far
from the minimum. The loss stays flat as if training had converged. A factor on the loss does not
help, because the optimizer takes it out again before the update.

Lost updates have one remedy in both dtypes: a float32 weight takes the updates, and is cast to 16
bits for each forward. Mixed precision works this way. If memory has no room for it, round at
random: up with the probability of the part that would be lost. A single update can still be lost,
but a thousand updates arrive on average.

In practice: keep parameters and optimizer state in float32, and run the forward under
`torch.autocast("cuda", dtype=torch.bfloat16)`. Do not train after `model.bfloat16()` with a plain
optimizer. With float16 add `torch.amp.GradScaler`. It is the choice for GPUs before Ampere, and
wheels for CUDA 13 no longer support Volta (V100).
## Predict
A fit walks from 1 to 2 with the rate 0.01, 1000 steps in bfloat16. Which is the last step that
moves the weight?
## Look for
- [up] the largest power of two that is lost when added to 1 is 2^-11 in float16 and 2^-8 in
  bfloat16
- [down] the largest power of two that is lost when subtracted from 1 is 2^-12 in float16 and 2^-9
  in bfloat16
- [fit-bf16] in bfloat16 a fit from 1 to 2 with the rate 0.01 stops at 1.609, after 78 steps
- [fit-f16] in float16 a fit from 1 to 2 with the rate 0.01 stops at 1.951, after 289 steps
- [master] with a float32 weight and gradients in bfloat16 the fit ends within 0.01 of 2
- [random] rounded at random, 1000 bfloat16 weights of 1 are 0.9 on average after 1000 updates of
  0.0001, to 0.01
- [nearest] rounded to nearest, 1000 bfloat16 weights of 1 are all 1 after 1000 updates of 0.0001
- [overflow] in float16 65519 is 65504 and 65520 is inf; in bfloat16 both are 65536
- [squares] the squares of 0.0001 and 300 are 0 and inf in float16, 1.0012e-8 and 90112 in bfloat16
- [adam] one step of Adam with the gradient 0.0001 makes a float16 weight -inf, and leaves a
  bfloat16 weight of 1 at 1
## Try next
`--rate 0.1`: ten times the update, and the fit comes twelve times nearer. float16 stops at 1.996,
and bfloat16 at 1.969. refutes: fit-bf16, fit-f16
`--weight 0.5`: the steps above and below 0.5 are half as long as those around 1, and so is all that
is lost. The update divided by the weight decides. refutes: up, down
## Source
"Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic
mixed precision": range and digits of both. Ours: the lost updates, the fit, Adam and the random
rounding.
"""

import math

import torch

from tuilab import Lab

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
}
HALVES = ("float16", "bfloat16")
STEPS = 1000


def unchanged(weight):
    return weight


def fit(lab, arm, weight, rate, forward=unchanged):
    """Walk to 2 down the gradient of (weight - 2)² / 2.

    `forward` reads the weight. Return the last weight, and the last step that moved it.
    """
    last_moved = 0
    for step in range(1, STEPS + 1):
        gradient = (forward(weight) - 2).to(weight.dtype)
        stepped = weight - rate * gradient
        if stepped != weight:
            last_moved = step
        weight = stepped
        if step % 5 == 0:
            lab.log(step, arm=arm, weight=weight)
    return [weight.item(), last_moved]


def largest_lost(lab, weight, sign):
    """Return the largest power of two that changes nothing: half of the smallest that does."""

    def changes(power):
        return weight + sign * 2.0**-power != weight

    return 2.0 ** -(1 + lab.limit(changes, -10, 40))


def round_at_random(x):  # float32, to the numbers of bfloat16: the upper 16 bits
    noise = torch.randint(2**16, x.shape, device=x.device, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -(2**16)).view(torch.float32)


def weight_after_adam(dtype, device):
    weight = torch.ones(1, device=device, dtype=dtype, requires_grad=True)
    weight.grad = torch.full_like(weight, 0.0001)
    torch.optim.Adam([weight], foreach=False).step()
    return weight.item()


def claim_fits(lab, device, rate):
    lab.axes("weight", x="step", y="weight; it should come to 2")
    ends = {}
    for name in lab.sweep(DTYPES, "fitting"):
        start = torch.ones((), device=device, dtype=DTYPES[name])
        ends[name] = fit(lab, name, start, rate)
    master_weight = torch.ones((), device=device)  # float32
    master = fit(lab, "master of bfloat16", master_weight, rate, forward=torch.Tensor.bfloat16)
    lab.claim("fit-bf16", ends["bfloat16"], equals=[1.609375, 78], answers=ends["bfloat16"][1])
    lab.claim("fit-f16", ends["float16"], equals=[1.951171875, 289])
    lab.claim("master", master[0], equals=2, tolerance=0.01)


def claim_lost_updates(lab, device, weight):
    lab.stage("single updates")
    lost_up = []
    lost_down = []
    for name in HALVES:
        start = torch.tensor(weight, device=device, dtype=DTYPES[name])
        lost_up.append(largest_lost(lab, start, 1))
        lost_down.append(largest_lost(lab, start, -1))
    lab.claim("up", lost_up, equals=[2**-11, 2**-8])
    lab.claim("down", lost_down, equals=[2**-12, 2**-9])


def claim_rounding(lab, device):
    at_random = torch.ones(1000, device=device)
    nearest = torch.ones(1000, device=device)
    for _ in lab.steps(STEPS, "rounding at random"):
        at_random = round_at_random(at_random - 0.0001)
        nearest = (nearest - 0.0001).bfloat16().float()
    means = {
        "to nearest": nearest.mean().item(),
        "at random": at_random.mean().item(),
        "on paper": 0.9,
    }
    lab.bars("1 after 1000 updates of 0.0001", means)
    lab.claim("random", means["at random"], equals=0.9, tolerance=0.01)
    lab.claim("nearest", [nearest.min(), nearest.max()], equals=[1, 1])


def claim_range(lab, device):
    lab.stage("range")
    edges = torch.tensor([65519.0, 65520.0], device=device)
    rounded = [edges.half().tolist(), edges.bfloat16().tolist()]
    lab.claim("overflow", rounded, equals=[[65504, math.inf], [65536, 65536]])

    numbers = torch.tensor([0.0001, 300.0], device=device)
    squares = []
    weights = []
    rows = []
    for name in HALVES:
        of_small, of_large = numbers.to(DTYPES[name]).square().tolist()
        weight = weight_after_adam(DTYPES[name], device)
        squares.extend([of_small, of_large])
        weights.append(weight)
        rows.append((name, of_small, of_large, weight))
    head = ("dtype", "square of 0.0001", "square of 300", "1 after Adam")
    lab.table("out of range", rows, head=head)
    lab.claim("squares", squares, equals=[0, math.inf, 1.0012e-8, 90_112], tolerance=1e-11)
    lab.claim("adam", weights, equals=[-math.inf, 1])


def run(
    lab: Lab,
    rate: float = 0.01,  # of the fit
    weight: float = 1.0,  # that takes single updates, 0.01..100
) -> None:
    device = lab.device()
    claim_fits(lab, device, rate)
    claim_lost_updates(lab, device, weight)
    claim_rounding(lab, device)
    claim_range(lab, device)
