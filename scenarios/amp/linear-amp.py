"""Train with autocast instead of a cast net: small steps need float32 weights.

You want to train in 16 bits, and there are two short ways. `net.to(torch.bfloat16)` casts the net
as a whole. `torch.autocast` leaves the weights in float32. Both run without an error, and this
lesson compares their losses with the loss of float32.

A 16-bit product is off by some thousandths in each prediction. The loss is a mean over 32,768
predictions. Their roundings are up as often as down, so they cancel, and the curve of autocast
covers the curve of float32. Only the residual shows a difference.

The optimizer needs more digits than the product. At a rate of 0.001 a weight moves by 6e-7 in a
step. The next bfloat16 number after 0.02 is 1.2e-4 away. A sum is rounded to the nearest number.
Autocast adds the step to a float32 weight, and makes the 16-bit copy again in each
forward.

Memory is not halved here. Only the input that is kept for backward shrinks. Prediction and target
are kept in float32 for the loss. The copy of the weights exists until the block of autocast ends.
Each gradient is first made in 16 bits. So the peak of a step is higher. Each forward also calls
more operators, the casts. A deep net gains, and one layer does not. One layer also keeps no GPU
busy, so the lesson measures no time.

In practice: keep the parameters in float32, and write
`with torch.autocast("cuda", torch.bfloat16):` around forward and loss. If a loss stays where it
is, compare a weight before and after a step: `torch.equal(before, after)`.
## Predict
The net is cast to bfloat16 as a whole. What share of its weights, from 0 to 1, is the same after
500 steps at a rate of 0.001?
## Look for
- [same-loss] in all steps the losses of float32 and of autocast differ by at most 0.0003
- [stuck] the loss of a net that is cast as a whole falls at most 0.05 times as far as that of
  float32
- [weights] at most 0.03 of the weights of the cast net have changed at the end, and at least 0.99
  with autocast
- [rounded] the first predictions with autocast are off by 2e-4 to 5e-3 of their size
- [cancelled] the first loss with autocast is off by at most 0.1 times as much as the predictions
- [kept] with 64, 512 and 2048 outputs autocast keeps fewer bytes for backward than float32, by half
  of the bytes of the input
- [peak] the peak of a step with autocast, without weights and batch, is at least 1.3 times that of
  float32
- [casts] with autocast forward and loss call at least 3 operators more, and these are all copies
## Try next
`--rate 10`: the steps are large enough for bfloat16, and all three nets learn. refutes: stuck,
weights
`--rows 256`: next to more activations the copy of the weights counts less. refutes: peak
## Source
"Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on mixed precision
training,
https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
its example of a `Linear(1024, 512)`, 64 rows and 500 steps. Its listing joins two lines into one,
so Python refuses it. It needs apex, which torch.amp has replaced. Ours: the cast net, the residual
and the bytes.
"""

import torch
import torch._dynamo  # otherwise the first step of an optimizer loads it, during the training
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

INPUTS = 1024
OUTPUTS = 512


class LinearTrial:
    """The net of the example in one of three precisions, from the same weights."""

    def __init__(self, arm, half, device, rate, outputs=OUTPUTS):
        torch.manual_seed(0)
        self.is_autocast = arm == "autocast"
        self.is_cast = arm == "cast"
        self.half = half
        dtype = half if arm == "cast" else torch.float32
        self.net = nn.Linear(INPUTS, outputs).to(device, dtype)
        self.first_weight = self.net.weight.detach().clone()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=rate)
        needs_scale = self.is_autocast and half is torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=needs_scale)

    def forward(self, x, y):  # (rows, 1024), (rows, 512)
        """Return the predictions and their loss."""
        with torch.autocast(x.device.type, self.half, enabled=self.is_autocast):
            prediction = self.net(x.to(self.net.weight.dtype))
            if self.is_cast:
                prediction = prediction.float()
            loss = F.mse_loss(prediction, y)
        return prediction, loss

    def step(self, x, y):
        _, loss = self.forward(x, y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def changed_share(self):
        changed = self.net.weight != self.first_weight
        return changed.float().mean().item()


def compare_forward(lab, trials, x, y):
    """Compare the first forward of autocast with that of float32."""
    lab.stage("the first forward")
    exact = lab.count(trials["float32"].forward, x, y)
    rounded = lab.count(trials["autocast"].forward, x, y)
    exact_prediction, exact_loss = exact.value
    prediction, loss = rounded.value
    error = ((prediction - exact_prediction).norm() / exact_prediction.norm()).item()
    loss_error = abs(loss.item() / exact_loss.item() - 1)
    lab.claim("rounded", error, between=(2e-4, 5e-3))
    lab.claim("cancelled", loss_error / error, at_most=0.1)

    more_copies = rounded.calls["aten._to_copy"] - exact.calls["aten._to_copy"]
    more_operators = rounded.operators - exact.operators
    are_copies = more_operators == more_copies
    lab.claim("casts", [more_copies >= 3, are_copies], equals=[True, True])

    cast = lab.count(trials["cast"].forward, x, y)
    bars = {
        "float32": exact.saved_bytes,
        "autocast": rounded.saved_bytes,
        "cast": cast.saved_bytes,
    }
    lab.bars("kept for backward", bars, unit="B")


def compare_bytes(lab, x, y, half, rate):
    saved = []
    for outputs in (64, 512, 2048):
        target = torch.zeros(len(x), outputs, device=x.device)
        kept = []
        for arm in ("float32", "autocast"):
            trial = LinearTrial(arm, half, x.device, rate, outputs)
            kept.append(lab.count(trial.forward, x, target).saved_bytes)
        saved.append(kept[0] - kept[1])
    lab.claim("kept", saved, equals=[x.nbytes // 2] * 3, unit="B")

    peaks = []
    for arm in ("float32", "autocast"):
        trial = LinearTrial(arm, half, x.device, rate)
        peaks.append(lab.count(trial.step, x, y).peak_bytes)
    lab.claim("peak", peaks[1] / peaks[0], at_least=1.3)


def train(lab, trials, x, y, steps):
    """Train all nets side by side, and return their losses."""
    lab.axes("loss", x="step of SGD", y="mean squared error")
    lab.axes("residual", x="step of SGD", y="loss of autocast minus that of float32", log="")
    losses = {arm: [] for arm in trials}
    for step in lab.steps(steps, "training"):
        for arm, trial in trials.items():
            loss = trial.step(x, y)
            losses[arm].append(loss)
            lab.log(step, arm=arm, loss=loss)
        lab.log(step, residual=losses["autocast"][-1] - losses["float32"][-1])
    curves = {}
    for arm, of_steps in losses.items():
        curves[arm] = torch.stack(of_steps)
    return curves


def fall(curve):
    return (curve[0] - curve[-1]).item()


def run(
    lab: Lab,
    rows: int = 64,  # of the batch, 1..65536
    steps: int = 500,  # of SGD, 50..5000 (quick 100)
    rate: float = 0.001,  # of learning, 1e-6..100
) -> None:
    device = lab.device()
    half = torch.bfloat16  # a CPU without units for float16 computes it many times slower
    if device.type == "cuda":
        half = torch.float16
    x = torch.randn(rows, INPUTS).to(device)
    y = torch.randn(rows, OUTPUTS).to(device)
    trials = {
        "float32": LinearTrial("float32", half, device, rate),
        "autocast": LinearTrial("autocast", half, device, rate),
        "cast": LinearTrial("cast", torch.bfloat16, device, rate),
    }
    compare_forward(lab, trials, x, y)
    compare_bytes(lab, x, y, half, rate)

    curves = train(lab, trials, x, y, steps)
    difference = (curves["autocast"] - curves["float32"]).abs().max()
    lab.claim("same-loss", difference, at_most=3e-4)
    lab.claim("stuck", fall(curves["cast"]) / fall(curves["float32"]), at_most=0.05)
    cast = trials["cast"].changed_share()
    autocast = trials["autocast"].changed_share()
    lab.claim("weights", [cast <= 0.03, autocast >= 0.99], equals=[True, True], answers=1 - cast)
