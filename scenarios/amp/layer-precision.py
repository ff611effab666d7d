"""For inference cut the layers to 16 bits and keep the last in float32: its roundings stand in the result as they are.

A layer in 16 bits rounds its input, its weights and its output. In the layers before the last these errors meet again in the
sums of the layers behind, where plus and minus partly cancel. Those of the last layer nothing evens out any more. Errors of
layers have nothing to do with each other, so they add like the sides of a right angle: the largest decides.

By hand every border needs a cast, because a layer refuses input of another dtype. Autocast writes these casts for you, and
gives the same numbers. But its weights stay in float32, and only those that are stored in 16 bits take half the bytes.

The source's title speaks of training. There 16-bit weights are a trap: a bfloat16 has 8 bits, and a step that is less
than 1/512 of a weight leaves it as it is. That is why autocast leaves the parameters in float32.
## Predict
Five layers are cut to bfloat16. What share of the error is left, from 0 to 1, when the last goes back to float32?
## Look for
- [worst] the last layer makes the largest error, at least 1.5 times that of any other
- [squares] the root of the sum of the squares of the five errors is 0.9 to 1.2 times the error with all five cut
- [keep-last] with the last in float32 and the others cut, the error is at most 0.75 times that with all cut
- [float16] with all cut to bfloat16 the error is 6 to 11 times that with all cut to float16
- [classes] of 512 rows at most 2 have another largest output
- [bytes] the weights take 332584 bytes in float32, and 166292 with all layers cut
- [autocast] the output with all cut is bitwise that of autocast
- [fits] at least 0.99 of the weights are in the range where float16 has all its digits, and none becomes 0
- [default] a tensor made of decimal numbers is a FloatTensor, which is float32, inside autocast as well
- [refused] a layer that is cut refuses float32 input
- [update] a step of 0.001 leaves a weight of 1 at 1
## Try next
`--dtype float16`: 11 bits, and the step of 0.001 arrives. With all cut the error is that of float16.
refutes: float16, update
## Source
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: choose the precision of each layer. Its title says training,
  its text inference.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe: float16 is enough for most
  weights.
- Ours: the errors.
"""

from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

WIDTHS = (64, 128, 256, 128, 64, 10)


def build_net(device):
    torch.manual_seed(0)
    layers = [nn.Linear(before, after) for before, after in pairwise(WIDTHS)]
    return nn.ModuleList(layers).to(device)


def forward(net, x):  # (rows, 64) -> (rows, 10)
    for layer in net[:-1]:
        x = layer(x.to(layer.weight.dtype)).relu()
    return net[-1](x.to(net[-1].weight.dtype))


def cut(device, numbers, dtype):
    """The net with the layers of these numbers in 16 bits."""
    net = build_net(device)
    for number in numbers:
        net[number].to(dtype)
    return net


def size_of(net):
    return sum(weight.nbytes for weight in net.parameters())


@torch.no_grad()
def run(
    lab: Lab,
    rows: int = 512,  # of the input, 64..65536
    dtype: Literal["bfloat16", "float16"] = "bfloat16",  # the 16 bits
) -> None:
    device = lab.device()
    half = getattr(torch, dtype)
    x = torch.randn(rows, WIDTHS[0]).to(device)
    exact = forward(build_net(device).double(), x)
    every = range(len(WIDTHS) - 1)

    def error(numbers, dtype=half):
        return ((forward(cut(device, numbers, dtype), x) - exact).norm() / exact.norm()).item()

    lab.axes("error", x="layer that is cut", y="error / norm of the output", log="")
    errors = []
    for number in lab.sweep(every, "one layer after another"):
        errors.append(error([number]))
        lab.log(number + 1, arm=dtype, error=errors[-1])
    together, kept = error(every), error(every[:-1])
    named = {f"layer {number}": found for number, found in enumerate(errors, 1)}
    lab.bars("error / norm of the output", {**named, "all": together, "all but the last": kept, "none": error([])})
    others = max(errors[:-1])
    lab.claim("worst", errors[-1] / others, at_least=1.5)
    lab.claim("squares", sum(found**2 for found in errors) ** 0.5 / together, between=(0.9, 1.2))
    lab.claim("keep-last", kept / together, at_most=0.75, answers=True)
    lab.claim("float16", together / error(every, torch.float16), between=(6, 11))

    lab.stage("all layers cut")
    net = cut(device, every, half)
    y = forward(net, x)
    lab.claim("classes", (y.argmax(1) != exact.argmax(1))[:512].sum(), at_most=2)
    lab.claim("bytes", [size_of(build_net(device)), size_of(net)], equals=[332584, 166292])
    with torch.autocast(device.type, half):
        lab.claim("autocast", torch.equal(y, forward(build_net(device), x)))
        lab.claim("default", torch.tensor([0.5, 2]).type(), equals="torch.FloatTensor")
    weights = torch.cat([weight.flatten() for weight in build_net(device).parameters()])
    normal = weights.abs() >= torch.finfo(torch.float16).smallest_normal
    zeros = (weights.half() == 0).sum()
    lab.claim("fits", [normal.float().mean().item() >= 0.99, zeros.item()], equals=[True, 0])
    lab.claim("refused", lab.raises(net[0], x).startswith("RuntimeError"))
    weight = torch.ones((), dtype=half, device=device)
    lab.claim("update", (weight + 0.001).item(), equals=1)
