"""Autocast chooses a dtype for each operator; parameters and their gradients stay float32.

Inside autocast a product of matrices reads 16-bit copies of its operands. An operator that is known to need range or digits
gets copies in float32: mse_loss, prod. Most others are in no list and compute in the widest dtype that they get, as mean: 16
bits in, 16 bits out. Softmax, sum, exp and layer_norm are in CUDA's list alone. There `binary_cross_entropy` is refused: take
it with logits. The copies are made anew for each input, but once per block for each parameter. A gradient goes back through the
copy, and arrives in the dtype of its parameter. So a page that says "parameters and gradients are half" describes `net.half()`.
The loss belongs inside. Outside, mse_loss computes in the 16 bits that it gets. Inside, its float32 copy holds only if you call
it by its name: the same loss written as a product and a mean is in no list. A layer outside refuses 16-bit input.
## Predict
After a forward inside autocast to bfloat16, and a backward: how many bits has each number in the gradient of a weight?
## Look for
- [matmul] a product of matrices gives 16 bits, of float32 and of 16-bit operands
- [add] a sum of two float32 tensors stays float32, and so does that of a 16-bit and a float32 one
- [parameters] the parameters are float32
- [gradients] the gradients are float32
- [mean] the mean of a 16-bit tensor has 16 bits
- [widened] mse_loss and prod of a 16-bit tensor give float32
- [cpu-list] on a CPU softmax, sum, exp and layer_norm of a 16-bit tensor give 16 bits
- [cuda-list] on CUDA they give float32
- [copies] the first call of a Linear copies input, weight and bias, the second in the same block only its input
- [inside] the loss inside is 90000 for predictions that are 300 off
- [outside] outside it is 90112 in bfloat16
- [by-hand] written as (error * error).mean() it is 90112 inside
- [refused] a Linear outside refuses 16-bit input
- [other-device] autocast for the kind of device on which no tensor lies leaves the product in float32
- [deprecated] torch.cpu.amp.autocast, an old name of it, warns with a FutureWarning
## Try next
`--weights half`: `net.to(bfloat16)`, what the page describes. Parameters and gradients lose their digits, only the input is
copied, and the layer outside takes what it gets. refutes: parameters, gradients, copies, refused
`--dtype float16`: 90000 is beyond its largest number, 65504, and two of the three losses are inf. refutes: outside, by-hand
## Source
- EffectivePyTorch, chapter "Faster training with automatic mixed precision", https://github.com/vahidk/EffectivePyTorch.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: gradients in half precision.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic mixed precision": sum,
  mean and prod need float32.
- Ours: both lists.
"""

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

OPERATORS = {
    "a @ b": lambda a, b: a @ b,
    "a + b": lambda a, b: a + b,
    "a + float32": lambda a, b: a + b.float(),
    "mean(a)": lambda a, b: a.mean(),
    "mse_loss(a, b)": F.mse_loss,
    "prod(a)": lambda a, b: a.prod(),
    "softmax(a)": lambda a, b: a.softmax(-1),  # from here on in the list of CUDA alone
    "sum(a)": lambda a, b: a.sum(),
    "exp(a)": lambda a, b: a.exp(),
    "layer_norm(a)": lambda a, b: F.layer_norm(a, a.shape[-1:]),
}


def name_of(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def by_hand(prediction, target):
    error = prediction - target
    return (error * error).mean()


def run(
    lab: Lab,
    dtype: Literal["bfloat16", "float16"] = "bfloat16",  # the 16 bits
    weights: Literal["float32", "half"] = "float32",  # of the net: as they are made, or cut to 16 bits
) -> None:
    device = lab.device()
    half = getattr(torch, dtype)
    a = torch.ones(4, 4, device=device)
    autocast = partial(torch.autocast, device.type, half)
    lab.stage("the table of dtypes")
    with autocast():
        given = {name: [name_of(f(t, t)) for t in (a, a.to(half))] for name, f in OPERATORS.items()}
    rows = [(name, *after) for name, after in given.items()]
    lab.table(f"dtype of the result on {device.type}, by that of a and b", rows, head=("operator", "float32", dtype))
    lab.claim("matmul", given["a @ b"], equals=[dtype, dtype])
    lab.claim("add", [given["a + b"][0], given["a + float32"][1]], equals=["float32", "float32"])
    lab.claim("mean", given["mean(a)"][1], equals=dtype)
    lab.claim("widened", [given["mse_loss(a, b)"][1], given["prod(a)"][1]], equals=["float32", "float32"])
    of_16_bits = [after for _, after in [*given.values()][-4:]]
    on_cuda = device.type == "cuda"
    lab.claim("cpu-list", of_16_bits, equals=[dtype] * 4, lacks="--device cpu" if on_cuda else "")
    lab.claim("cuda-list", of_16_bits, equals=["float32"] * 4, lacks="" if on_cuda else "a CUDA device")

    lab.stage("a step")
    net = nn.Linear(4, 1).to(device, half if weights == "half" else torch.float32)
    with autocast():
        calls = [lab.count(net, a).calls["aten._to_copy"] for _ in range(2)]
        loss = F.mse_loss(net(a), a[:, :1])  # (4, 1) both
    loss.backward()
    lab.claim("copies", calls, equals=[3, 1])
    lab.claim("parameters", {name_of(weight) for weight in net.parameters()} == {"float32"})
    bits = 8 * net.weight.grad.element_size()
    lab.claim("gradients", {name_of(weight.grad) for weight in net.parameters()} == {"float32"}, answers=bits)
    lab.claim("refused", lab.raises(net, a.to(half)).startswith("RuntimeError: mat1 and mat2"))

    lab.axes("ratio", x="how far predictions are off", y="loss / square of that, 1 is right")
    target = torch.zeros(4, 1, device=device, dtype=half)
    for off in lab.sweep(range(10, 301, 10), "errors"):
        prediction = target + off
        with autocast():
            losses = {"inside": F.mse_loss(prediction, target), "by-hand": by_hand(prediction, target)}
        losses["outside"] = F.mse_loss(prediction, target)
        for arm, loss in losses.items():
            lab.log(off, arm=arm, ratio=loss.float() / off**2)
    for name, right in (("inside", 90000), ("outside", 90112), ("by-hand", 90112)):
        lab.claim(name, losses[name], equals=right)

    other, found = "cpu" if on_cuda else "cuda", []
    warned = lab.warns(lambda: found.append(torch.autocast(other, torch.bfloat16)(torch.mm)(a, a)))
    lab.text("\n".join(warned) or "no warning", title=f"autocast({other!r}) where tensors lie on {device.type}")
    lab.claim("other-device", name_of(found[0]), equals="float32")
    lab.claim("deprecated", lab.warns(torch.cpu.amp.autocast)[0].partition(":")[0], equals="FutureWarning")
