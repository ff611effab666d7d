"""Scale the loss if you train in float16, and use bfloat16 without a scale.

A deep net trains in float32, and in float16 its loss does not move. No error and no NaN appears.
The gradients have become 0.

The smallest float16 number is 6e-8, the smallest with all its digits is 6e-5, and the largest is
65504. Most weights fit in between, and so do the gradients of an ordinary loss. But deep nets,
small losses and means over many elements make gradients that are smaller. A gradient that is
rounded to 0 teaches nothing.

Gradients are linear in the loss. If you multiply the loss by 65536, each gradient moves up by 16
powers of two. The range of float16 has 40, so there is room on both sides of a good scale. If the
scale is too large, gradients become inf, which GradScaler looks for. bfloat16 has the exponent
range of float32 and needs no scale.

"Training tricks" is wrong twice. It says that bfloat16 with a scale of 65536 overflows easily. But
the type whose largest number is below 65536 is float16. It also says that a scale makes the
machine epsilon smaller. Above 6e-5 the rounding is the same with any scale. Only below it, where
float16 loses its digits one by one, does a scale bring them back.

In practice: train in bfloat16 on Ampere and later, without a scaler. On older cards use float16
with `torch.amp.GradScaler("cuda")`. If a float16 loss does not move, count the zeros:
`(weight.grad == 0).float().mean()` for each weight.
## Predict
The loss is multiplied by 1e-6. What share of the gradients, from 0 to 1, is not 0 in float64 but 0
in float16?
## Look for
- [ordinary] of the gradients of an ordinary loss at most 0.01 are 0 in float16 and not in float64
- [digits] of the gradients of an ordinary loss at least 0.8 are in the range where float16 has all
  its digits
- [zeros] at scale 1 at least 0.9 of the gradients that are not 0 in float64 are 0 in float16
- [rescued] at a scale of 65536 at most 0.01 of the gradients that are not 0 in float64 are 0 in
  float16
- [lost] at scale 1 the error of the float16 gradients is at least 0.99 of their norm
- [restored] at a scale of 65536 the error of the float16 gradients is at most 0.02 of their norm
- [overflow] a scale of 2 to the power of 24 on an ordinary loss makes float16 gradients that are
  not finite
- [bfloat16] the bfloat16 gradients at scale 1 and at 65536, divided by the scale, are bitwise equal
- [no-overflow] at a scale of 2 to the power of 24 all bfloat16 gradients of an ordinary loss are
  finite
- [stands-still] after 150 steps in float16 without a scale the loss is 0.99 to 1.01 times the first
  loss
- [weights] of the weights that float32 has learned at most 0.01 are inf, 0 or without all their
  digits in float16
- [learns] the last loss of float16 with GradScaler, and that of bfloat16 without, are at most 0.01
  larger or smaller than the last loss of float32, as a share
- [epsilon] the mean rounding error of float16 numbers from 1e-4 to 2e-4 without a scale is 0.95 to
  1.05 times that with a scale of 1024
- [subnormal] the mean rounding error of float16 numbers from 1e-6 to 2e-6 without a scale is at
  least 50 times that with a scale of 1024
## Try next
`--loss 1`: an ordinary loss, whose gradients fit as they are. refutes: zeros, lost, stands-still
## Source
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", sections on Tensor Cores
  and on how to use them,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
  float16 represents most weights and gradients, and a scale keeps small gradients.
- EffectivePyTorch, chapter "Faster training with automatic mixed precision",
  https://github.com/vahidk/EffectivePyTorch.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section
  "Automatic mixed precision".
- Ours: the shares, the errors and the two corrections.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
SMALLEST_NORMAL = torch.finfo(torch.float16).smallest_normal  # 6e-5
STEPS = 150


def build_net(device, dtype=torch.float32):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(32, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 8),
    )
    return net.to(device, dtype)


def flatten(gradients, scale):
    """Return all gradients as one vector of float64, divided by the scale."""
    vector = torch.cat([gradient.flatten().double() for gradient in gradients])
    return vector / scale


def exact_gradients(x, y, factor):
    """Return the gradients of the loss times a factor, computed in float64."""
    net = build_net(x.device, torch.float64)
    loss = F.mse_loss(net(x.double()), y.double()) * factor
    gradients = torch.autograd.grad(loss, [*net.parameters()])
    return flatten(gradients, 1)


def scaled_gradients(x, y, dtype, factor, scale):
    """Return the gradients of the loss times a factor, computed in 16 bits at a scale."""
    net = build_net(x.device)
    with torch.autocast(x.device.type, dtype):
        loss = F.mse_loss(net(x), y) * factor
    gradients = torch.autograd.grad(loss * scale, [*net.parameters()])
    return flatten(gradients, scale)


def share_of_zeros(gradients, exact):
    """Return the share of gradients that are 0 among those that are exactly not 0."""
    return (gradients[exact != 0] == 0).double().mean().item()


def measure_scales(lab, x, y, factor):
    lab.axes("zeros", x="log2 of the scale", y="share of gradients that are 0")
    lab.axes("error", x="log2 of the scale", y="error / norm of all gradients", log="y")
    exact = exact_gradients(x, y, factor)
    gradients = {}
    zeros = {}
    errors = {}
    for power in lab.sweep(range(0, 25, 2), "scales"):
        for arm, dtype in HALVES.items():
            vector = scaled_gradients(x, y, dtype, factor, 2.0**power)
            gradients[arm, power] = vector
            zeros[arm, power] = share_of_zeros(vector, exact)
            errors[arm, power] = ((vector - exact).norm() / exact.norm()).item()
            lab.log(power, arm=arm, zeros=zeros[arm, power], error=errors[arm, power])
    lab.claim("zeros", zeros["float16", 0], at_least=0.9, answers=True)
    lab.claim("rescued", zeros["float16", 16], at_most=0.01)
    lab.claim("lost", errors["float16", 0], at_least=0.99)
    lab.claim("restored", errors["float16", 16], at_most=0.02)
    is_same = torch.equal(gradients["bfloat16", 0], gradients["bfloat16", 16])
    lab.claim("bfloat16", is_same)


def measure_ordinary_loss(lab, x, y):
    lab.stage("an ordinary loss")
    exact = exact_gradients(x, y, 1)
    vector = scaled_gradients(x, y, torch.float16, 1, 1)
    nonzero = exact[exact != 0].abs()
    lab.claim("ordinary", share_of_zeros(vector, exact), at_most=0.01)
    lab.claim("digits", (nonzero >= SMALLEST_NORMAL).double().mean(), at_least=0.8)

    are_finite = {}
    for arm, dtype in HALVES.items():
        vector = scaled_gradients(x, y, dtype, 1, 2.0**24)
        are_finite[arm] = vector.isfinite().all().item()
    lab.claim("overflow", are_finite["float16"], equals=False)
    lab.claim("no-overflow", are_finite["bfloat16"])


def train(lab, arm, x, dtype, factor, is_scaled):
    """Train on the loss times a factor.

    Return the last loss, relative to the first, and the weights. The rate undoes the factor.
    """
    net = build_net(x.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1 / factor)
    scaler = torch.amp.GradScaler(x.device.type, enabled=is_scaled)
    is_half = dtype is not torch.float32
    losses = []
    for step in lab.steps(STEPS, f"training: {arm}"):
        with torch.autocast(x.device.type, dtype, enabled=is_half):
            loss = F.mse_loss(net(x), x[:, :8])  # (128, 8): the first inputs are the targets
        optimizer.zero_grad()
        scaler.scale(loss * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
        lab.log(step, arm=arm, loss=losses[-1])
    weights = nn.utils.parameters_to_vector(net.parameters()).detach()
    return (losses[-1] / losses[0]).item(), weights


def compare_training(lab, x, factor):
    lab.axes("loss", x="step", y="loss, before it is made small", log="y")
    float32, weights = train(lab, "float32", x, torch.float32, factor, False)
    float16, _ = train(lab, "float16", x, torch.float16, factor, False)
    scaled, _ = train(lab, "float16 scaled", x, torch.float16, factor, True)
    bfloat16, _ = train(lab, "bfloat16", x, torch.bfloat16, factor, False)
    lab.claim("stands-still", float16, between=(0.99, 1.01))
    differences = [scaled / float32 - 1, bfloat16 / float32 - 1]
    lab.claim("learns", differences, between=(-0.01, 0.01))
    halves = weights.half().abs()
    misses = (halves < SMALLEST_NORMAL) | halves.isinf()
    lab.claim("weights", misses.float().mean(), at_most=0.01)


def mean_rounding(size, scale):
    """Return the mean relative error of float16 numbers from `size` to its double, at a scale."""
    exact = size * torch.linspace(1, 2, 10_001, dtype=torch.float64)
    rounded = (exact * scale).to(torch.float16).double() / scale
    return (rounded / exact - 1).abs().mean()


def compare_rounding(lab):
    lab.stage("rounding")
    normal = mean_rounding(1e-4, 1) / mean_rounding(1e-4, 1024)
    subnormal = mean_rounding(1e-6, 1) / mean_rounding(1e-6, 1024)
    lab.claim("epsilon", normal, between=(0.95, 1.05))
    lab.claim("subnormal", subnormal, at_least=50)


def run(
    lab: Lab,
    loss: float = 1e-6,  # by what the loss is multiplied, 1e-8..1
) -> None:
    device = lab.device()
    x = torch.randn(128, 32).to(device)
    y = torch.randn(128, 8).to(device)
    measure_scales(lab, x, y, loss)
    measure_ordinary_loss(lab, x, y)
    compare_training(lab, x, loss)
    compare_rounding(lab)
