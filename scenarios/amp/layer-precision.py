"""For inference cut the layers to 16 bits, and keep the last layer in float32.

A trained net should take less memory and time when it only predicts. You can choose the precision
of each layer, and the question is which layer may lose digits.

A layer in 16 bits rounds its input, its weights and its output. The errors of an inner layer meet
again in the sums of the next layers, where plus and minus partly cancel. No layer follows the
last one, so its roundings are in the result as they are. The errors of different layers are
independent. They add like the sides of a right angle, so the largest error decides.

A layer refuses input of another dtype, so each border between precisions needs a cast. Autocast
makes these casts for you and gives the same numbers. But its weights stay in float32. Only weights
that are stored in 16 bits take half the bytes.

Time is saved by units for 16-bit products: Tensor Cores on a GPU, AVX512-BF16 or AMX on a CPU. A
CPU without units converts each number first and is slower. On a GPU compare with TF32 as well as
with IEEE float32. The net that is timed on a GPU is 16 times as wide and reads 8192 rows.

The source's title speaks of training. There 16-bit weights are a trap. A bfloat16 has 8 bits, so a
step that is less than 1/512 of a weight does not change it. Autocast therefore leaves the
parameters in float32.

In practice: call `net.to(torch.bfloat16)` and then `net[-1].float()`, and cast the input of the
last layer: `net[-1](x.float())`. Compare the predictions on a few hundred rows with float32 before
you use the net. Train with `torch.autocast`, not with cut weights.
## Predict
A net of five layers chooses one of 10 classes for each of 512 rows. All layers are cut to bfloat16.
For how many rows does the choice change?
## Look for
- [worst] the last layer makes the largest error, at least 1.5 times that of any other layer
- [squares] the root of the sum of the squares of the five errors is 0.9 to 1.2 times the error with
  all five layers cut
- [keep-last] with the last layer in float32 and the others cut, the error is at most 0.75 times the
  error with all layers cut
- [float16] with all layers cut to bfloat16 the error is 6 to 11 times the error with float16
- [classes] with all layers cut at most 2 of 512 rows have another largest output
- [bytes] the weights take 332584 bytes in float32, and 166292 with all layers cut
- [autocast] the output with all layers cut is bitwise the output of autocast
- [fits] at least 0.99 of the weights are in the range where float16 has all its digits, and none
  becomes 0
- [default] inside autocast a new tensor of decimal numbers is a FloatTensor, which is float32
- [refused] a layer that is cut refuses float32 input
- [update] a step of 0.001 leaves a bfloat16 weight of 1 at 1
- [time] on a GPU with 16-bit units the net in IEEE float32 takes at least 1.5 times as long as with
  all layers cut
- [time-tf32] on a GPU with TF32 the net in TF32 takes at least 1.2 times as long as with all layers
  cut
- [time-keep-last] on a GPU with 16-bit units a net whose last layer is in float32 takes at most
  1.25 times as long as with all layers cut
- [time-cpu] on a CPU without 16-bit units the net with all layers cut takes at least 1.2 times as
  long as in float32
## Try next
`--dtype float16`: 11 bits, so the step of 0.001 arrives, and the error is that of float16.
refutes: float16, update
## Source
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: choose the precision of each
  layer to save memory and time. Its title says training, its text inference.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
  float16 is enough for most weights.
- Ours: the errors, the baselines and the trap.
"""

from functools import partial
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

WIDTHS = (64, 128, 256, 128, 64, 10)
LAYERS = range(len(WIDTHS) - 1)
GPU_FACTOR = 16  # widens the nets that race on a GPU
GPU_ROWS = 8192  # at least, of their input


def build_net(device, factor=1):
    """Return the layers. The factor widens all but the last width."""
    torch.manual_seed(0)
    widths = [factor * width for width in WIDTHS[:-1]]
    widths.append(WIDTHS[-1])
    layers = [nn.Linear(inputs, outputs) for inputs, outputs in pairwise(widths)]
    return nn.ModuleList(layers).to(device)


def forward(net, x):  # (rows, 64) -> (rows, 10)
    for layer in net[:-1]:
        x = layer(x.to(layer.weight.dtype)).relu()
    return net[-1](x.to(net[-1].weight.dtype))


def cut(net, numbers, dtype):
    """Cut the layers with these numbers to a dtype, and return the net."""
    for number in numbers:
        net[number].to(dtype)
    return net


def relative_error(output, exact):
    return ((output - exact).norm() / exact.norm()).item()


def count_weight_bytes(net):
    return sum(weight.nbytes for weight in net.parameters())


def measure_errors(lab, x, exact, half):
    """Cut one layer after another, then several, and compare their errors."""
    device = x.device
    lab.axes("error", x="layer that is cut", y="error / norm of the output", log="")
    bars = {}
    errors = []
    for number in lab.sweep(LAYERS, "one layer after another"):
        net = cut(build_net(device), [number], half)
        errors.append(relative_error(forward(net, x), exact))
        bars[f"layer {number + 1}"] = errors[-1]
        lab.log(number + 1, arm=str(half).removeprefix("torch."), error=errors[-1])

    of_all = relative_error(forward(cut(build_net(device), LAYERS, half), x), exact)
    of_inner = relative_error(forward(cut(build_net(device), LAYERS[:-1], half), x), exact)
    of_float16 = relative_error(forward(cut(build_net(device), LAYERS, torch.float16), x), exact)
    bars["all"] = of_all
    bars["all but the last"] = of_inner
    bars["none"] = relative_error(forward(build_net(device), x), exact)
    lab.bars("error / norm of the output", bars)

    root_of_squares = sum(error**2 for error in errors) ** 0.5
    lab.claim("worst", errors[-1] / max(errors[:-1]), at_least=1.5)
    lab.claim("squares", root_of_squares / of_all, between=(0.9, 1.2))
    lab.claim("keep-last", of_inner / of_all, at_most=0.75)
    lab.claim("float16", of_all / of_float16, between=(6, 11))


def compare_outputs(lab, x, exact, half):
    lab.stage("all layers cut")
    original = build_net(x.device)
    net = cut(build_net(x.device), LAYERS, half)
    output = forward(net, x)
    changed = output.argmax(1) != exact.argmax(1)
    lab.claim("classes", changed[:512].sum(), at_most=2, answers=True)
    weight_bytes = [count_weight_bytes(original), count_weight_bytes(net)]
    lab.claim("bytes", weight_bytes, equals=[332584, 166292], unit="B")
    with torch.autocast(x.device.type, half):
        lab.claim("autocast", torch.equal(output, forward(original, x)))
        lab.claim("default", torch.tensor([0.5, 2]).type(), equals="torch.FloatTensor")
    lab.claim("refused", lab.raises(net[0], x).startswith("RuntimeError"))


def check_weights(lab, device, half):
    lab.stage("weights in 16 bits")
    weights = nn.utils.parameters_to_vector(build_net(device).parameters())
    normal = weights.abs() >= torch.finfo(torch.float16).smallest_normal
    zeros = (weights.half() == 0).sum().item()
    lab.claim("fits", [normal.float().mean().item() >= 0.99, zeros], equals=[True, 0])
    weight = torch.ones((), dtype=half, device=device)
    lab.claim("update", (weight + 0.001).item(), equals=1)


def predict(lab, precision, net, x):
    with lab.precision(precision):
        return forward(net, x)


def start(lab, arm, device, half, factor, rows):
    """Return a function that predicts with a new net."""
    net = build_net(device, factor)
    if arm == "cut":
        net = cut(net, LAYERS, half)
    if arm == "keep_last":
        net = cut(net, LAYERS[:-1], half)
    x = torch.randn(rows, factor * WIDTHS[0]).to(device)
    precision = "tf32" if arm == "tf32" else "ieee"
    return partial(predict, lab, precision, net, x)


def race_nets(lab, device, half, rows):
    lab.stage("timing a prediction")
    lacks_units = lab.lacks_units(half)
    lacks_gpu = "a CUDA device"
    lacks_tf32 = lacks_gpu
    lacks_cpu = "" if lacks_units else "a CPU without 16-bit units"
    factor = 1
    if device.type == "cuda":
        lacks_gpu = lacks_units
        lacks_tf32 = lacks_units or lab.lacks_units(torch.float32)
        lacks_cpu = "--device cpu"
        factor = GPU_FACTOR
        rows = max(rows, GPU_ROWS)
    lab.claim_ratio("time", "float32/cut", at_least=1.5, lacks=lacks_gpu)
    lab.claim_ratio("time-tf32", "tf32/cut", at_least=1.2, lacks=lacks_tf32)
    lab.claim_ratio("time-keep-last", "keep_last/cut", at_most=1.25, lacks=lacks_gpu)
    lab.claim_ratio("time-cpu", "cut/float32", at_least=1.2, lacks=lacks_cpu)
    arms = ["float32", "cut", "keep_last"]
    if not lacks_tf32:
        arms.append("tf32")
    factories = {}
    for arm in arms:
        factories[arm] = partial(start, lab, arm, device, half, factor, rows)
    lab.race(**factories, factories=True, seconds=0.5)


@torch.no_grad()
def run(
    lab: Lab,
    rows: int = 512,  # of the input, 64..65536
    dtype: Literal["bfloat16", "float16"] = "bfloat16",  # the 16 bits
) -> None:
    device = lab.device()
    half = getattr(torch, dtype)

    @lab.once
    def exact():
        x = torch.randn(rows, WIDTHS[0]).to(device)
        exact_output = forward(build_net(device).double(), x)
        measure_errors(lab, x, exact_output, half)
        compare_outputs(lab, x, exact_output, half)
        check_weights(lab, device, half)

    race_nets(lab, device, half, rows)
