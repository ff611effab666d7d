"""Use AdamW for weight decay: in Adam, large gradients switch it off.

Weight decay should pull each weight towards zero by the same share in each step. It can be an L2
term in the loss, which adds decay * weight to the gradient, or a direct pull on the weight. For
SGD both are the same. So `weight_decay` became an argument of all
optimizers, and in `torch.optim.Adam` it means the term in the gradient.

Adam divides the gradient by a running estimate of its size. So it also divides the decay. If the
gradients of a weight are large, almost nothing of the decay is left. If they are small, the decay
is most of the gradient, and Adam turns it into a full step of the learning rate. AdamW applies
the pull outside of this division: each step multiplies the weight by 1 - rate * decay, whatever
the gradients are.

The experiment separates decay from learning. The gradients are random signs of one size, with a
mean of zero, so they have no direction. Weights that start at 1 are stepped twice on the same
gradients, with and without decay. The claims are about the difference. SGD has no claim for
gradients of 1000, because each of its steps would move the weight by 10.

In practice: train with `torch.optim.AdamW`, or with `Adam(decoupled_weight_decay=True)`. A
`weight_decay` that was tuned for Adam is not a good value for AdamW, and the reverse. Leave biases
and the scales of norms out of the decay, with a parameter group that has `weight_decay=0`.
## Predict
A weight of 1 gets 100 steps with gradients of 0.001, a rate of 0.01 and a decay of 0.1. What
percentage of the weight does the decay of Adam take?
## Look for
- [adamw] in 100 steps at a rate of 0.01, a decay of 0.1 in AdamW takes 9.5 % of a weight of 1
  (gradients of size 0.001, 1 and 1000)
- [sgd] this decay in SGD takes 9.5 % as well (gradients of size 0.001 and 1)
- [adam-small] for gradients of size 0.001, this decay in Adam takes at least 70 %
- [adam-middle] for gradients of size 1, this decay in Adam takes 9.5 %, to 1 percentage point
- [adam-large] for gradients of size 1000, this decay in Adam takes at most 0.1 %
- [l2-sgd] for SGD, an L2 term of decay / 2 * weight^2 in the loss gives the same weights as
  weight_decay, to 1e-6
- [l2-adam] for Adam, this L2 term also gives the same weights as weight_decay, to 1e-6
## Try next
`--decoupled`: Adam with decoupled_weight_decay=True is AdamW. refutes: adam-small, adam-large,
l2-adam
`--decay 0.3`: AdamW takes nearly three times as much. refutes: adamw, sgd, adam-middle
## Source
I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101:
L2 regularization and weight decay are not the same for Adam. Ours: the three sizes of gradients.
"""

import torch

from tuilab import Lab

SIZES = (0.001, 1.0, 1000.0)
RATE = 0.01
WEIGHTS = 256


class Optimizers:
    """Makes the optimizers of this lesson."""

    def __init__(self, decoupled):
        self.decoupled = decoupled

    def adam(self, weights, decay):
        return torch.optim.Adam(
            weights, lr=RATE, weight_decay=decay, decoupled_weight_decay=self.decoupled
        )

    def adamw(self, weights, decay):
        return torch.optim.AdamW(weights, lr=RATE, weight_decay=decay)

    def sgd(self, weights, decay):
        return torch.optim.SGD(weights, lr=RATE, weight_decay=decay)


def sizes_for(name):
    """Return the sizes of gradients for an optimizer. Steps of SGD grow with the gradient."""
    if name == "SGD":
        return SIZES[:2]
    return SIZES


def random_gradients(size, steps):  # -> (steps, 256)
    """Return gradients of one size with random signs: half of the steps are the others, negated."""
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(2, (steps // 2, WEIGHTS), generator=generator).double() * 2 - 1
    return size * torch.cat([signs, -signs])


def step_weights(make_optimizer, gradients, decay, l2=0.0):
    """Step weights of 1 with these gradients; return them after each step."""
    weights = torch.ones(WEIGHTS, dtype=torch.float64, requires_grad=True)
    optimizer = make_optimizer([weights], decay)
    history = []
    for gradient in gradients:  # (256,)
        loss = (gradient * weights).sum() + l2 / 2 * weights.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(weights.detach().clone())
    return torch.stack(history)  # (steps, 256)


def decayed_shares(make_optimizer, gradients, decay):
    """Return, for each step, the mean share of a weight that only the decay took so far."""
    plain = step_weights(make_optimizer, gradients, 0.0)
    decayed = step_weights(make_optimizer, gradients, decay)
    return (plain - decayed).mean(1)  # (steps,)


def compare_l2_term(make_optimizer, gradients, decay):
    """Return how far an L2 term in the loss is from weight_decay, at most."""
    by_argument = step_weights(make_optimizer, gradients, decay)
    by_loss = step_weights(make_optimizer, gradients, 0.0, l2=decay)
    return (by_argument - by_loss).abs().max().item()


def run(
    lab: Lab,
    steps: int = 100,  # of each optimizer, 10..1000
    decay: float = 0.1,  # the weight decay, 0.001..0.5
    decoupled: bool = False,  # decoupled_weight_decay of Adam
) -> None:
    optimizers = Optimizers(decoupled)
    makers = {"Adam": optimizers.adam, "AdamW": optimizers.adamw, "SGD": optimizers.sgd}
    lab.axes("taken_percent", x="step", y="taken by the decay")
    taken = {}
    for name, make_optimizer in makers.items():
        lab.stage(f"stepping {name}")
        for size in sizes_for(name):
            shares = decayed_shares(make_optimizer, random_gradients(size, steps), decay)
            arm = f"{name}, gradients of {size:g}"
            for step, share in enumerate(shares.tolist()):
                lab.log(step, arm=arm, taken_percent=100 * share)
            taken[name, size] = 100 * shares[-1].item()

    bars = {}
    for name in makers:
        for size in sizes_for(name):
            bars[f"{name}, gradients of {size:g}"] = taken[name, size]
    lab.bars("percent of a weight that the decay took", bars)

    usual_steps = {"steps": 100}
    adamw = [taken["AdamW", size] for size in SIZES]
    sgd = [taken["SGD", size] for size in sizes_for("SGD")]
    small, middle, large = [taken["Adam", size] for size in SIZES]
    lab.claim("adamw", adamw, equals=[9.5] * 3, tolerance=0.5, unit="%", at=usual_steps)
    lab.claim("sgd", sgd, equals=[9.5] * 2, tolerance=0.5, unit="%", at=usual_steps)
    lab.claim("adam-small", small, at_least=70, unit="%", at=usual_steps, answers=True)
    lab.claim("adam-middle", middle, equals=9.5, tolerance=1, unit="%", at=usual_steps)
    lab.claim("adam-large", large, at_most=0.1, unit="%", at=usual_steps)

    lab.stage("an L2 term in the loss")
    gradients = random_gradients(1.0, steps)
    lab.claim("l2-sgd", compare_l2_term(optimizers.sgd, gradients, decay), at_most=1e-6)
    lab.claim("l2-adam", compare_l2_term(optimizers.adam, gradients, decay), at_most=1e-6)
