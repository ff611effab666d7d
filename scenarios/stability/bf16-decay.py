"""Keep float32 weights under weight decay: AdamW's decay is lost in bfloat16.

In each step AdamW multiplies every weight by 1 - lr * weight_decay, and then adds the update of the
gradient. With a rate of 0.001 and a decay of 0.1 the factor is 0.9999. Weights in bfloat16 take
half the memory of float32, and the loss still falls. So the decay seems to work as well.

A bfloat16 weight has 8 significant bits, so the next smaller number is 0.4 to 0.8 % away. A product
that is closer than half of this is rounded back to the weight. The decay is relative. It takes 0.01
% from each weight, so it is lost for large and small weights alike. The update of a gradient is
about as large as the rate, whatever the weight is. For a weight of 0.05 it is 2 %, and it arrives.
The model trains without any decay, and no warning appears.

With `fused=True` the optimizer adds decay and update in float32 and rounds their sum. The decay
then changes how some updates are rounded, but a decay without an update is still lost. A moving
average of weights (EMA) has the same fault: it takes 0.1 % of the way in each step, which is too
little.

The chart shows the norm of all parameters of a small net. The two curves of plain AdamW in bfloat16
are the same, with decay and without.

In practice: create the model in float32, and run the forward under
`torch.autocast("cuda", dtype=torch.bfloat16)`. Keep an EMA in float32. If the weights must be in
bfloat16, use an optimizer that rounds at random. Or set `weight_decay=0`, and every 100 steps
multiply the weights by `(1 - lr * weight_decay) ** 100`.
## Predict
A step of AdamW takes lr * weight_decay from each weight. Above how many percent does the first
bfloat16 weight move?
## Look for
- [same-run] a net in bfloat16, trained with a decay of 0.1 and again without, ends with the same
  bits: 0 of 4680 parameters differ
- [gradients] in this training the gradients move at least 4000 of the 4680 parameters
- [f32-run] in float32 at least 4600 of the 4680 parameters of the same net differ
- [fused-run] in bfloat16 with fused=True at least 1000 of the 4680 parameters differ
- [moved] 1000 steps of AdamW with gradients of 0, a rate of 0.001 and a decay of 0.1 move 0 of 1000
  bfloat16 weights
- [float32] 1000 steps of AdamW with gradients of 0, a rate of 0.001 and a decay of 0.1 leave 0.9048
  of float32 weights
- [fused] with fused=True 1000 steps with gradients of 0 also move 0 of 1000 bfloat16 weights
- [rare] the decay of 100 steps at once, every 100 steps, leaves 0.907 of bfloat16 weights after
  1000 steps
- [too-often] the decay of 10 steps at once, every 10 steps, leaves all of bfloat16 weights
- [limit] the largest lr * weight_decay that moves no bfloat16 weight is 0.195 %
- [every] the largest lr * weight_decay that leaves any bfloat16 weight unchanged is 0.388 %
- [average] a bfloat16 average that takes 0.1 % of the way from 1 to 0 in each step is 1 after 5000
  steps
## Try next
`--master`: float32 weights, as a model under autocast has them. The decay arrives.
refutes: same-run, moved, fused
`--lr 0.05`: a step takes 0.5 % from each weight. This is above the limit, and nothing is lost.
refutes: same-run, moved, float32, fused, rare, too-often
## Source
- "No weight decay with Adam, bf16 and stochastic rounding",
  https://github.com/Nerogar/OneTrainer/issues/996: the decay that is lost.
- "Add BF16 stochastic rounding option for optimizers", https://github.com/pytorch/ao/pull/1124: the
  remedy. Ours: two runs with the same bits, the limits, fused=True, the rare decay and the average.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

STEPS = 1000  # of the decay alone


def make_weights(dtype, device):  # (1000,), of the size of weights in a net
    return (0.02 * torch.randn(1000)).to(device, dtype)


def all_numbers(device):
    """Return all bfloat16 numbers from 1/128 to 2."""
    upper_bits = torch.arange(0x3C00, 0x4000, dtype=torch.int32, device=device)
    return (upper_bits << 16).view(torch.float32).bfloat16()


def share_left(weights, start):
    return (weights.double().norm() / start.double().norm()).item()


def decay_alone(lr, decay, dtype, device, fused=False):
    """Return how many weights AdamW moves with gradients of 0, and which share of them is left."""
    torch.manual_seed(0)
    start = make_weights(dtype, device)
    weights = start.clone().requires_grad_()
    weights.grad = torch.zeros_like(weights)
    optimizer = torch.optim.AdamW([weights], lr=lr, weight_decay=decay, fused=fused)
    for _ in range(STEPS):
        optimizer.step()
    weights = weights.detach()
    moved = (weights != start).sum().item()
    return moved, share_left(weights, start)


def decay_at_once(factor, every, device):
    """Return the share that is left of bfloat16 weights that decay only every few steps."""
    torch.manual_seed(0)
    start = make_weights(torch.bfloat16, device)
    weights = start.clone()
    for _ in range(STEPS // every):
        weights *= factor**every
    return share_left(weights, start)


def claim_decay(lab, lr, decay, dtype, device):
    lab.stage("decay alone")
    moved, _ = decay_alone(lr, decay, dtype, device)
    lab.claim("moved", moved, equals=0)
    _, left = decay_alone(lr, decay, torch.float32, device)
    lab.claim("float32", left, equals=0.9048, tolerance=0.0001)
    moved_by_fused, _ = decay_alone(lr, decay, dtype, device, fused=True)
    lab.claim("fused", moved_by_fused, equals=0)

    factor = 1 - lr * decay
    lab.claim("rare", decay_at_once(factor, 100, device), equals=0.907, tolerance=0.001)
    lab.claim("too-often", decay_at_once(factor, 10, device), equals=1)


def claim_limits(lab, device):
    lab.stage("limits")
    numbers = all_numbers(device)

    def moves_none(product):
        return torch.equal(numbers * (1 - product), numbers)

    def keeps_any(product):
        return (numbers * (1 - product) == numbers).any().item()

    limit = 100 * lab.limit(moves_none, 0.0, 0.1)
    lab.claim("limit", limit, equals=0.195, tolerance=0.001, unit="%", answers=True)
    every = 100 * lab.limit(keeps_any, 0.0, 0.1)
    lab.claim("every", every, equals=0.388, tolerance=0.001, unit="%")


def claim_average(lab, device):
    average = torch.ones((), dtype=torch.bfloat16, device=device)
    weight = torch.zeros_like(average)
    for _ in range(5000):
        average.lerp_(weight, 0.001)
    lab.claim("average", average, equals=1)


def flatten(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach()


def train(lab, arm, steps, dtype, lr, decay, fused=False):
    """Return the parameters of the net before and after the training, (4680,) each."""
    device = lab.device()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).to(device, dtype)
    x = torch.randn(256, 64).to(device, dtype)
    y = torch.randint(8, (256,)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=decay, fused=fused)
    start = flatten(net)
    for step in lab.steps(steps, arm):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x).float(), y)
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            lab.log(step, arm=arm, norm=flatten(net).float().norm(), loss=loss.detach())
    return start, flatten(net)


def train_twice(lab, name, steps, dtype, lr, decay, fused=False):
    """Return how many parameters the decay changed, and how many the training."""
    start, with_decay = train(lab, f"{name}, decay {decay}", steps, dtype, lr, decay, fused)
    _, without_decay = train(lab, f"{name}, no decay", steps, dtype, lr, 0.0, fused)
    differing = (with_decay != without_decay).sum().item()
    moved = (with_decay != start).sum().item()
    return differing, moved


def claim_training(lab, steps, dtype, lr, decay):
    lab.axes("norm", x="step", y="norm of all parameters")
    lab.axes("loss", x="step", y="loss")
    name = str(dtype).removeprefix("torch.")
    differing, moved = train_twice(lab, name, steps, dtype, lr, decay)
    lab.claim("same-run", differing, equals=0)
    lab.claim("gradients", moved, at_least=4000)
    differing, _ = train_twice(lab, "float32, plain", steps, torch.float32, lr, decay)
    lab.claim("f32-run", differing, at_least=4600)
    differing, _ = train_twice(lab, f"{name}, fused", steps, dtype, lr, decay, fused=True)
    lab.claim("fused-run", differing, at_least=1000)


def run(
    lab: Lab,
    master: bool = False,  # float32 weights in place of bfloat16
    lr: float = 0.001,  # of AdamW, 0..1
    steps: int = 300,  # of the training, 100..10000 (quick 100)
) -> None:
    device = lab.device()
    dtype = torch.float32 if master else torch.bfloat16
    decay = 0.1
    claim_training(lab, steps, dtype, lr, decay)
    claim_decay(lab, lr, decay, dtype, device)
    claim_limits(lab, device)
    claim_average(lab, device)
