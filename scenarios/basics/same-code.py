"""Take the device from what you are given, and one function runs on a CPU, a GPU and meta.

torch's operators ask their arguments where they live, and put the result there. A function that makes its own tensors must do
so too: `torch.zeros(n)` is on the CPU, and a sum with a tensor elsewhere is refused. `x.new_zeros(n)`, `torch.zeros_like(x)`
and `torch.arange(n, device=x.device)` go where x is. `.cuda()` in the middle of a function is the same mistake the other way
round.

The device `meta` computes nothing: it has shapes and dtypes and no memory. Code that runs there asks its arguments
everywhere, so a test needs no GPU to find the tensor that was left behind. And it tells the price beforehand: operators and
their FLOPs are counted as on the CPU, for a batch of any size.

What a value decides cannot run there: `.item()`, an `if` of a tensor, `x[x > 0]`, whose shape depends on values. On a GPU
these are the places where the CPU stops and waits.
## Predict
Forward takes 42 million FLOPs for a batch of 64. How many million does backward take, counted on meta, which computes nothing?
## Look for
- [cpu] the naive function runs on the CPU
- [meta] it is refused on meta
- [same] the one that asks its argument gives shape and dtype on meta as on the CPU
- [values] both functions agree on the CPU to the last bit
- [flops] forward and backward take as many FLOPs on meta as on the CPU
- [operators] forward calls as many operators on meta as on the CPU
- [no-memory] the result on meta lies nowhere: its address is 0, and that of the result on the CPU is not
- [too-large] a call whose result would take 2 TiB runs on meta
- [value] .item() of a tensor on meta is refused
- [mask] x[x > 0] on meta is refused
- [gpu] on a GPU the one that asks agrees with the CPU in float64 to 1e-9, and the naive one is refused
## Try next
`--position asked`: the naive function asks as well. refutes: meta
`--large 1024`: a batch that any box can hold. refutes: too-large
## Source
EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch: one code for CPU, GPU and TPU "without
substantial changes". Ours: meta, and which changes are meant.
"""

from typing import Literal

import torch

from tuilab import Lab


def naive(x, weight):
    position = torch.arange(x.shape[1], dtype=x.dtype)  # on the CPU, wherever x is
    return attend(x, weight, position)


def asked(x, weight):
    position = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
    return attend(x, weight, position)


FUNCTIONS = {"naive": naive, "asked": asked}


def attend(x, weight, position):  # (batch, time, width), (width, width), (time)
    scores = (x @ weight) @ x.mT - (position[:, None] - position).abs()  # (batch, time, time)
    return scores.softmax(-1) @ x  # (batch, time, width)


def tensors(batch, device, dtype=torch.float32):
    """Random numbers from the CPU's generator, so that every device sees the same; on meta there are none."""
    at = "meta" if device == "meta" else "cpu"
    x, weight = torch.randn(batch, 64, 32, device=at, dtype=dtype), torch.randn(32, 32, device=at, dtype=dtype) / 32
    return x.to(device).requires_grad_(), weight.to(device).requires_grad_()


def refusal(lab, f, *args):
    """The kind of exception that a call ends with, or nothing."""
    return lab.raises(f, *args).partition(":")[0]


def run(
    lab: Lab,
    position: Literal["naive", "asked"] = "naive",  # where the naive function makes its positions
    large: int = 268435456,  # rows of the batch that no box can hold, 1..1000000000
) -> None:
    device = lab.device()
    first = FUNCTIONS[position]
    lab.stage("one function, three devices")
    x, weight = tensors(4, "cpu")
    meta = tensors(4, "meta")
    lab.claim("cpu", not refusal(lab, first, x, weight))
    lab.claim("meta", refusal(lab, first, *meta), equals="RuntimeError")
    there, here = asked(*meta), asked(x, weight)
    lab.claim("same", [str(there.dtype), *there.shape] == [str(here.dtype), *here.shape])
    lab.claim("no-memory", [there.data_ptr(), here.data_ptr() != 0], equals=[0, True])
    lab.claim("values", torch.equal(first(x, weight), here))
    lab.claim("value", refusal(lab, there.sum().item), equals="RuntimeError")
    lab.claim("mask", refusal(lab, lambda: there[there > 0]), equals="NotImplementedError")

    lab.axes("gflop", x="rows of the batch", y="GFLOP, forward", log="xy")
    for batch in lab.sweep([1, 4, 16, 64, 256, 1024, 4096], "batches"):
        for arm in ("cpu", "meta") if batch <= 64 else ("meta",):
            counted = lab.count(asked, *tensors(batch, arm), backward=True)
            lab.log(batch, arm=arm, gflop=counted.flops / 1e9)
    on_cpu, on_meta = (lab.count(asked, *tensors(64, arm), backward=True) for arm in ("cpu", "meta"))
    flops = [[one.flops, one.backward.flops] for one in (on_meta, on_cpu)]
    lab.claim("flops", flops[0], equals=flops[1], answers=flops[0][1] / 1e6)
    lab.claim("operators", on_meta.operators, equals=on_cpu.operators)
    lab.claim("too-large", asked(*tensors(large, "meta")).nbytes, equals=2**41)

    lacks = "" if device.type == "cuda" else "a CUDA device"
    exact = tensors(4, "cpu", torch.float64)
    on_device = [tensor.detach().to(device) for tensor in exact]
    gap = (asked(*on_device).cpu() - asked(*exact)).abs().max().item()
    lab.claim("gpu", gap <= 1e-9 and (position == "asked" or refusal(lab, first, *on_device) == "RuntimeError"), lacks=lacks)
