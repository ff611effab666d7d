"""Unscale before you clip, and log the scale: a skipped step looks like any other.

In float16 small gradients become 0. GradScaler multiplies the loss by a scale before backward, so
all gradients are larger by the same factor. Two mistakes with it raise no error: gradients that
are clipped too early, and steps that are skipped.

`step` divides the gradients by the scale, and skips the optimizer if a gradient is inf or nan.
`update` then halves the scale after a skip, and doubles it after a number of good steps in a row.
So the scale rises until the largest gradient overflows, falls back and rises again. By default it
starts at 65536 and doubles after 2000 good steps. `update(new_scale=...)` sets it.

Between `backward` and `step` the gradients contain the scale. If you clip them there, you clip
the scaled norm, and the division afterwards makes them far too small. And `step` returns None
whether it steps or skips, so compare `get_scale()` before and after `update()`.

bfloat16 has the exponent range of float32. Nothing overflows, the scale only rises, and a scaler
is of no use. The second source says that the scaler brings gradients "back to 16 bits". The
gradients of float32 parameters are float32, before and after. The third writes `GradScaler()`
without a device. That is a scaler for CUDA. Without CUDA it warns, switches itself off, and
float16 trains without a scale.

In practice: with float16 use `torch.amp.GradScaler(device.type)`, call `scaler.unscale_(optimizer)`
before `clip_grad_norm_`, and log `scaler.get_scale()`. With bfloat16 leave the scaler out.
## Predict
Of 400 float16 steps that start from a scale of 65536, with an interval of 20, how many are skipped?
## Look for
- [skips] 16 of 400 steps are skipped
- [growths] in 400 steps the scale is doubled 19 times
- [skipped] the first step that is skipped changes no weight
- [none] `step` returns None in all 400 steps
- [defaults] by default the scale doubles after 2000 steps, twice the 1000 steps that the source
  trains for
- [bfloat16] bfloat16 skips none of 100 steps, and the scale ends at 2 to the power of 21
- [float32] gradients of float32 parameters are float32 after `unscale_`
- [clip-early] clipped to a norm of 1 before `unscale_`, the gradients end with a norm of 1/65536
- [clip-late] clipped to a norm of 1 after `unscale_`, the gradients end with a norm of 1
- [refused] a closure, a second `unscale_`, a step without a backward and float16 parameters raise
  an error
- [new-scale] `update(new_scale=3.0)` sets the scale to 3
- [no-device] `GradScaler()` without a device scales if CUDA is available, and otherwise warns and
  returns the loss unchanged
- [disabled] with `enabled=False` the loss is returned unchanged, and the scale is 1
## Try next
`--interval 2000`: the default. In 400 steps the scale has no time to change. refutes: skips,
growths, skipped
`--dtype bfloat16`: no step overflows. refutes: skips, growths, skipped
`--init 24`: the scale starts too high, and 7 more steps are skipped while it comes down.
refutes: skips, growths
## Source
- A note on torch.cuda.amp (in Chinese), section "amp.GradScaler",
  https://blog.csdn.net/qq_43369406/article/details/130393078: the five arguments, new_scale, and
  its example of a `Linear(10, 1)` and 1000 steps.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: gradients back to 16 bits.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section
  "Automatic mixed precision": a scaler without a device.
- Ours: the counts, the clipping and the errors.
"""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

STEPS = 400


class ScaledStep(NamedTuple):
    """What happened in a step of training."""

    factor: float  # of the scale: 0.5, 1 or 2
    is_weight_changed: bool
    returned: object  # by scaler.step()


class ScaledTrial:
    """A Linear, its optimizer and its scaler."""

    def __init__(self, device, amp=torch.float16, weights=torch.float32, **scaling):
        torch.manual_seed(0)
        self.amp = amp
        self.net = nn.Linear(10, 1).to(device, weights)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.scaler = torch.amp.GradScaler(device.type, **scaling)

    def backward(self, x, y):  # (64, 10), (64, 1)
        with torch.autocast(x.device.type, self.amp):
            loss = F.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()

    def unscale(self):
        self.scaler.unscale_(self.optimizer)

    def clip(self):
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)

    def gradient_norm(self):
        gradients = [weight.grad for weight in self.net.parameters()]
        return nn.utils.get_total_norm(gradients).item()


def train(lab, arm, trial, x, y, count):
    steps = []
    for number in lab.steps(count, f"training: {arm}"):
        trial.backward(x, y)
        scale = trial.scaler.get_scale()
        weight = trial.net.weight.detach().clone()
        returned = trial.scaler.step(trial.optimizer)
        trial.scaler.update()
        factor = trial.scaler.get_scale() / scale
        is_changed = not torch.equal(weight, trial.net.weight)
        steps.append(ScaledStep(factor, is_changed, returned))
        lab.log(number, arm=arm, scale=scale)
    return steps


def count_factors(steps, factor):
    return [step.factor for step in steps].count(factor)


def train_scaled(lab, device, x, y, amp, init, interval):
    trial = ScaledTrial(device, amp, init_scale=2.0**init, growth_interval=interval)
    steps = train(lab, "scaled", trial, x, y, STEPS)
    lab.claim("skips", count_factors(steps, 0.5), equals=16, answers=True)
    lab.claim("growths", count_factors(steps, 2), equals=19)
    changes_of_skipped = [step.is_weight_changed for step in steps if step.factor == 0.5]
    lab.claim("skipped", changes_of_skipped[:1], equals=[False])
    returned = {step.returned for step in steps}
    lab.claim("none", returned == {None})
    lab.claim("defaults", ScaledTrial(device).scaler.get_growth_interval(), equals=2000)


def train_in_bfloat16(lab, device, x, y):
    trial = ScaledTrial(device, torch.bfloat16, growth_interval=20)
    steps = train(lab, "bfloat16", trial, x, y, 100)
    skips = count_factors(steps, 0.5)
    lab.claim("bfloat16", [skips, trial.scaler.get_scale()], equals=[0, 2**21])


def clip_early_and_late(lab, device, x, y):
    lab.stage("clipping")
    early = ScaledTrial(device)
    early.backward(x, y)
    early.clip()
    early.unscale()
    lab.claim("clip-early", early.gradient_norm(), equals=1 / 65536, tolerance=1e-8)

    late = ScaledTrial(device)
    late.backward(x, y)
    late.unscale()
    late.clip()
    lab.claim("clip-late", late.gradient_norm(), equals=1, tolerance=0.001)
    lab.claim("float32", str(late.net.weight.grad.dtype), equals="torch.float32")


def collect_errors(lab, device, x, y):
    lab.stage("what is refused")
    unscaled = ScaledTrial(device)
    unscaled.backward(x, y)
    unscaled.unscale()
    halves = ScaledTrial(device, weights=torch.float16)
    halves.backward(x, y)

    def step_with_closure():
        unscaled.scaler.step(unscaled.optimizer, closure=float)

    fresh = ScaledTrial(device)
    errors = {
        "a second unscale_": lab.raises(unscaled.unscale),
        "a closure": lab.raises(step_with_closure),
        "a step without a backward": lab.raises(fresh.scaler.step, fresh.optimizer),
        "float16 parameters": lab.raises(halves.scaler.step, halves.optimizer),
    }
    lab.table("what is refused", [*errors.items()], head=("call", "error"))
    lab.claim("refused", all(errors.values()))


def set_scale(lab, device, x, y):
    trial = ScaledTrial(device)
    trial.backward(x, y)
    trial.scaler.update(new_scale=3.0)
    lab.claim("new-scale", trial.scaler.get_scale(), equals=3)


def switch_off(lab, device, x):
    lab.stage("scalers that are off")
    has_cuda = torch.get_device_module("cuda").is_available()
    loss = x[0, 0]
    scalers = []
    warnings = lab.warns(lambda: scalers.append(torch.amp.GradScaler()))
    lab.text("\n".join(warnings) or "no warning", title="GradScaler()")
    is_on = scalers[0].is_enabled()
    measured = [is_on, len(warnings) > 0]
    if not is_on:
        measured.append(scalers[0].scale(loss).equal(loss))
    expected = [True, False] if has_cuda else [False, True, True]
    lab.claim("no-device", measured, equals=expected)

    disabled = ScaledTrial(device, enabled=False).scaler
    is_unchanged = disabled.scale(loss).equal(loss)
    lab.claim("disabled", [is_unchanged, disabled.get_scale()], equals=[True, 1])


def run(
    lab: Lab,
    dtype: Literal["float16", "bfloat16"] = "float16",  # of the training
    interval: int = 20,  # good steps before the scale is doubled, 1..10000
    init: int = 16,  # power of two at which the scale begins, 0..30
) -> None:
    device = lab.device()
    x = torch.randn(64, 10).to(device)
    y = torch.randn(64, 1).to(device)  # nothing to learn, so gradients stay large
    lab.axes("scale", x="step", y="scale of the loss", log="y")
    train_scaled(lab, device, x, y, getattr(torch, dtype), init, interval)
    train_in_bfloat16(lab, device, x, y)
    clip_early_and_late(lab, device, x, y)
    collect_errors(lab, device, x, y)
    set_scale(lab, device, x, y)
    switch_off(lab, device, x)
