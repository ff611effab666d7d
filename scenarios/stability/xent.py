"""Compute the cross entropy from logits, never from probabilities.

Cross entropy is -sum(label * log(softmax(logits))). However carefully the softmax is done, a small probability underflows
to 0, and log(0) is -inf. The logarithm undoes an exponential that need not have been taken: log(softmax(x)) is
x - log(sum(exp(x))), and with the largest logit subtracted first nothing in it can overflow or reach 0. That is what
`F.cross_entropy` computes, and why it wants logits.

The gradient goes first. The logarithm hands label / p back to the softmax, and 0.5 / p is inf as soon as p is below
1.5e-39: from a logit of 90 on every gradient is inf or nan while the loss still looks healthy up to 103. What you would see
in training is a good loss, then weights that are nan. A label of exactly 0 turns even the loss into nan: 0 * -inf.

On paper the gradient is softmax - label, here [0.5, -0.5], as tame as a gradient can be.

The chart shows the error of the loss of [step, 0] with labels [0.5, 0.5] against float64, no lower than the eps of the dtype.

## Predict
From which logit on is the naive float32 loss of [logit, 0] inf?

## Look for
- [naive-inf] for the logits [1000, 0] the naive loss is inf
- [stable-500] the stable loss is 500
- [stable-gradient] the stable gradient is [0.5, -0.5]
- [naive-gradient] the naive gradient is [nan, nan]
- [hard-labels] with the hard labels [1, 0] the naive loss is nan
- [cross-entropy] F.cross_entropy gives the same loss and the same gradient as the stable form
- [loss-limit] the naive loss is inf from a logit of 104 on
- [gradient-limit] the naive gradient is not finite from a logit of 90 on

## Try next
`--dtype float16`: probabilities underflow from a logit of 18 on and gradients break from 12, so the last two claims are
REFUTED. The stable form still gives 500 and [0.5, -0.5].
refutes: loss-limit, gradient-limit
`--dtype bfloat16`: the loss fails at 93, the gradient at 90 still.
refutes: loss-limit

## Source
000 EffectivePyTorch by vahidk, https://github.com/vahidk/EffectivePyTorch, the chapter on numerical stability: [1000, 0]
with [0.5, 0.5] gives inf, the stable form 500 and [0.5, -0.5]. The source reduces over all elements, so that a batch of two
gives 1000; here it is one loss a row. The dying gradient, hard labels and the sweep are ours.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab


def naive(logits, labels):  # both (..., classes)
    return -(labels * logits.softmax(-1).log()).sum(-1)


def stable(logits, labels):
    shifted = logits - logits.max(-1, keepdim=True).values
    return -(labels * (shifted - shifted.exp().sum(-1, keepdim=True).log())).sum(-1)


def loss_and_gradient(cross_entropy, logits, labels):
    logits = logits.clone().requires_grad_()
    loss = cross_entropy(logits, labels)
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.item(), gradient.tolist()


def first(steps, values):
    """The first step whose values are not all finite; nan if there is none."""
    return next((step for step, value in zip(steps, values, strict=True) if not math.isfinite(value)), math.nan)


def run(
    lab: Lab,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",  # of the logits
    device: Literal["auto", "cpu", "cuda"] = "auto",  # where the tensors live
) -> None:
    device = lab.device(device)
    dtype = getattr(torch, dtype)
    labels = torch.tensor([0.5, 0.5], device=device, dtype=dtype)

    lab.axes("error", x="logit", y="relative error of the loss", log="y")
    lab.axes("loss", x="logit", y="loss")
    lab.axes("gradient", x="logit", y="gradient of the second logit")
    lab.stage("raising one logit")
    tops = range(1, 121)
    seen = {naive: [], stable: []}
    for top in tops:
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
    naive_loss, naive_gradient = loss_and_gradient(naive, logits, labels)
    stable_loss, stable_gradient = loss_and_gradient(stable, logits, labels)
    built_in_loss, built_in_gradient = loss_and_gradient(F.cross_entropy, logits, labels)
    lab.claim("naive-inf", naive_loss, equals=math.inf)
    lab.claim("stable-500", stable_loss, equals=500)
    lab.claim("stable-gradient", stable_gradient, equals=[0.5, -0.5])
    lab.claim("naive-gradient", naive_gradient, equals=[math.nan, math.nan])
    hard = torch.tensor([1.0, 0.0], device=device, dtype=dtype)
    lab.claim("hard-labels", naive(logits, hard), equals=math.nan)
    lab.claim("cross-entropy", [built_in_loss, *built_in_gradient], equals=[stable_loss, *stable_gradient])
    lab.claim("loss-limit", first(tops, losses), equals=104)
    lab.claim("gradient-limit", first(tops, gradients), equals=90)
