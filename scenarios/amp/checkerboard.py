"""Mixed precision halves what is kept for backward; it halves the time only on hardware that is built for it.

A small net learns to paint a checkerboard from pixel coordinates, once in float32 and once with autocast, from the same start.
Autocast runs the convolutions on 16-bit copies and leaves weights, optimizer and loss in 32 bits. So the activations that wait
for backward shrink to half, a 16-bit copy of each weight is added, and the picture is learned just as well. float16 is short
of exponents: GradScaler keeps small gradients from vanishing; bfloat16, which a CPU gets here, needs none. "Training tricks"
calls it a trick for memory only. EffectivePyTorch says that it can halve the time "on modern hardware": with 16-bit matrix
units, and layers that fill them.
## Predict
What share of the bytes that float32 keeps for backward does mixed precision keep, from 0 to 1?
## Look for
- [saved-bytes] mixed precision keeps at most 0.55 times the bytes for backward
- [both-learn] both nets paint 9 of 10 pixels or more right
- [same-loss] the two losses end within 0.02 of each other
- [half-the-time] on a GPU with 16-bit matrix units a step with mixed precision takes at most half the time
- [longer-on-cpu] on a CPU it takes at least 1.1 times as long
## Try next
`--fields 8`: smaller fields are learned more slowly, in 16 bits as in 32; refutes: both-learn
`--size 512 --channels 256 --fields 8 --steps 500 --device cuda`: the source's experiment.
`--float32 tf32 --device cuda`: torch of itself lets Tensor Cores convolve float32, cut to TF32; 16 bits gain less.
## Source
- EffectivePyTorch, chapter "Faster training with automatic mixed precision", https://github.com/vahidk/EffectivePyTorch.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic mixed precision".
- Ours: the bytes.
"""

from functools import partial
from typing import Literal

import torch
import torch._dynamo  # the first step of an optimizer would load it: a second or two, which no step is to pay
from torch import nn

from tuilab import Lab


def step_fp32(net, optimizer, scaler, dtype, x, board):
    y = net(x)
    loss = nn.functional.mse_loss(y, board)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return y.detach(), loss.detach()


def step_amp(net, optimizer, scaler, dtype, x, board):
    with torch.autocast(x.device.type, dtype):
        y = net(x)  # 16 bits
        loss = nn.functional.mse_loss(y, board)  # 32 bits
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return y.detach(), loss.detach()


def build_net(channels):
    torch.manual_seed(0)
    layers = []
    for width in (2, channels, channels):
        layers += [nn.Conv2d(width, channels, 1), nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(channels, 1, 1))


def draw(size, fields):  # coordinates (1, 2, size, size) and board (1, 1, size, size)
    stripes = (place := torch.arange(size)) * fields // size % 2
    board = stripes ^ stripes[:, None]
    return torch.stack(torch.meshgrid(place / size, place / size, indexing="ij"))[None], board.float()[None, None]


def run(
    lab: Lab,
    size: int = 0,  # pixels a side; 0 is 32 on a CPU and 512 on a GPU, 0..1024
    channels: int = 0,  # channels of each layer; 0 is 32 on a CPU and 256 on a GPU, 0..1024
    fields: int = 4,  # fields a side of the board, 1..64
    steps: int = 150,  # steps of Adam, 40..5000 (quick 100)
    dtype: Literal["auto", "bfloat16", "float16"] = "auto",  # the 16 bits; auto is float16 on a GPU, as in the source
    float32: Literal["ieee", "tf32"] = "ieee",  # how a GPU multiplies float32: as it is, or cut to TF32
) -> None:
    device = lab.device()
    usual = (512, 256, "float16") if device.type == "cuda" else (32, 32, "bfloat16")
    size, channels, dtype = size or usual[0], channels or usual[1], getattr(torch, dtype.replace("auto", usual[2]))
    x, board = (part.to(device) for part in draw(size, fields))

    def start(step):
        net = build_net(channels).to(device)
        scaler = torch.amp.GradScaler(device.type, enabled=dtype is torch.float16)
        return partial(step, net, torch.optim.Adam(net.parameters(), lr=1e-3), scaler, dtype, x, board)

    with lab.precision(float32):

        @lab.once
        def exact():
            lab.stage("the first step, and learning")
            lab.axes("loss", x="step of Adam", log="y")
            lab.axes("right", x="step of Adam", y="share of pixels that are right")
            lab.axes("apart", x="step of Adam", y="loss of amp minus that of fp32", log="")
            take = {"fp32": start(step_fp32), "amp": start(step_amp)}
            losses, right = {arm: [] for arm in take}, {}
            kept = {arm: lab.count(step).saved_bytes for arm, step in take.items()}
            lab.bars("kept for backward by the first step", kept, unit="B")
            lab.claim("saved-bytes", kept["amp"] / kept["fp32"], at_most=0.55, answers=True)
            for i in range(1, steps + 1):
                for arm, step in take.items():
                    y, loss = step()
                    losses[arm] += [loss]
                    lab.log(i, arm=arm, loss=loss)
                    if i % (steps // 10) == 0:
                        right[arm] = (y.round() == board).float().mean().item()
                        lab.log(i, arm=arm, right=right[arm])
                        lab.image("painted | board", torch.cat([y.clamp(0, 1), board], 3)[0, 0], arm=arm, step=i)
                lab.log(i, apart=losses["amp"][-1] - losses["fp32"][-1])
                lab.progress(i, steps)
            lab.claim("both-learn", [*right.values()], at_least=0.9)
            fp32, amp = (torch.stack(losses[arm][-20:]).mean() for arm in take)
            lab.claim("same-loss", (fp32 - amp).abs(), at_most=0.02)

        lab.stage("timing a step")
        gpu = lab.lacks_units(dtype) if device.type == "cuda" else "a GPU with 16-bit matrix units"
        lab.claim_ratio("half-the-time", "fp32/amp", at_least=2, lacks=gpu)
        lab.claim_ratio("longer-on-cpu", "amp/fp32", at_least=1.1, lacks="--device cpu" if device.type == "cuda" else "")
        arms = {"fp32": partial(start, step_fp32), "amp": partial(start, step_amp)}
        lab.race(**arms, factories=True, same=lambda a, b: abs(a[1] - b[1]) < 0.05, seconds=0.5)
