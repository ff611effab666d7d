"""Clip the norm of the gradient, and the rate can be a hundred times higher.

A recurrent net multiplies by the same weights at each step of a sequence. A factor of 1.08 is 101 after 60
steps, and the first gradient has a norm of hundreds of thousands. After one step along it every loss is nan.
`clip_grad_norm_` multiplies all gradients by max_norm / norm if the norm is larger. The direction stays, and
the length of a step is at most rate * max_norm. If max_norm is too large, it does not help: with 100 the net
is lost as it is without clipping. Finite losses alone prove little. With 10 and with 1 all losses are finite,
and at this factor and this rate the net learns next to nothing.

So the measure here is R²: the share of the variance of the targets that the net explains. A net that answers
with the mean of the targets has 0, and a perfect one has 1. The targets are standardised: their mean is 0 and
their variance is 1. Otherwise a net that learned only the mean looks trained.

Does clipping speed up training, as the source promises? Here it does, in two ways. At the same low rate the
clipped net ends with a higher R², because its first steps do not overshoot. And it survives a rate that is a
hundred times higher, which reaches the same R² in fewer steps. The gain is modest: some 1.7 times over three
seeds, and for one of the seeds only some 10 of 147 steps.

The source clips each value into [-10, 10] and calls that the norm. It is `clip_grad_value_`, and it changes
the direction: [30, 40] becomes [10, 10], where a norm of 10 makes it [6, 8]. If each group of weights is
clipped by itself, each has its own bound: two groups with a bound of 1 make a step of up to 1.41. A nan in
one gradient makes the norm nan, and so all gradients.

In practice: call `norm = clip_grad_norm_(model.parameters(), max_norm=1.0)` between `backward()` and
`step()`, and log the norm. If most steps are clipped, the bound sets the length of a step, so tune the rate
together with it.
"Ends with an R²" means the median of the last 50 steps, as single steps jump.
## Predict
Without clipping, at a factor of 1.08, 60 long, and at a rate of 0.05: how many of 100 losses are finite numbers?
## Look for
- [explodes] without clipping 1 loss of 100 is finite, the one of the first step
- [norm] the first gradient has a norm of more than 100,000
- [too-large] with a max_norm of 100 the second loss is above 1e20
- [finite] with a max_norm of 10 and of 1 all 100 losses are finite
- [untrained] but both nets end with an R² of 0.2 or less
- [clipped] with a max_norm of 1 at least 60 of 100 steps are clipped
- [rare] with a max_norm of 10 at most 30 of 100 steps are clipped
- [low-rate] at a factor of 1, 40 long, a rate of 0.0002 without clipping ends with an R² of 0.05 or more for each seed
- [ten-times] there a rate of 0.002 without clipping ends with an R² below 0 for each seed: the mean would be a better answer
- [hundred-times] there a rate of 0.02, clipped to 1, ends with an R² of 0.2 or more for each seed
- [sooner] to an R² of 0.2 the rate of 0.0002 needs at least 1.3 times the steps of 0.02 clipped, all seeds added
- [alone] a rate of 0.0002 that is clipped to 1 ends with an R² that is higher by 0.01 or more, for each seed
- [by-norm] clipped to a norm of 10, [30, 40] is [6, 8]
- [by-value] clipped by value to 10, [30, 40] is [10, 10]
- [groups] [30, 40] and [0, 5], clipped one by one to a norm of 1, have a norm of 1.4142 together
- [direction] clipped as one group the norms of the two are 10 to 1, as before; one by one they are 1 to 1
- [nan] a nan in one gradient makes nan of all
- [raised] with error_if_nonfinite a nan raises a RuntimeError instead
## Try next
`--factor 0.5`: nothing explodes, and nothing needs to be clipped. refutes: explodes, norm, too-large, clipped
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 11,
https://www.toymoban.com/news/detail-808122.html: min(max, g), groups, a higher rate, faster convergence. Ours: the recurrent
net, R², the bounds that do not help, what is clipped.
"""

import math
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

LOW_RATE = 0.0002
STEPS = 300
ENOUGH = 0.2  # the R² to which steps are counted


def sequences(length):  # -> (32, length, 2), (32, 1)
    """Return random sequences and the means of their first column, standardised."""
    x = torch.rand(32, length, 2)
    means = x[:, :, 0].mean(1, keepdim=True)
    return x, (means - means.mean()) / means.std(correction=0)


def build_net(factor):
    """Return a recurrent layer that multiplies by the factor at each step, and the head behind it."""
    cells = nn.RNN(2, 32, nonlinearity="relu", batch_first=True)
    head = nn.Linear(32, 1)
    nn.init.eye_(cells.weight_hh_l0).data.mul_(factor)
    return cells, head


class Training:
    """What a training logged: losses, and norms of the gradient before clipping."""

    def __init__(self):
        self.losses = []
        self.norms = []

    @property
    def final_r2(self):
        """Return the median R² of the last 50 steps: the variance of the targets is 1."""
        return 1 - median(self.losses[-50:])

    def steps_to(self, r2):
        """Return how many steps came before the first with so much R²; STEPS if there is none."""
        for step, loss in enumerate(self.losses):
            if 1 - loss >= r2:
                return step
        return STEPS

    def clipped(self, max_norm):
        return sum(norm > max_norm for norm in self.norms)


def train(lab, arm, rate, max_norm, *, factor, length, steps, seed=0):
    """Train until the loss is not a finite number, or all steps are done."""
    torch.manual_seed(seed)
    x, y = sequences(length)
    cells, head = build_net(factor)
    device = lab.device()
    x, y, cells, head = x.to(device), y.to(device), cells.to(device), head.to(device)
    weights = [*cells.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(weights, lr=rate)
    done = Training()
    for step in lab.steps(steps, f"training: {arm}, seed {seed}"):
        states, _ = cells(x)  # (32, length, 32)
        loss = F.mse_loss(head(states[:, -1]), y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(weights, max_norm)  # the norm before; inf clips nothing
        optimizer.step()
        if seed == 0:
            lab.log(step, arm=arm, loss=loss.detach(), norm=norm)
        done.losses.append(loss.item())
        done.norms.append(norm.item())
        if not math.isfinite(done.losses[-1]):
            break
    return done


by_norm = partial(nn.utils.clip_grad_norm_, max_norm=10.0)
by_value = partial(nn.utils.clip_grad_value_, clip_value=10.0)


def one_by_one(weights):
    for weight in weights:
        nn.utils.clip_grad_norm_(weight, 1.0)


def clipped(clip, *gradients):
    """Return what a function that clips leaves of gradients, one weight for each."""
    weights = [torch.zeros(len(gradient)) for gradient in gradients]
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = torch.tensor(gradient)
    clip(weights)
    return [[round(value, 4) for value in weight.grad.tolist()] for weight in weights]


def run(
    lab: Lab,
    factor: float = 1.08,  # by which each step of the sequence multiplies, 0.5..1.2
    high: float = 0.02,  # the high rate that is clipped, 0.0001..0.1
    seeds: int = 3,  # trainings at each rate, 1..10 (quick 1)
) -> None:
    lab.axes("loss", x="step", y="loss", log="y")
    lab.axes("norm", x="step", y="norm of the gradient, before clipping", log="y")

    bounds = {}
    for bound in (math.inf, 100, 10, 1):
        bounds[bound] = train(lab, f"max_norm {bound}", 0.05, bound, factor=factor, length=60, steps=100)
    unclipped = bounds[math.inf]
    finite = [sum(math.isfinite(loss) for loss in bounds[bound].losses) for bound in (10, 1)]
    lab.claim("explodes", sum(map(math.isfinite, unclipped.losses)), equals=1, answers=True)
    lab.claim("norm", unclipped.norms[0], at_least=1e5)
    lab.claim("too-large", bounds[100].losses[1], at_least=1e20)
    lab.claim("finite", finite, equals=[100, 100])
    lab.claim("untrained", [bounds[10].final_r2, bounds[1].final_r2], at_most=0.2)
    lab.claim("clipped", bounds[1].clipped(1), at_least=60)
    lab.claim("rare", bounds[10].clipped(10), at_most=30)

    rates = {
        "low": (LOW_RATE, math.inf),
        "low, clipped": (LOW_RATE, 1),
        "ten times": (10 * LOW_RATE, math.inf),
        "high, clipped": (high, 1),
    }
    ends = {}
    steps = {}
    for name, (rate, bound) in rates.items():
        arm = f"rate {rate:g}, max_norm {bound}"
        done = [train(lab, arm, rate, bound, factor=1, length=40, steps=STEPS, seed=seed) for seed in range(seeds)]
        ends[name] = [one.final_r2 for one in done]
        steps[name] = sum(one.steps_to(ENOUGH) for one in done)
    rows = [(name, *ends[name], steps[name]) for name in rates]
    head = ("rate", *(f"R², seed {seed}" for seed in range(seeds)), f"steps to {ENOUGH}, added")
    lab.table(f"R² after {STEPS} steps", rows, head=head)
    lab.claim("low-rate", ends["low"], at_least=0.05)
    lab.claim("ten-times", ends["ten times"], at_most=0)
    lab.claim("hundred-times", ends["high, clipped"], at_least=0.2)
    lab.claim("sooner", steps["low"] / steps["high, clipped"], at_least=1.3)
    pairs = zip(ends["low, clipped"], ends["low"], strict=True)
    gains = [with_clipping - without for with_clipping, without in pairs]
    lab.claim("alone", gains, at_least=0.01)

    lab.stage("what is clipped")
    lab.claim("by-norm", clipped(by_norm, [30.0, 40.0]), equals=[[6, 8]])
    lab.claim("by-value", clipped(by_value, [30.0, 40.0]), equals=[[10, 10]])
    apart = clipped(one_by_one, [30.0, 40.0], [0.0, 5.0])
    together = clipped(by_norm, [30.0, 40.0], [0.0, 5.0])
    lab.claim("groups", math.hypot(*apart[0], *apart[1]), equals=2**0.5, tolerance=0.001)
    shares = [math.hypot(*first) / math.hypot(*second) for first, second in (together, apart)]
    lab.claim("direction", shares, equals=[10, 1], tolerance=0.001)
    all_nan = [[math.nan] * 2] * 2
    lab.claim("nan", clipped(by_norm, [1.0, math.nan], [0.0, 5.0]), equals=all_nan)
    strict = partial(nn.utils.clip_grad_norm_, max_norm=10.0, error_if_nonfinite=True)
    error = lab.raises(clipped, strict, [1.0, math.nan])
    lab.claim("raised", error.partition(":")[0], equals="RuntimeError")
    rows = [("as one, to a norm of 10", *map(str, together)), ("one by one, to 1", *map(str, apart))]
    lab.table("what is left of [30, 40] and [0, 5]", rows)
