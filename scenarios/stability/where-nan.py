"""Choose the input before the function: torch.where after it gives nan gradients.

`torch.where(x > 0, x.sqrt(), 0)` computes the root of every element, and then chooses. In backward
the choice passes gradient 1 to the branch that was taken, and 0 to the other branch. The root
multiplies this 0 by its own slope, which is inf at 0, and 0 * inf is nan. The gradient of x is the
sum of both branches, so the nan arrives, although the value never showed it.

Choose before the function as well: `where(x > 0, x, 1).sqrt()`. In backward the inner `where`
passes 0 to each x that it did not choose. The input 1 has a finite slope, so no nan appears. To
repair the result is too late, whether with a mask, `masked_fill` or `nan_to_num`. A clamp at 0 does
not help either: at 0 it passes the gradient on, and the slope of the root there is inf.

The same happens with log at 0, with 1 / x, and with an exponential that overflows in the branch
not taken. It also happens with a distance of 0, because a norm written by hand is a root of a sum.
PyTorch's own norm knows this case, and defines its slope as 0. One such row in a batch is enough.
Gradients of rows are summed, so the nan reaches the weights, while the loss is a usual number.

In practice: write `torch.where(ok, f(torch.where(ok, x, safe)), other)`, or compute f only for
`x[ok]`. Use torch's own functions (`torch.linalg.vector_norm`, `F.softplus`) instead of your own
formulas. To find an operator that makes nan, run one step under `torch.autograd.detect_anomaly()`.
## Predict
A loss is the mean of 256 distances. One distance is 0, and where masks its root. How many of the
16 weights are nan after a step?
## Look for
- [value] where(x > 0, sqrt(x), 0) of [0, 4] is [0, 2]
- [gradient] the gradient of where(x > 0, sqrt(x), 0) at [0, 4] is [nan, 0.25]
- [inside] with a second where inside the root the value is [0, 2] and the gradient [0, 0.25]
- [too-late] a root times the mask and masked_fill have the gradient nan at 0, nan_to_num and a
  clamp at 0 have inf
- [selected] the root of the selected elements alone, x[x > 0], has the gradient [0, 0.25]
- [others] where(x > 0, f(x), 0) has the gradient nan at 0 for log(x) and 1 / x as well
- [overflow] where(x > 20, x, log(1 + exp(x))) of 100 is 100 and its gradient nan; F.softplus gives
  100 and 1
- [norm] at the zero vector the gradient of a norm written by hand is [nan, nan], and that of
  torch's norm is [0, 0]
- [one-row] one row of 256 at distance 0 makes all 16 weights nan in one step, and the loss is
  finite
- [anomaly] torch.autograd.set_detect_anomaly names the operator that makes nan: SqrtBackward0
## Try next
`--mend`: the naive form and the distance get the inner where. Their gradients are numbers, and the
anomaly mode has nothing to name. refutes: gradient, others, one-row, anomaly
`--dtype float64`: exp(100) is 2.7e43, a number that float64 has, and the gradient of softplus is 1.
Roots, logarithms and norms are as bad as before: 0 is 0 in every dtype. refutes: overflow
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch",
https://github.com/vahidk/EffectivePyTorch: gradients have to stay in range as values do. Ours:
where, the ways to repair it, the norm and the training step.
"""

import math
import warnings
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab


def where_outside(x, function=torch.sqrt):  # (n,)
    return torch.where(x > 0, function(x), 0.0)


def where_inside(x, function=torch.sqrt):
    safe = torch.where(x > 0, x, 1.0)
    return torch.where(x > 0, function(safe), 0.0)


def root_times_mask(x):
    return x.sqrt() * (x > 0)


def root_with_masked_fill(x):
    return x.sqrt().masked_fill(x <= 0, 0.0)


def root_with_nan_to_num(x):
    return x.sqrt().nan_to_num()


def root_of_clamp(x):
    return x.clamp(min=0).sqrt()


def root_of_selected(x):
    return torch.zeros_like(x).masked_scatter(x > 0, x[x > 0].sqrt())


def naive_softplus(x):
    return torch.where(x > 20, x, (1 + x.exp()).log())


def norm_by_hand(x):
    return x.square().sum().sqrt()


TOO_LATE = {
    "mask": root_times_mask,
    "masked_fill": root_with_masked_fill,
    "nan_to_num": root_with_nan_to_num,
    "clamp": root_of_clamp,
}


def value_and_gradient(function, x):
    x = x.clone().requires_grad_()
    y = function(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return y.tolist(), gradient.tolist()


def backward_with_anomaly_mode(root, x):
    is_quiet = warnings.catch_warnings(action="ignore")  # the mode warns, and then raises
    with is_quiet, torch.autograd.set_detect_anomaly(True):
        value_and_gradient(root, x)


def train_step(root, x, target):  # (rows, 8), (rows, 2)
    """Take a step. Return if the mean distance is finite, and how many weights are nan."""
    weight = torch.eye(8, 2).to(x).requires_grad_()
    squares = (x @ weight - target).square().sum(-1)  # (rows,)
    loss = root(squares).mean()
    (gradient,) = torch.autograd.grad(loss, weight)
    stepped = weight - 0.1 * gradient
    return loss.isfinite().item(), stepped.isnan().sum().item()


def show_gradients(lab, root, device, dtype):
    lab.axes("gradient", x="x", y="gradient; a line that stops is nan")
    lab.stage("gradients around 0")
    xs = torch.linspace(-1, 1, 81, device=device, dtype=dtype)
    for name, way in {"where outside": root, "where inside": where_inside}.items():
        _, gradients = value_and_gradient(way, xs)
        for x, gradient in zip(xs.tolist(), gradients, strict=True):
            lab.log(x, arm=name, gradient=gradient)


def claim_roots(lab, root, pair):
    lab.stage("the root of 0")
    ways = {
        "where outside": root,
        "where inside": where_inside,
        **TOO_LATE,
        "selected": root_of_selected,
    }
    values = {}
    gradients = {}
    rows = []
    for name, way in ways.items():
        values[name], gradients[name] = value_and_gradient(way, pair)
        rows.append((name, values[name][0], *gradients[name]))
    head = ("way", "value at 0", "gradient at 0", "gradient at 4")
    lab.table("the root of 0, masked", rows, head=head)
    lab.claim("value", values["where outside"], equals=[0, 2])
    lab.claim("gradient", gradients["where outside"], equals=[math.nan, 0.25])
    inside = [values["where inside"], gradients["where inside"]]
    lab.claim("inside", inside, equals=[[0, 2], [0, 0.25]])
    at_zero = [gradients[name][0] for name in TOO_LATE]
    lab.claim("too-late", at_zero, equals=[math.nan, math.nan, math.inf, math.inf])
    lab.claim("selected", gradients["selected"], equals=[0, 0.25])


def claim_other_functions(lab, root, pair):
    lab.stage("other functions")
    at_zero = []
    for function in (torch.log, torch.reciprocal):
        _, gradient = value_and_gradient(partial(root, function=function), pair)
        at_zero.append(gradient[0])
    lab.claim("others", at_zero, equals=[math.nan, math.nan])
    hundred = pair.new_full((1,), 100.0)
    naive = value_and_gradient(naive_softplus, hundred)
    stable = value_and_gradient(F.softplus, hundred)
    pluses = [list(naive), list(stable)]
    lab.claim("overflow", pluses, equals=[[[100], [math.nan]], [[100], [1]]])
    zeros = torch.zeros_like(pair)
    _, by_hand = value_and_gradient(norm_by_hand, zeros)
    _, by_torch = value_and_gradient(torch.linalg.vector_norm, zeros)
    lab.claim("norm", [by_hand, by_torch], equals=[[math.nan, math.nan], [0, 0]])


def run(
    lab: Lab,
    mend: bool = False,  # the inner where in the naive form as well
    dtype: Literal["float32", "float64"] = "float32",  # of all numbers
) -> None:
    device = lab.device()
    dtype = getattr(torch, dtype)
    root = where_inside if mend else where_outside
    show_gradients(lab, root, device, dtype)
    pair = torch.tensor([0.0, 4.0], device=device, dtype=dtype)
    claim_roots(lab, root, pair)
    claim_other_functions(lab, root, pair)

    lab.stage("one step of training")
    x = torch.randn(256, 8, device=device, dtype=dtype)
    target = torch.randn(256, 2, device=device, dtype=dtype)
    target[0] = x[0, :2]  # the first row has distance 0
    is_finite, nan_weights = train_step(root, x, target)
    lab.claim("one-row", [is_finite, nan_weights], equals=[True, 16], answers=nan_weights)
    error = lab.raises(backward_with_anomaly_mode, root, pair)
    lab.claim("anomaly", "SqrtBackward0" in error)
