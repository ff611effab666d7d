"""Compute the cross entropy from logits, never from probabilities.

Cross entropy is -sum(label * log(softmax(logits))). However carefully the softmax is computed, a
small probability underflows to 0, and log(0) is -inf. The logarithm undoes an exponential that
was not needed: log(softmax(x)) is x - log(sum(exp(x))). If the largest logit is subtracted first,
nothing can overflow or reach 0. `F.cross_entropy` computes this form, so it wants logits.

The gradient fails before the loss. In backward the logarithm passes label / p to the softmax, and
0.5 / p is inf if p is below 1.5e-39. Then the gradients are inf or nan while the loss still looks
healthy. In training you would see a good loss, then weights that are nan. On paper the gradient
is softmax - label, here [0.5, -0.5], which is a harmless number. When p has underflowed, a label
of exactly 0 turns even the loss into nan: 0 * -inf.

The stable form of the source is for one vector. In a batch its `logsumexp(dim)` without
`keepdim=True` loses a dimension. It then subtracts the number of one row from a column of all
rows (broadcast-trap explains why). With as many rows as classes nothing raises an error, and the
loss is wrong.

The chart shows the error of the loss of [step, 0] with labels [0.5, 0.5] against float64. Errors
below the eps of the dtype are drawn at its eps.

In practice: let the net return logits, and pass them to `F.cross_entropy`, or to
`F.binary_cross_entropy_with_logits` for yes-or-no labels. Do not put a softmax before the loss.
If you need log probabilities, call `F.log_softmax` instead of `softmax(x).log()`.
## Predict
Labels are [0.5, 0.5], logits [x, 0]. From which whole x on is the naive float32 loss not finite?
## Look for
- [naive-inf] for the logits [1000, 0] and labels [0.5, 0.5] the naive loss is inf
- [stable-500] for the logits [1000, 0] and labels [0.5, 0.5] the stable loss is 500
- [stable-gradient] for these logits the stable gradient is [0.5, -0.5]
- [naive-gradient] for these logits the naive gradient is [nan, nan]
- [hard-labels] with the hard labels [1, 0] the naive loss is nan
- [cross-entropy] F.cross_entropy gives the loss and the gradient of the stable form to 1e-5, also
  for 64 random rows
- [square-batch] as in the source the losses of [[10, 0], [0, 0]] with class 0 for both sum to
  10.0001, not to 0.6932
- [other-batch] as in the source 3 rows of 4 classes raise a RuntimeError
- [loss-limit] the first whole x for which the naive loss of [x, 0] is not finite is 104
- [gradient-limit] the first whole x for which the naive gradient of [x, 0] is not finite is 90
## Try next
`--dtype float16`: probabilities underflow from a logit of 18 on, and gradients fail from 12 on. The
stable form still gives 500 and [0.5, -0.5]. refutes: loss-limit, gradient-limit
`--dtype bfloat16`: the loss fails at 93, and the gradient still at 90. refutes: loss-limit
`--keepdim`: the argument that the source lacks makes both batches right. refutes: square-batch,
other-batch
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch",
https://github.com/vahidk/EffectivePyTorch. Its stable form is wrong for a batch. Ours: the
gradient that fails first, hard labels, the batches and the sweep.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab

TOPS = range(1, 121)  # the logits x of [x, 0]


def naive(logits, labels):  # both (..., classes)
    return -(labels * logits.softmax(-1).log()).sum(-1)


def stable(logits, labels):
    shifted = logits - logits.max(-1, keepdim=True).values
    log_total = shifted.exp().sum(-1, keepdim=True).log()
    return -(labels * (shifted - log_total)).sum(-1)


def as_in_the_source(logits, labels, keepdim):  # one maximum and one sum for everything
    shifted = logits - logits.max()
    log_total = shifted.logsumexp(-1, keepdim=keepdim)
    return -(labels * (shifted - log_total)).sum()


def loss_and_gradient(cross_entropy, logits, labels):
    logits = logits.clone().requires_grad_()
    loss = cross_entropy(logits, labels).mean()  # of the rows, if there are several
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.detach(), gradient


def difference(logits, labels):
    """Return how far F.cross_entropy is from the stable form, in the loss or in its gradient."""
    our_loss, our_gradient = loss_and_gradient(stable, logits, labels)
    their_loss, their_gradient = loss_and_gradient(F.cross_entropy, logits, labels)
    in_loss = (our_loss - their_loss).abs().item()
    in_gradient = (our_gradient - their_gradient).abs().max().item()
    return max(in_loss, in_gradient)


def first_not_finite(values):
    """Return the first x of [x, 0] whose value is not finite; nan if there is none."""
    for top, value in zip(TOPS, values, strict=True):
        if not math.isfinite(value):
            return top
    return math.nan


def raise_one_logit(lab, labels):
    """Log both forms. Return the losses and gradients of the naive form."""
    lab.axes("error", x="logit", y="relative error of the loss", log="y")
    lab.axes("loss", x="logit", y="loss")
    lab.axes("gradient", x="logit", y="gradient of the second logit")
    eps = torch.finfo(labels.dtype).eps
    naive_losses = []
    naive_gradients = []
    for top in lab.sweep(TOPS, "raising one logit"):
        logits = torch.tensor([top, 0.0]).to(labels)
        exact = F.cross_entropy(logits.double(), labels.double()).item()
        for form in (naive, stable):
            loss, gradient = loss_and_gradient(form, logits, labels)
            loss = loss.item()
            second = gradient[1].item()
            error = max(abs(loss - exact) / exact, eps)
            lab.log(top, arm=form.__name__, error=error, loss=loss, gradient=second)
            if form is naive:
                naive_losses.append(loss)
                naive_gradients.append(second)
    return naive_losses, naive_gradients


def claim_example(lab, labels):
    lab.stage("the example of the source")
    logits = torch.tensor([1000.0, 0.0]).to(labels)
    hard_labels = torch.tensor([1.0, 0.0]).to(labels)
    naive_loss, naive_gradient = loss_and_gradient(naive, logits, labels)
    stable_loss, stable_gradient = loss_and_gradient(stable, logits, labels)
    lab.claim("naive-inf", naive_loss, equals=math.inf)
    lab.claim("stable-500", stable_loss, equals=500)
    lab.claim("stable-gradient", stable_gradient, equals=[0.5, -0.5])
    lab.claim("naive-gradient", naive_gradient, equals=[math.nan, math.nan])
    lab.claim("hard-labels", naive(logits, hard_labels), equals=math.nan)

    many_logits = 10 * torch.randn(64, 10, device=labels.device)  # float32
    many_labels = torch.rand(64, 10, device=labels.device).softmax(-1)
    differences = [difference(logits, labels), difference(many_logits, many_labels)]
    lab.claim("cross-entropy", max(differences), at_most=1e-5)


def claim_batches(lab, keepdim):
    square = torch.tensor([[10.0, 0.0], [0.0, 0.0]])
    classes = torch.tensor([[1.0, 0.0], [1.0, 0.0]])  # class 0 for both rows
    total = as_in_the_source(square, classes, keepdim)
    lab.claim("square-batch", total, equals=10.0001, tolerance=0.0001)
    error = lab.raises(as_in_the_source, torch.zeros(3, 4), torch.ones(3, 4), keepdim)
    lab.claim("other-batch", error.partition(":")[0], equals="RuntimeError")


def run(
    lab: Lab,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",  # of the logits
    keepdim: bool = False,  # correct the source's form for batches
) -> None:
    labels = torch.tensor([0.5, 0.5], device=lab.device(), dtype=getattr(torch, dtype))
    losses, gradients = raise_one_logit(lab, labels)
    claim_example(lab, labels)
    claim_batches(lab, keepdim)
    lab.claim("loss-limit", first_not_finite(losses), equals=104, answers=True)
    lab.claim("gradient-limit", first_not_finite(gradients), equals=90)
