"""Small gradients become 0 in float16; the scale of the loss moves them into its range, and bfloat16 needs none.

The smallest float16 number is 6e-8, the smallest with all its digits 6e-5; the largest is 65504. Weights fit in between. The
gradients of deep nets are often smaller, and what is flushed to 0 teaches nothing. Gradients are linear in the loss: multiply
it by 65536, and each is 16 powers of two further up. The window of float16 has 40 of them, so there is room on both sides of
the right scale. Too large a scale makes inf, which GradScaler looks for. bfloat16 has the range of float32 and needs none.

"Training tricks" is wrong twice, and it is easy to see why. "bfloat16 with a scale overflows easily": it is float16 whose
largest number is below 65536. "A scale makes the machine epsilon smaller": above 6e-5 numbers are rounded as well at any
scale. Below it digits go missing one by one, and only there a scale brings them back.
## Predict
The loss is multiplied by 1e-6. What share of the gradients, from 0 to 1, is not 0 in float64 but 0 in float16?
## Look for
- [zeros] at scale 1 at least 0.9 of the float16 gradients that are not 0 in float64 are 0
- [rescued] at a scale of 65536 at most 0.01 of them are
- [lost] at scale 1 the norm of the error of all float16 gradients is at least 0.99 of their norm
- [restored] at 65536 it is at most 0.02 of it
- [overflow] of a loss that was not made small a scale of 2 to the power of 24 makes gradients that are not finite
- [bfloat16] the bfloat16 gradients are bitwise the same at scale 1 and, divided by it, at 65536
- [no-overflow] all bfloat16 gradients of the loss that was not made small are finite at 2 to the power of 24
- [stands-still] 150 steps in float16 without a scale leave the loss where it was, to 1 in 100
- [weights] of the weights that float32 has learned by then at most 1 in 100 lies where float16 lacks digits, is 0 or inf
- [learns] with GradScaler float16 ends within 1 in 100 of float32, and bfloat16 does without
- [epsilon] numbers from 1e-4 to 2e-4 are rounded as well without a scale as with one of 1024
- [subnormal] numbers from 1e-6 to 2e-6 are rounded at least 50 times worse without it
## Try next
`--loss 1`: the gradients fit as they are. refutes: zeros, lost, stands-still
## Source
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on how to use Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe.
- EffectivePyTorch, chapter "Faster training with automatic mixed precision", https://github.com/vahidk/EffectivePyTorch.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic mixed precision".
- Ours: the shares, the errors and the two corrections.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab


def build_net(device, dtype=torch.float32):
    torch.manual_seed(0)
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)]
    return nn.Sequential(*layers).to(device, dtype)


def gradients(x, y, dtype, small, scale):
    """All gradients of the loss times `small` in one vector of float64, computed at a scale."""
    is_exact = dtype is torch.float64
    net = build_net(x.device, torch.float64 if is_exact else torch.float32)
    with torch.autocast(x.device.type, None if is_exact else dtype, enabled=not is_exact):
        loss = F.mse_loss(net(x.double() if is_exact else x), y.double() if is_exact else y) * small
    found = torch.autograd.grad(loss * scale, [*net.parameters()])
    return torch.cat([gradient.double().flatten() for gradient in found]) / scale


def train(lab, arm, x, dtype, small, is_scaled):
    net = build_net(x.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1 / small)  # as if the loss had not been made small
    scaler = torch.amp.GradScaler(x.device.type, enabled=is_scaled)
    losses = []
    for step in lab.steps(150, f"training: {arm}"):
        with torch.autocast(x.device.type, dtype, enabled=dtype is not torch.float32):
            loss = F.mse_loss(net(x), x[:, :8])  # (128, 8): it learns to hand on what it gets
        optimizer.zero_grad()
        scaler.scale(loss * small).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
        lab.log(step, arm=arm, loss=losses[-1])
    return (losses[-1] / losses[0]).item(), nn.utils.parameters_to_vector(net.parameters()).detach()


def rounding(dtype, size, scale):
    """The mean relative error of numbers from `size` to its double, rounded at a scale."""
    exact = torch.linspace(1, 2, 10_001, dtype=torch.float64) * size
    return ((exact * scale).to(dtype).double() / scale / exact - 1).abs().mean()


def run(
    lab: Lab,
    loss: float = 1e-6,  # by what the loss is multiplied, 1e-8..1
) -> None:
    device = lab.device()
    x, y = torch.randn(128, 32).to(device), torch.randn(128, 8).to(device)
    halves = {"float16": torch.float16, "bfloat16": torch.bfloat16}

    lab.axes("zeros", x="log2 of the scale", y="share of gradients that are 0")
    lab.axes("error", x="log2 of the scale", y="error / norm of all gradients", log="y")
    exact = gradients(x, y, torch.float64, loss, 1)
    zeros, errors, found = {}, {}, {}
    for power in lab.sweep(range(0, 25, 2), "scales"):
        for arm, dtype in halves.items():
            got = found[arm, power] = gradients(x, y, dtype, loss, 2.0**power)
            zeros[arm, power] = (got[exact != 0] == 0).double().mean().item()
            errors[arm, power] = ((got - exact).norm() / exact.norm()).item()
            lab.log(power, arm=arm, zeros=zeros[arm, power], error=errors[arm, power])
    lab.claim("zeros", zeros["float16", 0], at_least=0.9, answers=True)
    lab.claim("rescued", zeros["float16", 16], at_most=0.01)
    lab.claim("lost", errors["float16", 0], at_least=0.99)
    lab.claim("restored", errors["float16", 16], at_most=0.02)
    lab.claim("bfloat16", torch.equal(found["bfloat16", 0], found["bfloat16", 16]))
    is_finite = {arm: gradients(x, y, dtype, 1, 2.0**24).isfinite().all().item() for arm, dtype in halves.items()}
    lab.claim("overflow", is_finite["float16"], equals=False)
    lab.claim("no-overflow", is_finite["bfloat16"])

    lab.axes("loss", x="step", y="loss, before it is made small", log="y")
    arms = {
        "float32": (torch.float32, False),
        "float16": (torch.float16, False),
        "float16 scaled": (torch.float16, True),
        "bfloat16": (torch.bfloat16, False),
    }
    trained = {arm: train(lab, arm, x, dtype, loss, is_scaled) for arm, (dtype, is_scaled) in arms.items()}
    last = {arm: ratio for arm, (ratio, _) in trained.items()}
    lab.claim("stands-still", last["float16"], between=(0.99, 1.01))
    stored = trained["float32"][1].half().abs()
    lab.claim("weights", ((stored < 2**-14) | stored.isinf()).float().mean(), at_most=0.01)
    lab.claim("learns", [last[arm] / last["float32"] - 1 for arm in ("float16 scaled", "bfloat16")], between=(-0.01, 0.01))
    lab.claim("epsilon", rounding(torch.float16, 1e-4, 1) / rounding(torch.float16, 1e-4, 1024), between=(0.95, 1.05))
    lab.claim("subnormal", rounding(torch.float16, 1e-6, 1) / rounding(torch.float16, 1e-6, 1024), at_least=50)
