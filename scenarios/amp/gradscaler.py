"""GradScaler finds its scale by failing: it doubles until a step overflows and is thrown away, and only the scale tells.

The loss is multiplied by the scale, so that small float16 gradients do not become 0. `step` divides them again, and skips the
step if one is inf or nan. `update` halves the scale after a skip, and doubles it after so many good steps in a row. So the
scale climbs until the largest gradient overflows, falls back, and climbs again. The defaults: 65536, and 2000 steps.
bfloat16 has the exponents of float32: nothing overflows, the scale only climbs, and a scaler is of no use.
Between `backward` and `step` gradients are still multiplied. Clipped there, they get the norm that you want, and are then
divided by the scale: call `unscale_` first. `step` returns None whether it steps or skips: compare `get_scale()` before
`update()` and after. Gradients belong to float32 parameters: unscaled, they are float32 and not "back in 16 bits".
## Predict
Of 400 float16 steps that start from a scale of 65536, with an interval of 20, how many are skipped?
## Look for
- [skips] 16 of 400 steps are skipped
- [growths] the scale is doubled 19 times
- [skipped] the first step that is skipped changes no weight
- [none] `step` returns None each of the 400 times
- [defaults] the default interval is 2000 steps, twice the 1000 that the source trains for
- [bfloat16] bfloat16 skips none of 100 steps, and the scale ends at 2 to the power of 21
- [float32] what `unscale_` leaves is float32
- [clip-early] clipped to a norm of 1 before `unscale_`, the gradients have a norm of 1/65536
- [clip-late] clipped after it, they have a norm of 1
- [refused] a closure, a second `unscale_`, a step without a backward and float16 parameters are refused
- [disabled] with `enabled=False` the loss comes back as it is, and the scale is 1
## Try next
`--interval 2000`: the default; the scale has no time to move. refutes: skips, growths, skipped
`--dtype bfloat16`: a scaler that never fails. refutes: skips, growths, skipped
`--init 24`: it begins too high, and 7 more steps are lost until it has come down. refutes: skips, growths
## Source
- A note on torch.cuda.amp (in Chinese), section "amp.GradScaler", https://blog.csdn.net/qq_43369406/article/details/130393078:
  the five arguments, and its example of a `Linear(10, 1)` and 1000 steps.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: it says that the scaler brings gradients back to 16 bits.
- Ours: the counts, the clipping and the errors.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab


class Trial:
    """A Linear, its optimizer and its scaler."""

    def __init__(self, device, amp=torch.float16, weights=torch.float32, **scaling):
        torch.manual_seed(0)
        self.net, self.amp = nn.Linear(10, 1).to(device, weights), amp
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


def train(lab, arm, trial, x, y, steps):
    """Train, and return for each step what became of the scale, whether a weight changed, and what `step` returned."""
    found = []
    for step in lab.steps(steps, f"training: {arm}"):
        trial.backward(x, y)
        before, weight = trial.scaler.get_scale(), trial.net.weight.detach().clone()
        returned = trial.scaler.step(trial.optimizer)
        trial.scaler.update()
        change = {0.5: "halved", 1: "kept", 2: "doubled"}[trial.scaler.get_scale() / before]
        found.append((change, not torch.equal(weight, trial.net.weight), returned))
        lab.log(step, arm=arm, scale=before)
    return found


def run(
    lab: Lab,
    dtype: Literal["float16", "bfloat16"] = "float16",  # of the training
    interval: int = 20,  # good steps before the scale is doubled, 1..10000
    init: int = 16,  # power of two at which the scale begins, 0..30
) -> None:
    device = lab.device()
    x, y = torch.randn(64, 10).to(device), torch.randn(64, 1).to(device)  # nothing to learn: gradients stay large
    lab.axes("scale", x="step", y="scale of the loss", log="y")
    trial = Trial(device, getattr(torch, dtype), init_scale=2.0**init, growth_interval=interval)
    found = train(lab, "scaled", trial, x, y, 400)
    changes = [change for change, _, _ in found]
    lab.claim("skips", changes.count("halved"), equals=16, answers=True)
    lab.claim("growths", changes.count("doubled"), equals=19)
    lab.claim("skipped", [is_changed for change, is_changed, _ in found if change == "halved"][:1], equals=[False])
    lab.claim("none", {returned for _, _, returned in found} == {None})
    lab.claim("defaults", Trial(device).scaler.get_growth_interval(), equals=2000)
    trial = Trial(device, torch.bfloat16, growth_interval=20)
    changes = [change for change, _, _ in train(lab, "bfloat16", trial, x, y, 100)]
    lab.claim("bfloat16", [changes.count("halved"), trial.scaler.get_scale()], equals=[0, 2**21])

    lab.stage("clipping")
    for key, order in {"clip-early": (Trial.clip, Trial.unscale), "clip-late": (Trial.unscale, Trial.clip)}.items():
        trial = Trial(device)
        trial.backward(x, y)
        for call in order:
            call(trial)
        left = nn.utils.get_total_norm([weight.grad for weight in trial.net.parameters()])
        lab.claim(key, left, equals=1 / 65536 if key == "clip-early" else 1, tolerance=left.item() / 1000)
    lab.claim("float32", str(trial.net.weight.grad.dtype), equals="torch.float32")
    lab.stage("what is refused, and what is off")
    halves = Trial(device, weights=torch.float16)
    halves.backward(x, y)
    refused = [
        ("a second unscale_", lab.raises(trial.unscale)),
        ("a closure", lab.raises(lambda: trial.scaler.step(trial.optimizer, closure=lambda: 0))),
        ("a step without a backward", lab.raises(Trial(device).scaler.step, halves.optimizer)),
        ("float16 parameters", lab.raises(halves.scaler.step, halves.optimizer)),
    ]
    lab.table("what is refused", refused, head=("call", "error"))
    lab.claim("refused", all(error for _, error in refused))
    off = Trial(device, enabled=False).scaler
    lab.claim("disabled", [off.scale(x[0, 0]).equal(x[0, 0]), off.get_scale()], equals=[True, 1])
