"""torch.where hides a nan from the value, never from the gradient.

`torch.where(x > 0, x.sqrt(), 0)` computes the root of every element, and then chooses. In backward the choice hands gradient 1
to the branch taken and 0 to the other one. The root goes on with it: 0 times its own slope, which is inf at 0, and 0 * inf is
nan. The gradient of x is the sum of both branches, so the nan arrives, and the value has never shown it.

Choose before the function, too: `where(x > 0, x, 1).sqrt()`. The inner `where` chooses in backward as well, and hands x a 0
whatever comes back. The input 1 has a finite slope, so no nan is even made. To mend the result is too late, whatever you mend
it with: a mask, `masked_fill`, `nan_to_num`. A clamp at 0 changes nothing either: it lets the slope at 0 pass, and that is inf.

It is the same with log at 0, with 1 / x, with an exponential that overflows in the branch not taken, and with a distance of 0.
A norm written by hand is a root of a sum; torch's own norm knows this case and defines its slope as 0. One such row in a batch
is enough: gradients of rows are summed, so every weight is nan after one step, while the loss of that step is a usual number.
## Predict
A loss is the mean of 256 distances. One is 0, and where masks its root. How many of the 16 weights are nan after a step?
## Look for
- [value] where(x > 0, sqrt(x), 0) of [0, 4] is [0, 2]
- [gradient] the gradient of that where is [nan, 0.25]
- [inside] with a second where inside the root the value is [0, 2] and the gradient [0, 0.25]
- [too-late] a product with the mask and masked_fill give the gradient nan at 0, nan_to_num and a clamp at 0 give inf
- [selected] the root of the selected elements alone, x[x > 0], has the gradient [0, 0.25]
- [others] log(x) and 1 / x in place of the root give the gradient nan at 0 as well
- [overflow] where(x > 20, x, log(1 + exp(x))) of 100 is 100 and its gradient nan; F.softplus gives 100 and 1
- [norm] at the zero vector the gradient of a norm written by hand is [nan, nan], of torch's norm [0, 0]
- [one-row] one row of 256 at distance 0 makes all 16 weights nan in one step, and the loss of that step is finite
- [anomaly] torch.autograd.set_detect_anomaly names the culprit: SqrtBackward0
## Try next
`--mend`: the inner where is in the naive form and in the distance, too. Their gradients are numbers, and nothing is left for
the anomaly mode to name. refutes: gradient, others, one-row, anomaly
`--dtype float64`: exp(100) is 2.7e43, a number that float64 has, and the gradient of the overflow is 1. Roots, logarithms and
norms are as bad as before: 0 is 0 in every dtype. refutes: overflow
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch", https://github.com/vahidk/EffectivePyTorch: gradients have to stay
in range as values do. Ours: where, the ways to fix it, the norm and the training step.
"""

import math
import warnings
from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab


def naive(x, f=torch.sqrt):  # (n,)
    return torch.where(x > 0, f(x), 0.0)


def inside(x, f=torch.sqrt):
    return torch.where(x > 0, f(torch.where(x > 0, x, 1.0)), 0.0)


def naive_softplus(x):
    return torch.where(x > 20, x, (1 + x.exp()).log())


OTHER_WAYS = {
    "mask": lambda x: x.sqrt() * (x > 0),
    "masked_fill": lambda x: x.sqrt().masked_fill(x <= 0, 0.0),
    "nan_to_num": lambda x: x.sqrt().nan_to_num(),
    "clamp": lambda x: x.clamp(min=0).sqrt(),
    "selected": lambda x: torch.zeros_like(x).masked_scatter(x > 0, x[x > 0].sqrt()),
}


def value_and_gradient(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    return [y.tolist(), torch.autograd.grad(y.sum(), x)[0].tolist()]


def backward_watched(root, x):
    with warnings.catch_warnings(action="ignore"), torch.autograd.set_detect_anomaly(True):  # it warns, and then raises
        value_and_gradient(root, x)


def step(root, x, target):  # (rows, 8), (rows, 2); on the mean distance
    weight = torch.eye(8, 2).to(x).requires_grad_()
    loss = root((x @ weight - target).square().sum(-1)).mean()
    (gradient,) = torch.autograd.grad(loss, weight)
    return [loss.isfinite().item(), (weight - 0.1 * gradient).isnan().sum().item()]


def run(
    lab: Lab,
    mend: bool = False,  # the inner where in the naive form, too
    dtype: Literal["float32", "float64"] = "float32",  # of all numbers
) -> None:
    device, dtype, root = lab.device(), getattr(torch, dtype), inside if mend else naive
    ways = {"where outside": root, "where inside": inside, **OTHER_WAYS}
    lab.axes("gradient", x="x", y="gradient; a line that stops is nan")
    xs = torch.linspace(-1, 1, 81, device=device, dtype=dtype)
    found = {name: value_and_gradient(ways[name], xs) for name in ("where outside", "where inside")}
    lab.stage("values and gradients around 0")
    for name, (_, gradients) in found.items():
        for x, gradient in zip(xs, gradients, strict=True):
            lab.log(x, arm=name, gradient=gradient)
    lab.stage("ways to mend it")
    pair = torch.tensor([0.0, 4.0], device=device, dtype=dtype)
    found = {name: value_and_gradient(way, pair) for name, way in ways.items()}
    rows = [(name, value[0], *gradient) for name, (value, gradient) in found.items()]
    lab.table("the root of 0, masked", rows, head=("way", "value at 0", "gradient at 0", "gradient at 4"))
    lab.claim("value", found["where outside"][0], equals=[0, 2])
    lab.claim("gradient", found["where outside"][1], equals=[math.nan, 0.25])
    lab.claim("inside", found["where inside"], equals=[[0, 2], [0, 0.25]])
    lab.claim("too-late", [found[way][1][0] for way in [*OTHER_WAYS][:4]], equals=[math.nan, math.nan, math.inf, math.inf])
    lab.claim("selected", found["selected"][1], equals=[0, 0.25])
    others = [value_and_gradient(lambda x, f=f: root(x, f), pair)[1][0] for f in (torch.log, torch.reciprocal)]
    lab.claim("others", others, equals=[math.nan, math.nan])
    pluses = [value_and_gradient(f, pair.new_full((1,), 100.0)) for f in (naive_softplus, F.softplus)]
    lab.claim("overflow", pluses, equals=[[[100], [math.nan]], [[100], [1]]])
    norms = [value_and_gradient(f, 0 * pair)[1] for f in (lambda x: x.square().sum().sqrt(), torch.linalg.vector_norm)]
    lab.claim("norm", norms, equals=[[math.nan, math.nan], [0, 0]])
    lab.stage("one step of training")
    x = torch.randn(256, 8, device=device, dtype=dtype)
    target = torch.cat([x[:1, :2], torch.randn(255, 2, device=device, dtype=dtype)])  # the first row is met exactly
    lab.claim("one-row", after := step(root, x, target), equals=[True, 16], answers=after[1])
    lab.claim("anomaly", "SqrtBackward0" in lab.raises(backward_watched, root, pair))
