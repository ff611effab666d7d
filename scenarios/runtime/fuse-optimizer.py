"""One fused step instead of hundreds of operators; foreach has few calls too, but needs memory for all weights at once.

An optimizer does a handful of operations with each weight, and a net has hundreds of weight tensors. Three forms of the same
arithmetic: the for-loop takes one tensor after another, an operator for each operation. `foreach=True` turns that round: one
operator for each operation, on the list of all tensors. `fused=True` is one operator for all operations on all tensors: it
reads weight, gradient and state once and writes them once.

On a GPU the loop is launch-bound, and both others win; PyTorch takes foreach there of itself. On a CPU it takes the loop, and
for a reason. What the loop needs in between is as large as one tensor, stays in the cache, and is gone before the next one.
What foreach needs in between is as large as all weights, and goes through memory with each operation. So foreach pays on a CPU
only for many small tensors, where calls are what costs: see the last chart. Fused is for both, but one has to ask for it.
## Predict
Adam with `foreach=False` updates 80 tensors in place of 40. How many operators more does a step call?
## Look for
- [loop] the for-loop calls at least 5 operators more for each tensor more
- [foreach] foreach calls as many operators on lists for 80 tensors as for 40
- [fused] fused calls one operator for the update of all 40 tensors, and at most 5 in all
- [same] after 10 steps the weights of all three agree to 1e-5
- [loop-peak] in a step the loop needs at most a tenth of the bytes of all weights besides them
- [foreach-peak] foreach needs at least as many bytes as all weights have
- [fused-peak] fused needs at most 1 % of them
- [default] of itself Adam calls what the for-loop calls on a CPU, and what foreach calls on a GPU
- [fused-time] the for-loop takes at least 1.5 times as long as fused
- [foreach-cpu] on a CPU foreach takes at least as long as the for-loop
- [foreach-gpu] on a GPU the for-loop takes at least twice as long as foreach
## Try next
`--tensors 3`: what the loop needs for one tensor is a third of all and more, and there is little to fuse. refutes: loop-peak
`--dtype mixed`: every second tensor is bfloat16. A kernel is for one type: two groups, and twice the calls; fused rounds a
bfloat16 weight once in a step, the others after each operation. refutes: fused, same
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 6,
https://www.toymoban.com/news/detail-808122.html: fusing is helpful for optimizers. Ours: the forms that PyTorch has by now,
and their memory.
"""

import time
from typing import Literal

import torch

from tuilab import Lab

FORMS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def build(count, numbers, form, device, dtype="float32", optimizer=torch.optim.Adam):
    """An optimizer with gradients, after its first step, which makes its state."""
    torch.manual_seed(0)
    types = [torch.bfloat16 if dtype == "mixed" and i % 2 else torch.float32 for i in range(count)]
    weights = [torch.randn(numbers, device=device).to(kind).requires_grad_() for kind in types]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    made = optimizer(weights, lr=0.01, **form)
    made.step()
    return made


def weights_of(made):
    return made.param_groups[0]["params"]


def on_lists(counted):
    return sum(calls for name, calls in counted.calls.items() if name.startswith("aten._foreach"))


def step_ms(made, device):
    times = []
    for _ in range(3):
        began = time.perf_counter()
        made.step()
        weights_of(made)[-1][0].item()  # waits for a GPU
        times.append(1e3 * (time.perf_counter() - began))
    return min(times)


def run(
    lab: Lab,
    tensors: int = 40,  # weights of the net, 2..1000
    numbers: int = 65536,  # in each of them, 1..1000000
    dtype: Literal["float32", "mixed"] = "float32",  # mixed: every second tensor is bfloat16
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        lab.stage("counting a step")
        made = {name: build(tensors, numbers, form, device, dtype) for name, form in FORMS.items()}
        nbytes = sum(weight.nbytes for weight in weights_of(made["fused"]))
        counted = {name: lab.count(optimizer.step) for name, optimizer in made.items()}
        twice = {name: lab.count(build(2 * tensors, 1, form, device, dtype).step) for name, form in FORMS.items()}
        lab.bars("operators in a step", {name: one.operators for name, one in counted.items()})
        lab.bars("bytes in between, at most", {name: one.peak_bytes for name, one in counted.items()}, unit="B")
        lab.claim("loop", twice["loop"].operators - counted["loop"].operators, at_least=5 * tensors, answers=True)
        lab.claim("foreach", on_lists(counted["foreach"]), equals=on_lists(twice["foreach"]))
        updates = counted["fused"].calls["aten._fused_adam_"]
        lab.claim("fused", [updates, counted["fused"].operators <= 5], equals=[1, True])
        lab.claim("loop-peak", counted["loop"].peak_bytes / nbytes, at_most=0.1)
        lab.claim("foreach-peak", counted["foreach"].peak_bytes / nbytes, at_least=1)
        lab.claim("fused-peak", 100 * counted["fused"].peak_bytes / nbytes, at_most=1, unit="%")
        own = lab.count(build(tensors, numbers, {}, device, dtype).step)
        lab.claim("default", own.calls == counted["foreach" if device.type == "cuda" else "loop"].calls)

        for _ in range(8):  # two are made
            for optimizer in made.values():
                optimizer.step()
        right = weights_of(made["loop"])
        pairs = [pair for other in made.values() for pair in zip(right, weights_of(other), strict=True)]
        lab.claim("same", max((ours.float() - theirs.float()).abs().max() for ours, theirs in pairs), at_most=1e-5)

        lab.axes("step_ms", x="tensors", y="a step of 1,048,576 weights", log="xy")
        for count in lab.sweep([4, 16, 64, 256], "few large tensors, many small ones"):
            for name, form in FORMS.items():
                lab.log(count, arm=name, step_ms=step_ms(build(count, 2**20 // count, form, device), device))

    lab.stage("timing a step")
    on_gpu = device.type == "cuda"
    lab.claim_ratio("fused-time", "loop/fused", at_least=1.5)
    lab.claim_ratio("foreach-cpu", "foreach/loop", at_least=1, lacks="--device cpu" if on_gpu else "")
    lab.claim_ratio("foreach-gpu", "loop/foreach", at_least=2, lacks="" if on_gpu else "a CUDA device")
    arms = {name: lambda form=form: build(tensors, numbers, form, device, dtype).step for name, form in FORMS.items()}
    lab.race(**arms, factories=True, seconds=0.3)
