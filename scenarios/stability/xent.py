"""Compute the cross entropy from logits, never from probabilities.

Cross entropy is -sum(label * log(softmax(logits))). However carefully the softmax is done, a small probability underflows
to 0, and log(0) is -inf. The logarithm undoes an exponential that need not have been taken: log(softmax(x)) is
x - log(sum(exp(x))), and with the largest logit subtracted first nothing in it can overflow or reach 0. That is what
`F.cross_entropy` computes, and why it wants logits.
The gradient goes first. The logarithm hands label / p back to the softmax, and 0.5 / p is inf as soon as p is below
1.5e-39: from a logit of 90 on every gradient is inf or nan while the loss still looks healthy. What you would see in
training is a good loss, then weights that are nan. Where p has underflowed, a label of exactly 0 turns even the loss into
nan: 0 * -inf. On paper the gradient is softmax - label, here [0.5, -0.5], as tame as a gradient can be.
The stable form of the source is for one vector. In a batch its `logsumexp(dim)` without `keepdim=True` loses a dimension, and
subtracts the number of one row from a column of all rows (broadcast-trap tells why). Where there are as many rows as classes
nothing fails, and the loss is another.
The chart shows the error of the loss of [step, 0] with labels [0.5, 0.5] against float64, floored at the eps of the dtype.
## Predict
Labels are [0.5, 0.5], logits [x, 0]. From which whole x on is the naive float32 loss not finite?
## Look for
- [naive-inf] for the logits [1000, 0] the naive loss is inf
- [stable-500] the stable loss is 500
- [stable-gradient] the stable gradient is [0.5, -0.5]
- [naive-gradient] the naive gradient is [nan, nan]
- [hard-labels] with the hard labels [1, 0] the naive loss is nan
- [cross-entropy] F.cross_entropy gives the loss and the gradient of the stable form to 1e-5, also for 64 random rows
- [square-batch] as in the source the losses of [[10, 0], [0, 0]] with class 0 for both sum to 10.0001, not to 0.6932
- [other-batch] as in the source 3 rows of 4 classes are refused
- [loss-limit] the first whole logit whose naive loss is not finite is 104
- [gradient-limit] the first whole logit whose naive gradient is not finite is 90
## Try next
`--dtype float16`: probabilities underflow from a logit of 18 on and gradients break from 12, so the last two claims are
REFUTED. The stable form still gives 500 and [0.5, -0.5].
refutes: loss-limit, gradient-limit
`--dtype bfloat16`: the loss fails at 93, the gradient at 90 still. refutes: loss-limit
`--keepdim`: the word that the source lacks; both batches come out right. refutes: square-batch, other-batch
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch", https://github.com/vahidk/EffectivePyTorch. Ours: the dying
gradient, hard labels, the batches and the sweep.
"""

import math
from contextlib import suppress
from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab


def naive(logits, labels):  # both (..., classes)
    return -(labels * logits.softmax(-1).log()).sum(-1)


def stable(logits, labels):
    shifted = logits - logits.max(-1, keepdim=True).values
    return -(labels * (shifted - shifted.exp().sum(-1, keepdim=True).log())).sum(-1)


def as_in_the_source(logits, labels, keepdim):  # one maximum and one sum for everything
    shifted = logits - logits.max()
    return -(labels * (shifted - shifted.logsumexp(-1, keepdim=keepdim))).sum()


def loss_and_gradient(cross_entropy, logits, labels):
    logits = logits.clone().requires_grad_()
    loss = cross_entropy(logits, labels).mean()  # of the rows, if there are several
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.item(), gradient.tolist()


def gap(logits, labels):
    """By how much F.cross_entropy and the stable form differ at most, in the loss or in its gradient."""
    ours, theirs = (map(torch.tensor, loss_and_gradient(form, logits, labels)) for form in (stable, F.cross_entropy))
    return max((a - b).abs().max() for a, b in zip(ours, theirs, strict=True))


def first(steps, values):
    """The first step whose values are not all finite; nan if there is none."""
    return next((step for step, value in zip(steps, values, strict=True) if not math.isfinite(value)), math.nan)


def run(
    lab: Lab,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",  # of the logits
    keepdim: bool = False,  # mend the source's form for batches
) -> None:
    device = lab.device()
    dtype = getattr(torch, dtype)
    labels = torch.tensor([0.5, 0.5], device=device, dtype=dtype)

    lab.axes("error", x="logit", y="relative error of the loss", log="y")
    lab.axes("loss", x="logit", y="loss")
    lab.axes("gradient", x="logit", y="gradient of the second logit")
    tops = range(1, 121)
    seen = {naive: [], stable: []}
    for top in lab.sweep(tops, "raising one logit"):
        logits = torch.tensor([top, 0.0], device=device, dtype=dtype)
        exact, _ = loss_and_gradient(F.cross_entropy, logits.double(), labels.double())
        for arm in (naive, stable):
            loss, gradient = loss_and_gradient(arm, logits, labels)
            error = max(abs(loss - exact) / exact, torch.finfo(dtype).eps)
            lab.log(top, arm=arm.__name__, error=error, loss=loss, gradient=gradient[1])
            seen[arm].append((loss, gradient[1]))
    losses, gradients = zip(*seen[naive], strict=True)
    lab.stage("the example of the source")
    logits = torch.tensor([1000.0, 0.0], device=device, dtype=dtype)
    lab.claim("naive-inf", naive(logits, labels), equals=math.inf)
    lab.claim("stable-500", stable(logits, labels), equals=500)
    lab.claim("stable-gradient", loss_and_gradient(stable, logits, labels)[1], equals=[0.5, -0.5])
    lab.claim("naive-gradient", loss_and_gradient(naive, logits, labels)[1], equals=[math.nan, math.nan])
    lab.claim("hard-labels", naive(logits, torch.tensor([1.0, 0.0]).to(logits)), equals=math.nan)
    batch = 10 * torch.randn(64, 10, device=device), torch.rand(64, 10, device=device).softmax(-1)  # float32
    lab.claim("cross-entropy", max(gap(logits, labels), gap(*batch)), at_most=1e-5)
    square = torch.tensor([[10.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    lab.claim("square-batch", as_in_the_source(*square, keepdim), equals=10.0001, tolerance=0.0001)
    is_refused = True
    with suppress(RuntimeError):  # the sizes do not match
        is_refused = not as_in_the_source(torch.zeros(3, 4), torch.ones(3, 4), keepdim).isfinite()
    lab.claim("other-batch", is_refused)
    lab.claim("loss-limit", first(tops, losses), equals=104, answers=True)
    lab.claim("gradient-limit", first(tops, gradients), equals=90)
