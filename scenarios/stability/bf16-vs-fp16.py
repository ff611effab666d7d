"""float16 fails with inf and 0, bfloat16 by standing still: each needs another cure.

Both have 16 bits. float16 spends 10 on digits and 5 on range: from 65520 on a number is inf, and at 3e-8 and below it is 0.
Squares of gradients are there at once, and Adam adds them up: the square of 0.0001 is 0, Adam's eps of 1e-8 is 0 too, and it
divides by their sum. Gradients themselves are moved into the range by a factor on the loss, before backward.

bfloat16 has the range of float32 and needs no factor. It pays with digits. A weight of 1 does not notice an update of half a
step, 2^-8 upwards and 2^-9 downwards: below a power of two the steps are half as long. For float16 these are 2^-11 and 2^-12.
So a fit in bfloat16 stops where rate times gradient is as small as that, far from the minimum, and the loss stays flat as if
training had converged. A factor on the loss is no help: the optimizer takes it out again before the update.

For lost updates the cure is one for both: a float32 weight that takes them, cast to 16 bits for each forward. Mixed precision
is built like that. Where memory has no room for it, round at random: up with the probability of the part that would be lost.
Single updates are lost still, but a thousand of them arrive on average.
## Predict
A fit walks from 1 to 2 with the rate 0.01, 1000 steps in bfloat16. Which is the last step that moves the weight?
## Look for
- [up] of the powers of two the largest that is lost when added to 1 is 2^-11 in float16 and 2^-8 in bfloat16
- [down] subtracted from 1 it is 2^-12 in float16 and 2^-9 in bfloat16
- [fit-bf16] the fit from 1 to 2 stops at 1.609 in bfloat16, after 78 steps
- [fit-f16] in float16 it stops at 1.951, after 289 steps
- [master] with a float32 weight and gradients in bfloat16 it ends within 0.01 of 2
- [random] rounded at random, 1000 bfloat16 weights are 0.9 on average after 1000 updates of 0.0001, to 0.01
- [nearest] rounded to nearest, they are all 1
- [overflow] 65519 is 65504 in float16 and 65520 is inf; in bfloat16 both are 65536
- [squares] the squares of 0.0001 and 300 are 0 and inf in float16, 1.0012e-8 and 90112 in bfloat16
- [adam] one step of Adam with the gradient 0.0001 makes a float16 weight -inf, and leaves a bfloat16 weight of 1 at 1
## Try next
`--rate 0.1`: ten times the update, and the fit comes twelve times nearer: float16 stops at 1.996, bfloat16 at 1.969.
refutes: fit-bf16, fit-f16
`--weight 0.5`: the steps above and below 0.5 are half as long as those around 1, and so is all that is lost. What counts is the
update divided by the weight. refutes: up, down
## Source
"Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic mixed precision": range and
digits of both. Ours: the lost updates, the fit, Adam and the random rounding.
"""

import math

import torch

from tuilab import Lab

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def fit(lab, arm, weight, rate, forward):
    """Walk to 2 down the gradient of (weight - 2)² / 2, as `forward` reads the weight, and return the last step that moved."""
    moved = 0
    for step in range(1, 1001):
        before, weight = weight, weight - rate * (forward(weight) - 2).to(weight.dtype)
        moved = moved if weight == before else step
        if step % 5 == 0:
            lab.log(step, arm=arm, weight=weight)
    return [weight.item(), moved]


def largest_lost(lab, weight, sign):
    """The largest power of two that changes nothing: half of the smallest that does."""
    return 2.0 ** -(1 + lab.limit(lambda k: weight + sign * 2.0**-k != weight, -10, 40))


def rounded_at_random(x):  # float32, to the numbers of bfloat16: the upper 16 bits
    noise = torch.randint(2**16, x.shape, device=x.device, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -(2**16)).view(torch.float32)


def adam(dtype, device):
    weight = torch.ones(1, device=device, dtype=dtype, requires_grad=True)
    weight.grad = torch.full_like(weight, 0.0001)
    torch.optim.Adam([weight], foreach=False).step()
    return weight.item()


def run(
    lab: Lab,
    rate: float = 0.01,  # of the fit
    weight: float = 1.0,  # that takes single updates, 0.01..100
) -> None:
    device = lab.device()
    lab.axes("weight", x="step", y="weight; it should come to 2")
    ends = {}
    for name in lab.sweep(DTYPES, "fitting"):
        ends[name] = fit(lab, name, torch.ones((), device=device, dtype=DTYPES[name]), rate, lambda weight: weight)
    master = fit(lab, "master of bfloat16", torch.ones((), device=device), rate, torch.Tensor.bfloat16)
    lab.claim("fit-bf16", ends["bfloat16"], equals=[1.609375, 78], answers=ends["bfloat16"][1])
    lab.claim("fit-f16", ends["float16"], equals=[1.951171875, 289])
    lab.claim("master", master[0], equals=2, tolerance=0.01)

    lab.stage("single updates")
    both = [torch.tensor(weight, device=device, dtype=DTYPES[name]) for name in ("float16", "bfloat16")]
    lab.claim("up", [largest_lost(lab, one, 1) for one in both], equals=[2**-11, 2**-8])
    lab.claim("down", [largest_lost(lab, one, -1) for one in both], equals=[2**-12, 2**-9])
    at_random = nearest = torch.ones(1000, device=device)
    for _ in lab.steps(1000, "rounding at random"):
        at_random = rounded_at_random(at_random - 0.0001)
        nearest = (nearest - 0.0001).bfloat16().float()
    lab.bars("1 after 1000 updates of 0.0001", {"to nearest": nearest.mean(), "at random": at_random.mean(), "on paper": 0.9})
    lab.claim("random", at_random.mean(), equals=0.9, tolerance=0.01)
    lab.claim("nearest", [nearest.min(), nearest.max()], equals=[1, 1])

    lab.stage("range")
    edges = torch.tensor([65519.0, 65520.0], device=device)
    lab.claim("overflow", [edges.half().tolist(), edges.bfloat16().tolist()], equals=[[65504, math.inf], [65536, 65536]])
    small = torch.tensor([0.0001, 300.0], device=device)
    squares = [small.to(one.dtype).square().tolist() for one in both]
    steps = [adam(one.dtype, device) for one in both]
    rows = zip(("float16", "bfloat16"), *zip(*squares, strict=True), steps, strict=True)
    lab.table("out of range", [*rows], head=("dtype", "square of 0.0001", "square of 300", "1 after Adam"))
    lab.claim("squares", squares[0] + squares[1], equals=[0, math.inf, 1.0012e-8, 90_112], tolerance=1e-11)
    lab.claim("adam", steps, equals=[-math.inf, 1])
