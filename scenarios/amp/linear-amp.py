"""Autocast follows the loss of float32 to the fourth digit; the same net cast to bfloat16 as a whole stands still.

A 16-bit product is off by some thousandths in each prediction. The loss is a mean over 32,768 of them, whose roundings are
up as often as down: they cancel, and the curve cannot be told from that of float32. What differs shows in the residual alone.

The steps are what needs 32 bits. With a rate of 0.001 a weight moves by 6e-7 at a time, and the next bfloat16 beside 0.02 is
1.2e-4 away: weights that are bfloat16 stay where they are, and no error and no NaN tells. Autocast keeps the weights in
float32, adds the step there, and makes the 16-bit copy anew in each forward: the small steps add up.

Memory is not halved here. Of what waits for backward only the input shrinks, prediction and target wait in float32 for the
loss. The copy of the weights lives until the block of autocast ends, and a gradient is made in 16 bits before it is widened, so
the peak of a step is higher. And each forward calls more operators, the casts. What pays is a deep net, not one layer.
## Predict
The net is cast to bfloat16 as a whole. What share of its weights, from 0 to 1, is the same after 500 steps at a rate of 0.001?
## Look for
- [same-loss] the losses of float32 and of autocast are at most 0.0003 apart in all steps
- [stuck] cast as a whole the net loses at most 0.05 of what the loss of float32 loses
- [weights] at most 0.03 of its weights are another number at the end; with autocast it is at least 0.99
- [rounded] the first predictions with autocast are off by 2e-4 to 5e-3 of their size
- [cancelled] their loss is off by a tenth of that or less
- [kept] for backward autocast saves half of the bytes of the input, and no others
- [peak] weights and batch not counted, the peak of a step is at least 1.3 times that of float32
- [casts] forward and loss call at least 3 operators more, each of them a copy
## Try next
`--rate 10`: the steps are large enough for bfloat16, and all three nets learn. refutes: stuck, weights
`--rows 256`: beside more activations the copy of the weights counts for less. refutes: peak
## Source
"Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on mixed precision training,
https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe: its example of a
`Linear(1024, 512)`, 64 rows and 500 steps. Its listing joins two lines into one, so Python refuses it. It needs apex, which
torch.amp has replaced. Ours: the net that does not learn, and the residual.
"""

import torch
import torch._dynamo  # the first step of an optimizer would load it, in the middle of the training
import torch.nn.functional as F
from torch import nn

from tuilab import Lab


class Trial:
    """The net of the example in one of three precisions, from the same weights."""

    def __init__(self, arm, half, x, rate):
        torch.manual_seed(0)
        self.arm, self.half = arm, half
        self.net = nn.Linear(1024, 512).to(x.device, half if arm == "cast" else torch.float32)
        self.start = self.net.weight.detach().clone()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=rate)
        self.scaler = torch.amp.GradScaler(x.device.type, enabled=arm == "autocast" and half is torch.float16)

    def forward(self, x, y):  # (rows, 1024), (rows, 512)
        with torch.autocast(x.device.type, self.half, enabled=self.arm == "autocast"):
            prediction = self.net(x.to(self.net.weight.dtype))
            return prediction, F.mse_loss(prediction.float() if self.arm == "cast" else prediction, y)

    def step(self, x, y):
        loss = self.forward(x, y)[1]
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def moved(self):  # the share of weights that are another number than at the start
        return (self.net.weight != self.start).float().mean().item()


def run(
    lab: Lab,
    rows: int = 64,  # of the batch, 1..65536
    steps: int = 500,  # of SGD, 50..5000 (quick 100)
    rate: float = 0.001,  # of learning, 1e-6..100
) -> None:
    device = lab.device()
    half = torch.float16 if device.type == "cuda" else torch.bfloat16  # a CPU computes float16 a hundred times slower
    x, y = torch.randn(rows, 1024).to(device), torch.randn(rows, 512).to(device)
    arms = {"float32": half, "autocast": half, "cast": torch.bfloat16}
    trials = {arm: Trial(arm, dtype, x, rate) for arm, dtype in arms.items()}

    lab.stage("the first forward")
    counted = {arm: lab.count(trial.forward, x, y) for arm, trial in trials.items()}
    (exact, right), (rounded, loss) = (counted[arm].value for arm in ("float32", "autocast"))
    off = ((rounded - exact).norm() / exact.norm()).item()
    lab.claim("rounded", off, between=(2e-4, 5e-3))
    lab.claim("cancelled", abs(loss.item() / right.item() - 1) / off, at_most=0.1)
    kept = {arm: one.saved_bytes for arm, one in counted.items()}
    lab.bars("kept for backward", kept, unit="B")
    lab.claim("kept", kept["float32"] - kept["autocast"], equals=x.nbytes / 2, unit="B")
    peaks = [lab.count(Trial(arm, half, x, rate).step, x, y).peak_bytes for arm in ("float32", "autocast")]
    lab.claim("peak", peaks[1] / peaks[0], at_least=1.3)
    more = counted["autocast"].calls["aten._to_copy"] - counted["float32"].calls["aten._to_copy"]
    lab.claim("casts", [more >= 3, counted["autocast"].operators - counted["float32"].operators == more], equals=[True, True])

    lab.axes("loss", x="step of SGD", y="mean squared error")
    lab.axes("residual", x="step of SGD", y="loss of autocast minus that of float32", log="")
    losses = {arm: [] for arm in trials}
    for step in lab.steps(steps, "training"):
        for arm, trial in trials.items():
            losses[arm].append(trial.step(x, y))
            lab.log(step, arm=arm, loss=losses[arm][-1])
        lab.log(step, residual=losses["autocast"][-1] - losses["float32"][-1])
    curves = {arm: torch.stack(found) for arm, found in losses.items()}
    falls = {arm: (curve[0] - curve[-1]).item() for arm, curve in curves.items()}
    lab.claim("same-loss", (curves["autocast"] - curves["float32"]).abs().max(), at_most=3e-4)
    lab.claim("stuck", falls["cast"] / falls["float32"], at_most=0.05)
    cast, autocast = trials["cast"].moved(), trials["autocast"].moved()
    lab.claim("weights", [cast <= 0.03, autocast >= 0.99], equals=[True, True], answers=1 - cast)
