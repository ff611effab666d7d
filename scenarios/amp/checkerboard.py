"""Use mixed precision for half the activations, and compare its time with TF32.

You read that mixed precision halves memory and time. The first half is true on every device. The
second half needs hardware for 16-bit products, and a net that keeps this hardware busy.

A small net learns to paint a checkerboard from pixel coordinates, in float32 and with autocast,
from the same start. Autocast runs the convolutions on 16-bit copies. Weights, optimizer and loss
stay in 32 bits. So the activations for backward are half as large. Each weight has an additional
16-bit copy. In float16 small gradients become 0 without a GradScaler. bfloat16, the dtype on a CPU
here, needs no scaler.

On a GPU "float32" is the name of two baselines. By default torch runs convolutions in TF32 since
Ampere: Tensor Cores multiply float32 that is cut to 10 mantissa bits. IEEE float32 uses no Tensor
Cores and is much slower. The T4 and V100 of older benchmarks have no TF32, so their "halves the
time" is measured against IEEE. (CUDA 13 no longer supports the V100.) Against TF32 expect 1.2 to
2 times. A small net gains nothing: its kernels take less time than their launches, and autocast
launches more kernels. So on a GPU the net and the board are larger than on a CPU.

"Training tricks" calls mixed precision a trick for memory only, which is too little. The net of
EffectivePyTorch is a `ScriptModule` with a `script_method`. TorchScript is deprecated, and the
plain module computes the same.

In practice: write `with torch.autocast("cuda", torch.bfloat16):` around forward and loss. Compare
the time of a step with your own default, which is TF32 for convolutions, and look at the memory
with `torch.cuda.max_memory_allocated()`.
## Predict
What share of the bytes that float32 keeps for backward does mixed precision keep, from 0 to 1?
## Look for
- [saved-bytes] mixed precision keeps at most 0.55 times the bytes for backward that float32 keeps
- [both-learn] all nets paint 9 of 10 pixels or more right
- [same-loss] the mean losses of the last 20 steps in float32 and in mixed precision differ by at
  most 0.02
- [script] script_method warns with a DeprecationWarning, and on a CPU the ScriptModule gives bit
  for bit the output of the plain module, in float32 and with autocast
- [half-the-time] on a GPU with 16-bit matrix units a step in IEEE float32 takes at least 2 times as
  long as a step with mixed precision
- [tf32] on a GPU with TF32 a step in TF32 takes at least 1.2 times as long as a step with mixed
  precision
- [small-net] on a GPU a small net (32 channels, 32 x 32 pixels) in IEEE float32 takes at most 1.2
  times as long as with mixed precision
- [longer-on-cpu] on a CPU a step with mixed precision takes at least 1.1 times as long as a step in
  float32
## Try next
`--fields 8`: smaller fields are learned more slowly, in 16 bits as in 32. refutes: both-learn
`--size 512 --channels 256 --fields 8 --steps 500 --device cuda`: the source's experiment.
`--size 64 --channels 64 --device cuda`: a smaller net, which gains less.
## Source
- EffectivePyTorch, chapter "Faster training with automatic mixed precision",
  https://github.com/vahidk/EffectivePyTorch: the net, half the time, and more for larger nets.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section
  "Automatic mixed precision".
- Ours: the bytes, the two baselines and the small net.
"""

from functools import partial
from typing import Literal

import torch
import torch._dynamo  # otherwise the first step of an optimizer loads it, which takes seconds
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

SMALL = 32  # channels, and pixels a side


def build_net(channels):
    torch.manual_seed(0)
    layers = []
    for inputs in (2, channels, channels):
        layers.append(nn.Conv2d(inputs, channels, 1))
        layers.append(nn.BatchNorm2d(channels))
        layers.append(nn.ReLU())
    layers.append(nn.Conv2d(channels, 1, 1))
    return nn.Sequential(*layers)


def draw(size, fields, device):
    """Return coordinates (1, 2, size, size) and a board (1, 1, size, size)."""
    pixels = torch.arange(size, device=device)
    stripes = pixels * fields // size % 2
    board = stripes ^ stripes[:, None]
    coordinates = torch.meshgrid(pixels / size, pixels / size, indexing="ij")
    return torch.stack(coordinates)[None], board.float()[None, None]


def step_fp32(lab, precision, net, optimizer, x, board):
    with lab.precision(precision):
        y = net(x)
        loss = F.mse_loss(y, board)
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
    return y.detach(), loss.detach()


def step_amp(dtype, scaler, net, optimizer, x, board):
    with torch.autocast(x.device.type, dtype):
        y = net(x)  # 16 bits
        loss = F.mse_loss(y, board)  # 32 bits
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return y.detach(), loss.detach()


def start(lab, arm, channels, dtype, x, board):
    """Return a function that trains a new net by one step."""
    net = build_net(channels).to(x.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    if arm == "amp":
        scaler = torch.amp.GradScaler(x.device.type, enabled=dtype is torch.float16)
        return partial(step_amp, dtype, scaler, net, optimizer, x, board)
    precision = "tf32" if arm == "tf32" else "ieee"
    return partial(step_fp32, lab, precision, net, optimizer, x, board)


def paint(lab, arms, channels, dtype, x, board, steps):
    """Train a net for each arm, and claim what they keep and learn."""
    lab.stage("the first step, and learning")
    lab.axes("loss", x="step of Adam", log="y")
    lab.axes("right", x="step of Adam", y="share of pixels that are right")
    lab.axes("apart", x="step of Adam", y="loss of amp minus that of fp32", log="")
    trials = {}
    kept = {}
    losses = {}
    shares = {}
    for arm in arms:
        trials[arm] = start(lab, arm, channels, dtype, x, board)
        kept[arm] = lab.count(trials[arm]).saved_bytes  # the first step
        losses[arm] = []
    lab.bars("kept for backward by the first step", kept, unit="B")
    lab.claim("saved-bytes", kept["amp"] / kept["fp32"], at_most=0.55, answers=True)

    for number in range(1, steps + 1):
        for arm, step in trials.items():
            y, loss = step()
            losses[arm].append(loss)
            lab.log(number, arm=arm, loss=loss)
            if number % (steps // 10) == 0:
                shares[arm] = (y.round() == board).float().mean().item()
                lab.log(number, arm=arm, right=shares[arm])
                picture = torch.cat([y.clamp(0, 1), board], dim=3)
                lab.image("painted | board", picture[0, 0], arm=arm, step=number)
        lab.log(number, apart=losses["amp"][-1] - losses["fp32"][-1])
        lab.progress(number, steps)
    lab.claim("both-learn", list(shares.values()), at_least=0.9)
    last_fp32 = torch.stack(losses["fp32"][-20:]).mean()
    last_amp = torch.stack(losses["amp"][-20:]).mean()
    lab.claim("same-loss", (last_fp32 - last_amp).abs(), at_most=0.02)


def build_script_module():
    class ScriptNet(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.net = build_net(SMALL)

        @torch.jit.script_method
        def forward(self, x):
            return self.net(x)

    return ScriptNet()


def compare_script(lab):
    """Compare a ScriptModule, as in the source, with the plain module.

    They are on the CPU: on a GPU torch fuses operators of the script, which rounds differently.
    """
    lab.stage("ScriptModule")
    modules = []
    warnings = lab.warns(lambda: modules.append(build_script_module()))
    lab.text("\n".join(sorted(set(warnings))), title="warnings of the ScriptModule")
    category = "no warning"
    for warning in warnings:
        if "torch.jit.script_method" in warning:
            category = warning.partition(":")[0]
    script = modules[0].eval()
    plain = build_net(SMALL).eval()
    x, _ = draw(SMALL, 4, torch.device("cpu"))
    with torch.no_grad():
        is_same = torch.equal(script(x), plain(x))
        with torch.autocast("cpu", torch.bfloat16):
            is_same_in_amp = torch.equal(script(x), plain(x))
    measured = [category, is_same, is_same_in_amp]
    lab.claim("script", measured, equals=["DeprecationWarning", True, True])


def are_losses_near(a, b):
    return abs(a[1] - b[1]) < 0.05


def find_lacks(lab, device, dtype):
    """Return what the device lacks for a race of mixed precision, and for one of TF32."""
    if device.type != "cuda":
        lacks = "a GPU with 16-bit matrix units"
        return lacks, lacks
    lacks = lab.lacks_units(dtype)
    return lacks, lacks or lab.lacks_units(torch.float32)


def race_steps(lab, arms, channels, dtype, x, board, lacks_amp, lacks_tf32):
    lab.stage("timing a step")
    lacks_cpu = "--device cpu" if x.device.type == "cuda" else ""
    lab.claim_ratio("half-the-time", "fp32/amp", at_least=2, lacks=lacks_amp)
    lab.claim_ratio("tf32", "tf32/amp", at_least=1.2, lacks=lacks_tf32)
    lab.claim_ratio("longer-on-cpu", "amp/fp32", at_least=1.1, lacks=lacks_cpu)
    factories = {}
    for arm in arms:
        factories[arm] = partial(start, lab, arm, channels, dtype, x, board)
    lab.race(**factories, factories=True, same=are_losses_near, seconds=0.5)


def race_small_nets(lab, device, dtype, fields, lacks):
    lab.stage("timing a step of a small net")
    lab.claim_ratio("small-net", "small_fp32/small_amp", at_most=1.2, lacks=lacks)
    x, board = draw(SMALL, fields, device)
    lab.race(
        small_fp32=partial(start, lab, "fp32", SMALL, dtype, x, board),
        small_amp=partial(start, lab, "amp", SMALL, dtype, x, board),
        factories=True,
        same=are_losses_near,
        seconds=0.5,
        lacks=lacks,
    )


def run(
    lab: Lab,
    size: int = 0,  # pixels a side; 0 is 32 on a CPU and 512 on a GPU, 0..1024
    channels: int = 0,  # channels of each layer; 0 is 32 on a CPU and 256 on a GPU, 0..1024
    fields: int = 4,  # fields a side of the board, 1..64
    steps: int = 150,  # steps of Adam, 40..5000 (quick 100)
    dtype: Literal["auto", "bfloat16", "float16"] = "auto",  # auto is float16 on a GPU
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    size = size or (512 if on_gpu else SMALL)
    channels = channels or (256 if on_gpu else SMALL)
    if dtype == "auto":
        dtype = "float16" if on_gpu else "bfloat16"  # float16 as in the source
    dtype = getattr(torch, dtype)
    lacks_amp, lacks_tf32 = find_lacks(lab, device, dtype)
    arms = ["fp32", "amp"]  # fp32 is IEEE float32
    if not lacks_tf32:
        arms = ["fp32", "tf32", "amp"]
    x, board = draw(size, fields, device)

    @lab.once
    def exact():
        paint(lab, arms, channels, dtype, x, board, steps)
        compare_script(lab)

    race_steps(lab, arms, channels, dtype, x, board, lacks_amp, lacks_tf32)
    race_small_nets(lab, device, dtype, fields, lacks_amp)
