"""Pass fused=True to the optimizer: one call instead of hundreds of operators.

An optimizer does a handful of operations with each weight, and a net has hundreds of weight
tensors. PyTorch has three forms of the same arithmetic. The for-loop takes one tensor after
another, and calls an operator for each operation. `foreach=True` calls one operator for each
operation, on the list of all tensors. `fused=True` calls one operator for all operations on all
tensors: it reads weight, gradient and state once, and writes them once.

On a GPU the for-loop waits for its launches, and both other forms are faster. By default PyTorch
takes foreach there. On a CPU it takes the for-loop, for a reason. The intermediate results of the
loop are as large as one tensor, stay in the cache, and are freed before the next tensor. Those of
foreach are as large as all weights, and go through memory with each operation. So foreach pays on a
CPU only for many small tensors, where the calls cost most of the time: see the last chart. Fused is
for both devices, but you have to ask for it.

Fused has its limits. A kernel is for one dtype, so mixed weights make two groups. It rounds a
bfloat16 weight once in a step, where the other forms round after each operation.

In practice: write `torch.optim.AdamW(net.parameters(), lr=..., fused=True)` on a GPU and on a CPU.
If your optimizer has no fused form, keep its default.
## Predict
Adam with `foreach=False` updates 80 tensors instead of 40. How many operators more does a step
call?
## Look for
- [loop] for each tensor more, the for-loop calls at least 5 operators more
- [foreach] foreach calls as many operators on lists for 80 tensors as for 40
- [fused] fused calls one operator for the update of all 40 tensors, and at most 5 in all
- [same] after 10 steps the weights of all three forms agree to 1e-5
- [loop-peak] the intermediate results of the for-loop take at most 0.1 times the bytes of all
  weights
- [foreach-peak] the intermediate results of foreach take at least the bytes of all weights
- [fused-peak] the intermediate results of fused take at most 1 % of the bytes of all weights
- [default] by default Adam calls the operators of the for-loop on a CPU, and those of foreach on a
  GPU
- [fused-time] the for-loop takes at least 1.5 times as long as fused
- [foreach-cpu] on a CPU foreach takes at least as long as the for-loop
- [foreach-gpu] on a GPU the for-loop takes at least twice as long as foreach
## Try next
`--tensors 3`: the intermediate results for one tensor are a third of all weights and more, and
there is little to fuse. refutes: loop-peak
`--dtype mixed`: every second tensor is bfloat16, so fused makes two groups and twice the calls, and
its roundings differ. refutes: fused, same
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 6,
https://www.toymoban.com/news/detail-808122.html: fusing is helpful for optimizers. Ours: the forms
that PyTorch has today, and their memory.
"""

import time
from functools import partial
from typing import Literal

import torch

from tuilab import Lab

FORMS = {
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def choose_dtype(number, dtype):
    if dtype == "mixed" and number % 2 == 1:
        return torch.bfloat16
    return torch.float32


def build_adam(count, numbers, form, device, dtype="float32"):
    """Return Adam with gradients, after its first step, which makes its state."""
    torch.manual_seed(0)
    weights = []
    for number in range(count):
        weight = torch.randn(numbers, device=device).to(choose_dtype(number, dtype))
        weight.requires_grad_()
        weights.append(weight)
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.Adam(weights, lr=0.01, **form)
    optimizer.step()
    return optimizer


def build_step(*arguments):
    return build_adam(*arguments).step


def weights_of(optimizer):
    return optimizer.param_groups[0]["params"]


def count_calls_on_lists(counted):
    calls = 0
    for name, count in counted.calls.items():
        if name.startswith("aten._foreach"):
            calls += count
    return calls


def largest_difference(weights, others):
    differences = []
    for weight, other in zip(weights, others, strict=True):
        differences.append((weight.float() - other.float()).abs().max())
    return max(differences)


def measure_step_ms(optimizer):
    """Return the milliseconds of the shortest of three steps."""
    times_ms = []
    for _ in range(3):
        began = time.perf_counter()
        optimizer.step()
        weights_of(optimizer)[-1][0].item()  # waits for a GPU
        times_ms.append(1e3 * (time.perf_counter() - began))
    return min(times_ms)


def count_steps(lab, optimizers, tensors, numbers, dtype):
    lab.stage("counting a step")
    device = lab.device()
    all_bytes = sum(weight.nbytes for weight in weights_of(optimizers["fused"]))
    counted = {}
    for_twice = {}
    operators = {}
    peak_bytes = {}
    for name, form in FORMS.items():
        counted[name] = lab.count(optimizers[name].step)
        for_twice[name] = lab.count(build_adam(2 * tensors, 1, form, device, dtype).step)
        operators[name] = counted[name].operators
        peak_bytes[name] = counted[name].peak_bytes
    lab.bars("operators in a step", operators)
    lab.bars("bytes of intermediate results, at most", peak_bytes, unit="B")

    more = for_twice["loop"].operators - operators["loop"]
    lab.claim("loop", more, at_least=5 * tensors, answers=True)
    on_lists = count_calls_on_lists(counted["foreach"])
    lab.claim("foreach", on_lists, equals=count_calls_on_lists(for_twice["foreach"]))
    updates = counted["fused"].calls["aten._fused_adam_"]
    lab.claim("fused", [updates, operators["fused"] <= 5], equals=[1, True])
    lab.claim("loop-peak", peak_bytes["loop"] / all_bytes, at_most=0.1)
    lab.claim("foreach-peak", peak_bytes["foreach"] / all_bytes, at_least=1)
    lab.claim("fused-peak", 100 * peak_bytes["fused"] / all_bytes, at_most=1, unit="%")
    by_default = lab.count(build_adam(tensors, numbers, {}, device, dtype).step)
    expected = counted["foreach" if device.type == "cuda" else "loop"]
    lab.claim("default", by_default.calls == expected.calls)


def compare_weights(lab, optimizers):
    """Compare the weights after 10 steps; two were made before."""
    for _ in range(8):
        for optimizer in optimizers.values():
            optimizer.step()
    of_loop = weights_of(optimizers["loop"])
    differences = []
    for optimizer in optimizers.values():
        differences.append(largest_difference(of_loop, weights_of(optimizer)))
    lab.claim("same", max(differences), at_most=1e-5)


def measure_sizes(lab, device):
    lab.axes("step_ms", x="tensors", y="a step of 1,048,576 weights", log="xy")
    for count in lab.sweep([4, 16, 64, 256], "few large tensors, many small ones"):
        for name, form in FORMS.items():
            optimizer = build_adam(count, 2**20 // count, form, device)
            lab.log(count, arm=name, step_ms=measure_step_ms(optimizer))


def run(
    lab: Lab,
    tensors: int = 40,  # weights of the net, 2..1000
    numbers: int = 65536,  # in each of them, 1..1000000
    dtype: Literal["float32", "mixed"] = "float32",  # mixed: every second tensor is bfloat16
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        optimizers = {}
        for name, form in FORMS.items():
            optimizers[name] = build_adam(tensors, numbers, form, device, dtype)
        count_steps(lab, optimizers, tensors, numbers, dtype)
        compare_weights(lab, optimizers)
        measure_sizes(lab, device)

    lab.stage("timing a step")
    is_gpu = device.type == "cuda"
    needs_cpu = "--device cpu" if is_gpu else ""
    needs_gpu = "" if is_gpu else "a CUDA device"
    lab.claim_ratio("fused-time", "loop/fused", at_least=1.5)
    lab.claim_ratio("foreach-cpu", "foreach/loop", at_least=1, lacks=needs_cpu)
    lab.claim_ratio("foreach-gpu", "loop/foreach", at_least=2, lacks=needs_gpu)
    arms = {}
    for name, form in FORMS.items():
        arms[name] = partial(build_step, tensors, numbers, form, device, dtype)
    lab.race(**arms, factories=True, seconds=0.3)
