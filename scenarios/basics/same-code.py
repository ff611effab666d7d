"""Create tensors on the device of an argument, and code runs on CPU, GPU and meta.

A function works on the CPU and fails on the GPU, because somewhere inside it creates a tensor.
Operators of torch use the device of their arguments, and put the result there. A function that
creates tensors has to do the same. `torch.zeros(n)` is on the CPU, and adding it to a tensor on
another device raises an error. `x.new_zeros(n)`, `torch.zeros_like(x)` and
`torch.arange(n, device=x.device)` are on the device of x. A `.cuda()` in the middle of a function
is the same mistake for the other direction.

The device `meta` computes nothing: its tensors have shapes and dtypes, but no memory. Code that
runs there takes the device from its arguments everywhere. So a test without a GPU can find the
tensor that was left on the CPU. And meta shows the cost in advance: operators and FLOPs are counted
as on the CPU, for a batch of any size.

Code that depends on a value cannot run on meta: `.item()`, an `if` on a tensor, or `x[x > 0]`,
whose shape depends on values. On a GPU these are the places where the CPU stops and waits. The
source promises one code for CPU, GPU and TPU "without substantial changes". A TPU needs the
package torch_xla, and is not tested here.

In practice: create tensors with `device=x.device`, or with the `_like` and `new_` functions. Add a
test that calls your model with tensors on `meta`: build it under `with torch.device("meta"):`.
## Predict
Forward takes 42 million FLOPs for a batch of 64. How many million does backward take, counted on
meta, which computes nothing?
## Look for
- [cpu] a function that creates its positions on the CPU runs on the CPU
- [meta] a function that creates its positions on the CPU raises a RuntimeError on meta
- [same] the function that uses x.device gives the same shape and dtype on meta and on the CPU
- [values] both functions give bitwise the same result on the CPU
- [flops] forward and backward take as many FLOPs on meta as on the CPU
- [operators] forward calls as many operators on meta as on the CPU
- [no-memory] the address of a result is 0 on meta, and not 0 on the CPU
- [too-large] a call whose result would take 2 TiB runs on meta
- [value] .item() of a tensor on meta raises a RuntimeError
- [mask] x[x > 0] on meta raises a NotImplementedError
- [gpu] on a GPU the function that uses x.device agrees with the CPU in float64 to 1e-9
- [gpu-naive] on a GPU the function that creates its positions on the CPU raises a RuntimeError
## Try next
`--position asked`: the first function uses x.device as well. refutes: meta, gpu-naive
`--large 1024`: a batch that fits into any machine. refutes: too-large
## Source
EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch: one code for
CPU, GPU and TPU "without substantial changes". Ours: meta, and which changes are meant.
"""

from typing import Literal

import torch

from tuilab import Lab

ON_CPU_AND_META = (1, 4, 16, 64)  # rows of a batch
ON_META = (256, 1024, 4096)


def attend(x, weight, position):  # (batch, time, width), (width, width), (time,)
    distances = (position[:, None] - position).abs()  # (time, time)
    scores = (x @ weight) @ x.mT - distances  # (batch, time, time)
    return scores.softmax(-1) @ x  # (batch, time, width)


def naive(x, weight):
    position = torch.arange(x.shape[1], dtype=x.dtype)  # on the CPU, wherever x is
    return attend(x, weight, position)


def asked(x, weight):
    position = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
    return attend(x, weight, position)


FUNCTIONS = {"naive": naive, "asked": asked}


def random_inputs(batch, device, dtype=torch.float32):
    """Return x and weight, drawn on the CPU (so that devices agree) except for meta."""
    drawn_on = "meta" if device == "meta" else "cpu"
    x = torch.randn(batch, 64, 32, device=drawn_on, dtype=dtype)
    weight = torch.randn(32, 32, device=drawn_on, dtype=dtype) / 32
    return x.to(device).requires_grad_(), weight.to(device).requires_grad_()


def error_kind(lab, function, *args):
    """Return the kind of exception that a call raises, or an empty text."""
    return lab.raises(function, *args).partition(":")[0]


def claim_meta(lab, first):
    """Run both functions on the CPU and on meta; `first` is the one that may fail."""
    lab.stage("one function, three devices")
    x, weight = random_inputs(4, "cpu")
    meta_x, meta_weight = random_inputs(4, "meta")
    lab.claim("cpu", error_kind(lab, first, x, weight) == "")
    lab.claim("meta", error_kind(lab, first, meta_x, meta_weight), equals="RuntimeError")

    on_cpu = asked(x, weight)
    on_meta = asked(meta_x, meta_weight)
    lab.claim(
        "same", [str(on_meta.dtype), *on_meta.shape], equals=[str(on_cpu.dtype), *on_cpu.shape]
    )
    lab.claim("no-memory", [on_meta.data_ptr(), on_cpu.data_ptr() != 0], equals=[0, True])
    lab.claim("values", torch.equal(first(x, weight), on_cpu))
    lab.claim("value", error_kind(lab, on_meta.sum().item), equals="RuntimeError")
    masked = error_kind(lab, lambda: on_meta[on_meta > 0])
    lab.claim("mask", masked, equals="NotImplementedError")


def count_call(lab, batch, device):
    counted = lab.count(asked, *random_inputs(batch, device), backward=True)
    lab.log(batch, arm=device, gflop=counted.flops / 1e9)
    return counted


def claim_counts(lab, large):
    lab.axes("gflop", x="rows of the batch", y="GFLOP, forward", log="xy")
    for batch in lab.sweep(ON_CPU_AND_META, "batches"):
        on_cpu = count_call(lab, batch, "cpu")
        on_meta = count_call(lab, batch, "meta")
    lab.claim(
        "flops",
        [on_meta.flops, on_meta.backward.flops],
        equals=[on_cpu.flops, on_cpu.backward.flops],
        answers=on_meta.backward.flops / 1e6,
    )
    lab.claim("operators", on_meta.operators, equals=on_cpu.operators)
    for batch in lab.sweep(ON_META, "batches on meta"):
        count_call(lab, batch, "meta")
    result = asked(*random_inputs(large, "meta"))
    lab.claim("too-large", result.nbytes, equals=2**41)


def claim_gpu(lab, first, device):
    if device.type != "cuda":
        lab.claim("gpu", lacks="a CUDA device")
        lab.claim("gpu-naive", lacks="a CUDA device")
        return
    x, weight = random_inputs(4, "cpu", torch.float64)
    gpu_x = x.detach().to(device)
    gpu_weight = weight.detach().to(device)
    gap = (asked(gpu_x, gpu_weight).cpu() - asked(x, weight)).abs().max()
    lab.claim("gpu", gap, at_most=1e-9)
    lab.claim("gpu-naive", error_kind(lab, first, gpu_x, gpu_weight), equals="RuntimeError")


def run(
    lab: Lab,
    position: Literal["naive", "asked"] = "naive",  # where the first function makes its positions
    large: int = 268435456,  # rows of a batch that no machine can hold, 1..1000000000
) -> None:
    device = lab.device()
    first = FUNCTIONS[position]
    claim_meta(lab, first)
    claim_counts(lab, large)
    claim_gpu(lab, first, device)
