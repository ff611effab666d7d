"""Clip the norm of the gradient, and the rate can be a hundred times higher.

A recurrent net multiplies by the same weights at each step of a sequence. A factor of 1.08 is 101
after 60 steps, and the first gradient has a norm of hundreds of thousands. One step along it can
ruin the net. `clip_grad_norm_` multiplies all gradients by max_norm / norm if the norm is larger.
The direction stays, and the length of a step is at most rate * max_norm. If max_norm is too large,
clipping does not help. And finite losses alone prove little: at this factor and this rate the net
learns next to nothing with any bound.

So the measure here is R²: the share of the variance of the targets that the net explains. A net
that answers with the mean of the targets has 0, and a perfect net has 1. The targets are
standardised: their mean is 0 and their variance is 1. Otherwise a net that learned only the mean
looks trained. A single step can jump, so "ends with an R²" means the median of the last 50 steps.

Does clipping speed up training, as the source promises? Here it does, in two ways. At the same low
rate the clipped net ends with a higher R², because its first steps do not overshoot. And it
survives a rate that is a hundred times higher, which reaches the same R² in fewer steps. The gain
is modest: some 1.7 times over three seeds, and for one of the seeds only some 10 of 147 steps.

The source clips each value into [-10, 10] and calls that the norm. It is `clip_grad_value_`, and
it changes the direction: [30, 40] becomes [10, 10], where a norm of 10 makes it [6, 8]. If each
group of weights is clipped by itself, each has its own bound. Two groups with a bound of 1 then
make a step of up to 1.41. The source also cites Graves (2013) with 10 for the middle layers and
100 for the head. Used as two norms, these bounds keep the losses finite. The paper itself clips
each derivative by value inside backward, which is not tested here. A nan in one gradient makes the
norm nan, and so all gradients.

In practice: call `norm = clip_grad_norm_(model.parameters(), max_norm=1.0)` between `backward()`
and `step()`, and log the norm. If most steps are clipped, the bound sets the length of a step, so
tune the rate together with it.
## Predict
Without clipping, at a factor of 1.08, 60 long, and at a rate of 0.05: how many of 100 losses are
finite numbers?
## Look for
- [explodes] without clipping 1 loss of 100 is finite, the loss of the first step
- [norm] the first gradient has a norm of at least 100,000
- [too-large] with a max_norm of 100 the second loss is at least 1e20
- [finite] with a max_norm of 10 and of 1 all 100 losses are finite
- [graves] with the bounds of Graves, 10 for the recurrent layer and 100 for the head, all 100
  losses are finite
- [untrained] with a max_norm of 10, of 1 and with the bounds of Graves, the net ends with an R² of
  0.2 or less
- [clipped] with a max_norm of 1 at least 60 of 100 steps are clipped
- [rare] with a max_norm of 10 at most 30 of 100 steps are clipped
- [low-rate] at a factor of 1, 40 long, a rate of 0.0002 without clipping ends with an R² of 0.05 or
  more for each seed
- [ten-times] at a factor of 1 a rate of 0.002 without clipping ends with an R² of 0 or less for
  each seed
- [hundred-times] at a factor of 1 a rate of 0.02, clipped to 1, ends with an R² of 0.2 or more for
  each seed
- [sooner] to an R² of 0.2, a rate of 0.0002 needs at least 1.3 times the steps of 0.02 clipped to
  1, all seeds added
- [alone] clipping to 1 at a rate of 0.0002 raises the R² at the end by 0.01 or more for each seed
- [by-norm] clipped to a norm of 10, [30, 40] is [6, 8]
- [by-value] clipped by value to 10, [30, 40] is [10, 10]
- [groups] [30, 40] and [0, 5], each clipped by itself to a norm of 1, have a norm of 1.4142
  together
- [direction] the norms of [30, 40] and [0, 5] stay 10 to 1 if clipped as one group, and become 1 to
  1 if each is clipped by itself
- [nan] a nan in one gradient makes all clipped gradients nan
- [raised] with error_if_nonfinite=True a nan raises a RuntimeError instead
## Try next
`--factor 0.5`: nothing explodes, and nothing needs to be clipped. refutes: explodes, norm,
too-large, clipped
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 11,
https://www.toymoban.com/news/detail-808122.html: min(max, g), groups, a higher rate, faster
convergence, the bounds of Graves. Ours: the recurrent net, R², the bounds that do not help, and the
number of clipped steps.
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

    @property
    def finite_losses(self):
        return sum(math.isfinite(loss) for loss in self.losses)

    def clipped_steps(self, max_norm):
        return sum(norm > max_norm for norm in self.norms)


def clip_gradients(cells, head, max_norm, head_norm):
    """Clip all gradients as one group, or the head by itself. Return the norm before."""
    if head_norm is None:
        return nn.utils.clip_grad_norm_([*cells.parameters(), *head.parameters()], max_norm)
    norm_of_cells = nn.utils.clip_grad_norm_(cells.parameters(), max_norm)
    norm_of_head = nn.utils.clip_grad_norm_(head.parameters(), head_norm)
    return torch.hypot(norm_of_cells, norm_of_head)


def train(lab, arm, rate, max_norm, *, factor, length, steps, seed=0, head_norm=None):
    """Train until the loss is not a finite number, or all steps are done."""
    torch.manual_seed(seed)
    device = lab.device()
    x, y = sequences(length)
    x, y = x.to(device), y.to(device)
    cells, head = build_net(factor)
    cells.to(device)
    head.to(device)
    optimizer = torch.optim.SGD([*cells.parameters(), *head.parameters()], lr=rate)
    training = Training()
    for step in lab.steps(steps, f"training: {arm}, seed {seed}"):
        states, _ = cells(x)  # (32, length, 32)
        loss = F.mse_loss(head(states[:, -1]), y)
        optimizer.zero_grad()
        loss.backward()
        norm = clip_gradients(cells, head, max_norm, head_norm)  # a bound of inf clips nothing
        optimizer.step()
        if seed == 0:
            lab.log(step, arm=arm, loss=loss.detach(), norm=norm)
        training.losses.append(loss.item())
        training.norms.append(norm.item())
        if not math.isfinite(training.losses[-1]):
            break
    return training


by_norm = partial(nn.utils.clip_grad_norm_, max_norm=10.0)
by_value = partial(nn.utils.clip_grad_value_, clip_value=10.0)


def one_by_one(weights):
    for weight in weights:
        nn.utils.clip_grad_norm_(weight, 1.0)


def clip_examples(clip, *gradients):
    """Return what is left of gradients, one weight for each, after a function that clips."""
    weights = []
    for gradient in gradients:
        weight = torch.zeros(len(gradient))
        weight.grad = torch.tensor(gradient)
        weights.append(weight)
    clip(weights)
    clipped = []
    for weight in weights:
        clipped.append([round(value, 4) for value in weight.grad.tolist()])
    return clipped


def ratio_of_norms(gradients):
    first, second = gradients
    return math.hypot(*first) / math.hypot(*second)


def claim_exploding(lab, factor):
    """Train at a factor that explodes, with several bounds."""
    shape = {"factor": factor, "length": 60, "steps": 100}
    trainings = {}
    for bound in (math.inf, 100, 10, 1):
        trainings[bound] = train(lab, f"max_norm {bound}", 0.05, bound, **shape)
    graves = train(lab, "Graves: 10 and 100", 0.05, 10, head_norm=100, **shape)
    unclipped, too_large, ten, one = trainings.values()
    lab.claim("explodes", unclipped.finite_losses, equals=1, answers=True)
    lab.claim("norm", unclipped.norms[0], at_least=1e5)
    lab.claim("too-large", too_large.losses[1], at_least=1e20)
    lab.claim("finite", [ten.finite_losses, one.finite_losses], equals=[100, 100])
    lab.claim("graves", graves.finite_losses, equals=100)
    lab.claim("untrained", [ten.final_r2, one.final_r2, graves.final_r2], at_most=0.2)
    lab.claim("clipped", one.clipped_steps(1), at_least=60)
    lab.claim("rare", ten.clipped_steps(10), at_most=30)


def claim_rates(lab, high, seeds):
    """Train at a factor that does not explode, with low and high rates."""
    rates = {
        "low": (LOW_RATE, math.inf),
        "low, clipped": (LOW_RATE, 1),
        "ten times": (10 * LOW_RATE, math.inf),
        "high, clipped": (high, 1),
    }
    final_r2 = {}
    steps = {}
    rows = []
    for name, (rate, bound) in rates.items():
        final_r2[name] = []
        steps[name] = 0
        for seed in range(seeds):
            arm = f"rate {rate:g}, max_norm {bound}"
            training = train(lab, arm, rate, bound, factor=1, length=40, steps=STEPS, seed=seed)
            final_r2[name].append(training.final_r2)
            steps[name] += training.steps_to(ENOUGH)
        rows.append((name, *final_r2[name], steps[name]))
    r2_columns = [f"R², seed {seed}" for seed in range(seeds)]
    head = ("rate", *r2_columns, f"steps to {ENOUGH}, added")
    lab.table(f"R² after {STEPS} steps", rows, head=head)

    lab.claim("low-rate", final_r2["low"], at_least=0.05)
    lab.claim("ten-times", final_r2["ten times"], at_most=0)
    lab.claim("hundred-times", final_r2["high, clipped"], at_least=0.2)
    lab.claim("sooner", steps["low"] / steps["high, clipped"], at_least=1.3)
    gains = []
    for seed in range(seeds):
        gains.append(final_r2["low, clipped"][seed] - final_r2["low"][seed])
    lab.claim("alone", gains, at_least=0.01)


def claim_examples(lab):
    """Clip gradients that fit on a line."""
    lab.stage("clipping by hand")
    lab.claim("by-norm", clip_examples(by_norm, [30.0, 40.0]), equals=[[6, 8]])
    lab.claim("by-value", clip_examples(by_value, [30.0, 40.0]), equals=[[10, 10]])
    together = clip_examples(by_norm, [30.0, 40.0], [0.0, 5.0])
    apart = clip_examples(one_by_one, [30.0, 40.0], [0.0, 5.0])
    lab.claim("groups", math.hypot(*apart[0], *apart[1]), equals=2**0.5, tolerance=0.001)
    ratios = [ratio_of_norms(together), ratio_of_norms(apart)]
    lab.claim("direction", ratios, equals=[10, 1], tolerance=0.001)
    with_nan = clip_examples(by_norm, [1.0, math.nan], [0.0, 5.0])
    lab.claim("nan", with_nan, equals=[[math.nan] * 2] * 2)
    strict = partial(nn.utils.clip_grad_norm_, max_norm=10.0, error_if_nonfinite=True)
    error = lab.raises(clip_examples, strict, [1.0, math.nan])
    lab.claim("raised", error.partition(":")[0], equals="RuntimeError")
    rows = [
        ("as one group, to a norm of 10", str(together[0]), str(together[1])),
        ("each by itself, to a norm of 1", str(apart[0]), str(apart[1])),
    ]
    lab.table("what is left of [30, 40] and [0, 5]", rows)


def run(
    lab: Lab,
    factor: float = 1.08,  # by which each step of the sequence multiplies, 0.5..1.2
    high: float = 0.02,  # the high rate that is clipped, 0.0001..0.1
    seeds: int = 3,  # trainings at each rate, 1..10 (quick 1)
) -> None:
    lab.axes("loss", x="step", y="loss", log="y")
    lab.axes("norm", x="step", y="norm of the gradient, before clipping", log="y")
    claim_exploding(lab, factor)
    claim_rates(lab, high, seeds)
    claim_examples(lab)
