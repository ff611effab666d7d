"""Clipping the norm of the gradient makes one bad step a short one, and lets the rate be a hundred times higher.

A recurrent net multiplies by the same weights at every step of a sequence. A factor of 1.08 is 101 after 60 steps, and the
gradient of the first loss has a norm of millions. One step along it, and all that follows is nan. `clip_grad_norm_`
multiplies all gradients by max_norm / norm where the norm is larger: the direction stays, the length is bounded. A
max_norm that allows too long a step is no help: with 100 the net is lost as it is without.
The source clips each value into [-10, 10], and calls it clipping the norm. That is `clip_grad_value_`, and another direction:
[30, 40] becomes [10, 10], where a norm of 10 makes it [6, 8]. Clipped group by group each group has its own norm and its own
bound: two groups with a bound of 1 make a step of up to 1.41. A gradient that is nan has the norm nan, and spoils all others.
The source also promises faster convergence. Here a higher rate is safe, but not faster: after a bad step it has a way to go.
## Predict
Without clipping, at a factor of 1.08, 60 long, and at a rate of 0.05: how many of 100 losses are finite numbers?
## Look for
- [explodes] without clipping 1 loss is finite, that of the first step
- [norm] the first gradient has a norm of more than 100,000
- [trained] with a max_norm of 1 and of 10 the loss ends below 0.01
- [too-large] with a max_norm of 100 the second loss is above 1e20
- [clipped] with a max_norm of 1 at least 30 of 100 steps are clipped
- [rare] with a max_norm of 10 at most 30 of 100 are
- [low-rate] at a factor of 1, 40 long, without clipping: a rate of 0.0005 ends below 0.01
- [middle-rate] there one of 0.005 ends above 1000
- [high-rate] there one of 0.05, clipped to 10, ends below 0.01
- [not-sooner] at this rate at least twice as many losses are 0.01 or more as at 0.0005
- [by-norm] clipped to a norm of 10, [30, 40] is [6, 8]
- [by-value] clipped by value to 10, it is [10, 10]
- [groups] [30, 40] and [0, 5], clipped one by one to a norm of 1, have one of 1.4142 together
- [direction] clipped as one group, the norms of the two are 10 to 1, as they were; one by one, 1 to 1
- [nan] a nan in one gradient makes nan of all
- [raised] with error_if_nonfinite it raises a RuntimeError instead
## Try next
`--factor 0.5`: nothing explodes, and nothing needs to be clipped. refutes: explodes, norm, too-large, clipped
## Source
003 "28 PyTorch best practices" after the official Performance Tuning Guide, tip 11: min(max, g), groups, a higher rate, faster
convergence. Ours: the recurrent net, the bounds that do not help, and what is clipped.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

RATES = ((0.0005, math.inf), (0.005, math.inf), (0.05, 10))  # each with a max_norm


def train(lab, device, arm, rate, max_norm, factor, length):
    """Train a recurrent net to tell the mean of a sequence, until the loss is not finite; return losses and norms."""
    torch.manual_seed(0)
    x = torch.rand(32, length, 2).to(device)
    y = x[:, :, 0].mean(1, keepdim=True)  # (32, 1)
    cells, head = nn.RNN(2, 32, nonlinearity="relu", batch_first=True).to(device), nn.Linear(32, 1).to(device)
    nn.init.eye_(cells.weight_hh_l0).data.mul_(factor)
    weights = [*cells.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(weights, lr=rate)
    losses, norms = [], []
    for step in lab.steps(100, f"training: {arm}"):
        loss = F.mse_loss(head(cells(x)[0][:, -1]), y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(weights, max_norm)  # that of before; inf clips nothing
        optimizer.step()
        lab.log(step, arm=arm, loss=loss.detach(), norm=norm)
        losses.append(loss.item())
        norms.append(norm.item())
        if not math.isfinite(losses[-1]):
            break
    return losses, norms


by_norm = partial(nn.utils.clip_grad_norm_, max_norm=10.0)
by_value = partial(nn.utils.clip_grad_value_, clip_value=10.0)


def clipped(clip, *gradients):  # what a function that clips leaves of gradients, one weight each
    weights = [torch.zeros(len(gradient)) for gradient in gradients]
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = torch.tensor(gradient)
    clip(weights)
    return [[round(value, 4) for value in weight.grad.tolist()] for weight in weights]


def one_by_one(weights):
    for weight in weights:
        nn.utils.clip_grad_norm_(weight, 1.0)


def run(lab: Lab, factor: float = 1.08) -> None:  # by which each step of the sequence multiplies, 0.5..1.2
    device = lab.device()
    lab.axes("loss", x="step", y="loss", log="y")
    lab.axes("norm", x="step", y="norm of the gradient, before clipping", log="y")
    found = [train(lab, device, f"max_norm {bound}", 0.05, bound, factor, 60) for bound in (math.inf, 100, 10, 1)]
    losses, norms = zip(*found, strict=True)
    lab.claim("explodes", sum(map(math.isfinite, losses[0])), equals=1, answers=True)
    lab.claim("norm", norms[0][0], at_least=1e5)
    lab.claim("too-large", losses[1][1], at_least=1e20)
    lab.claim("trained", [losses[2][-1], losses[3][-1]], at_most=0.01)
    lab.claim("clipped", sum(norm > 1 for norm in norms[3]), at_least=30)
    lab.claim("rare", sum(norm > 10 for norm in norms[2]), at_most=30)
    low, middle, high = [train(lab, device, f"rate {rate}", rate, bound, 1, 40)[0] for rate, bound in RATES]
    lab.claim("low-rate", low[-1], at_most=0.01)
    lab.claim("middle-rate", middle[-1], at_least=1000)
    lab.claim("high-rate", high[-1], at_most=0.01)
    lab.claim("not-sooner", sum(loss >= 0.01 for loss in high) / sum(loss >= 0.01 for loss in low), at_least=2)

    lab.stage("what is clipped")
    lab.claim("by-norm", clipped(by_norm, [30.0, 40.0]), equals=[[6, 8]])
    lab.claim("by-value", clipped(by_value, [30.0, 40.0]), equals=[[10, 10]])
    apart, together = (clipped(clip, [30.0, 40.0], [0.0, 5.0]) for clip in (one_by_one, by_norm))
    lab.claim("groups", math.hypot(*apart[0], *apart[1]), equals=2**0.5, tolerance=0.001)
    shares = [math.hypot(*first) / math.hypot(*second) for first, second in (together, apart)]
    lab.claim("direction", shares, equals=[10, 1], tolerance=0.001)
    lab.claim("nan", clipped(by_norm, [1.0, math.nan], [0.0, 5.0]), equals=[[math.nan] * 2] * 2)
    strict = partial(nn.utils.clip_grad_norm_, max_norm=10.0, error_if_nonfinite=True)
    lab.claim("raised", lab.raises(clipped, strict, [1.0, math.nan]).partition(":")[0], equals="RuntimeError")
    rows = [("as one, to a norm of 10", *map(str, together)), ("one by one, to 1", *map(str, apart))]
    lab.table("what is left of [30, 40] and [0, 5]", rows)
