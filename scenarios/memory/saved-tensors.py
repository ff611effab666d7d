"""An operator keeps its input or its output for backward, whichever its derivative is written in.

The derivative of z = y ** 2 is 2 * y, so the square keeps its input y. The derivative of p = sigmoid(z) is p * (1 - p), so the
sigmoid keeps its output p, and z dies. A subtraction has the derivative 1 and keeps nothing. Of the tensors in
    y = x - 2; z = y ** 2; p = sigmoid(z)
a training step therefore pays for y and p until backward; the page that the chain is from names y and z. It would be right
for a SiLU, whose derivative is written in the input.
What is kept must not change: backward refuses where a kept tensor was written to since. What is not kept is yours: z may be
overwritten, and the gradient is right. So a ReLU can work in place behind a Linear, which keeps no output, and cannot behind
a sigmoid, which does. Backward drops what was kept as it goes, so a second one through the same graph is refused.
## Predict
Each of x, y, z and p has 1,048,576 numbers in float32, 4 MiB. How many MiB does the graph of this chain keep for backward?
## Look for
- [kept] the chain keeps y p
- [bytes] for 1,048,576 numbers it keeps 8,388,608 bytes
- [write] backward refuses after a write into y or p; after one into x or z it gives the same gradient
- [live] when the chain has returned p, two of the three tensors that it made live, and one where no gradient is recorded
- [once] the second backward through one graph raises a RuntimeError
- [after] behind backward two tensors live: p, and the gradient of x
- [nothing] of 13 operators these keep neither input nor output: x-2 -x mean
- [input] these keep their input: x**2 gelu silu sin log
- [output] these keep their output: relu sigmoid tanh exp sqrt
- [relu-in-place] a ReLU in place passes backward behind a Linear, and not behind a sigmoid
## Try next
`--last silu`: the derivative of a SiLU is written in its input, so the chain keeps y and z, as the page says. What it
keeps is as much, but now p comes on top. refutes: kept, live, write
`--last neg`: a minus keeps nothing; y is left alone. refutes: kept, bytes, write
## Source
"Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Activation checkpointing": the chain.
Ours: the writes, the table of operators and the count of bytes.
"""

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from tuilab import Lab

SIZE = 1 << 20  # numbers in x
UNARY = {"x-2": lambda x: x - 2, "-x": torch.neg, "mean": torch.mean, "x**2": torch.square, "gelu": F.gelu, "silu": F.silu}
UNARY |= {name: getattr(torch, name) for name in ("sin", "log", "relu", "sigmoid", "tanh", "exp", "sqrt")}
LAST = {"sigmoid": torch.sigmoid, "silu": F.silu, "neg": torch.neg}


def chain(x, last):
    y = x - 2
    z = y**2
    p = last(z)
    return {"x": x, "y": y, "z": z, "p": p}  # all (SIZE,)


def kept_by(make):
    """The names of the tensors that autograd keeps while they are made."""
    kept = []
    with saved_tensors_hooks(lambda tensor: (kept.append(tensor.data_ptr()), tensor)[1], lambda tensor: tensor):
        named = make()
    return " ".join(name for name, tensor in named.items() if tensor.data_ptr() in kept)


def call(f, x):
    x = x.clone()
    return {"input": x, "output": f(x)}


def after_write(x, last, into, right):
    named = chain(x, last)
    with torch.no_grad():
        named[into].add_(1)
    try:
        return "the same" if torch.equal(torch.autograd.grad(named["p"].sum(), x)[0], right) else "another"
    except RuntimeError:  # a kept tensor has another version
        return "refused"


def backward_of(layer, device):
    rows = torch.ones(4, 8, device=device, requires_grad=True)
    torch.relu_(layer(rows)).sum().backward()


def twice(total):
    total.backward(), total.backward()


def run(lab: Lab, last: Literal["sigmoid", "silu", "neg"] = "sigmoid") -> None:  # the end of the chain
    x = torch.linspace(-1, 5, SIZE, device=lab.device()).requires_grad_()
    last = LAST[last]
    lab.axes("live_bytes", x="births and deaths of tensors", y="bytes that live")
    lab.stage("the chain")
    for arm, start in (("recorded", x), ("no gradient", x.detach())):
        with lab.memory("chain", arm=arm, timeline=True):
            total = chain(start, last)["p"].sum()
            _ = torch.autograd.grad(total, start) if total.requires_grad else None
    lab.claim("kept", kept_by(partial(chain, x, last)), equals="y p")
    counted = lab.count(lambda: chain(x, last)["p"], backward=True)
    plain = lab.count(lambda: chain(x.detach(), last)["p"])
    lab.claim("bytes", counted.saved_bytes, equals=2 * 4 * SIZE, unit="B", answers=counted.saved_bytes / 2**20)
    lab.claim("live", [counted.live_bytes / x.nbytes, plain.live_bytes / x.nbytes], equals=[2, 1])
    lab.claim("after", counted.backward.live_bytes / x.nbytes, equals=2)

    lab.stage("writes")
    (right,) = torch.autograd.grad(chain(x, last)["p"].sum(), x)
    outcome = {into: after_write(x.detach().clone().requires_grad_(), last, into, right) for into in "xyzp"}
    lab.table("gradient after a write", [*outcome.items()], head=("write into", "gradient"))
    lab.claim("write", [*outcome.values()], equals=["the same", "refused", "the same", "refused"])
    lab.claim("once", lab.raises(twice, x.square().sum()).partition(":")[0], equals="RuntimeError")
    refused = [bool(lab.raises(backward_of, layer, x.device)) for layer in (nn.Linear(8, 8, device=x.device), torch.sigmoid)]
    lab.claim("relu-in-place", refused, equals=[False, True])

    lab.stage("operators")
    kept = {name: kept_by(partial(call, f, x)) or "nothing" for name, f in UNARY.items()}
    lab.table("what an operator keeps of its input and its output", [*kept.items()], head=("operator", "keeps"))
    of_kind = {kind: " ".join(name for name in kept if kept[name] == kind) for kind in ("nothing", "input", "output")}
    lab.claim("nothing", of_kind["nothing"], equals="x-2 -x mean")
    lab.claim("input", of_kind["input"], equals="x**2 gelu silu sin log")
    lab.claim("output", of_kind["output"], equals="relu sigmoid tanh exp sqrt")
