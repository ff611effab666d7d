"""Anomaly detection reads a number from the GPU for every edge of the graph: switch it on to find a bug, and off again.

Backward hands gradients from node to node along the edges of the graph. `detect_anomaly` asks of each whether a NaN is in it,
and reads the answer. On a GPU to read is to wait until all work of the stream is done. In forward each node stores the call
stack as text, to name the culprit's line; `check_nan=False` leaves out the checks and keeps the stacks. An inf is no NaN and
passes.

`gradcheck` moves every input number a little to both sides and calls the function each time. With `fast_mode` it looks along
one random direction: the same few calls at every size. Both need float64, as float32 has too few digits for such a difference;
they belong in tests, with tiny inputs. The profiler adds nothing to the work, and writes down every operator and the functions
around it; `emit_nvtx` marks them for Nsight. Layers are small here, so checks and notes outweigh the products.
## Predict
A net is ten times Linear(64, 64) and Tanh, and gets 32 rows. How many times as long does a step take with detect_anomaly?
## Look for
- [checks] detect_anomaly adds isnan, any and a scalar read for each edge of the graph, and nothing else
- [waits] on a GPU each edge is a wait, and without the mode there is none
- [traces] each node with a backward of its own keeps its call stack, also with check_nan=False; without the mode none does
- [nan-only] the mode raises at a NaN, and lets an inf pass
- [gradcheck] gradcheck calls a function of n numbers 2 n + 2 times
- [fast] with fast_mode it calls one of 64 numbers as often as one of 1
- [float32] in float32 gradcheck finds fault with a right gradient
- [profiler] the profiler adds no operator, and writes at least two events for each
- [nvtx] emit_nvtx adds no operator
- [anomaly-time] a step of this net takes at least twice as long with detect_anomaly
- [profiler-time] with the profiler it takes at least 1.5 times as long
## Try next
`--stacks-only`: `check_nan=False`. Nothing is checked and nothing found. refutes: checks, waits, nan-only
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 9,
https://www.toymoban.com/news/detail-808122.html: turn off detect_anomaly, the profiler, emit_nvtx and gradcheck, without
numbers. Ours: all counts, the stacks, inf, and float32.
"""

import warnings
from functools import partial

import torch
from torch import nn
from torch.autograd import detect_anomaly, gradcheck
from torch.autograd.profiler import emit_nvtx, profile

from tuilab import Lab

CHECKS = ["aten.isnan", "aten._is_any_true", "aten._local_scalar_dense"]


def parents_of(output):  # each node of the graph behind a tensor, with those that it hands gradients to
    parents, waiting = {}, [output.grad_fn]
    while waiting:
        if (node := waiting.pop()) not in parents:
            parents[node] = [parent for parent, _ in node.next_functions if parent is not None]
            waiting += parents[node]
    return parents


def count_waits(lab, device, f):
    torch.get_device_module(device).set_sync_debug_mode("warn")
    warned = lab.warns(f)
    torch.get_device_module(device).set_sync_debug_mode("default")
    return sum("synchronizing" in text for text in warned)


def step(net, x):
    loss = net(x).square().mean()
    return loss, torch.autograd.grad(loss, [*net.parameters()])


def within(mode, f, *args):
    with mode():
        return f(*args)


def run(lab: Lab, stacks_only: bool = False) -> None:  # detect_anomaly with check_nan=False
    warnings.filterwarnings("ignore", "Anomaly Detection has been|Error detected in")  # they are the subject
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    anomaly, stacks = [partial(detect_anomaly, check_nan=is_asked) for is_asked in (not stacks_only, False)]
    net = nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(64, 64), nn.Tanh())]).to(device)
    plain = partial(step, net, torch.randn(32, 64, device=device))
    arms = {"plain": plain, "anomaly": partial(within, anomaly, plain), "profiler": partial(within, profile, plain)}

    @lab.once
    def exact():
        lab.stage("a step")
        counted = {arm: lab.count(f) for arm, f in arms.items()}
        losses = counted["anomaly"].value[0], within(stacks, plain)[0], counted["plain"].value[0]
        edges = sum(len(parents) for parents in parents_of(losses[-1]).values())
        added = counted["anomaly"].calls - counted["plain"].calls
        lab.claim("checks", [added[name] for name in CHECKS] + [added.total()], equals=[edges] * 3 + [3 * edges])
        inner = sum(len(parents) > 0 for parents in parents_of(losses[-1]).values())  # those of a leaf are none
        traces = [sum("traceback_" in node.metadata for node in parents_of(loss)) for loss in losses]
        lab.claim("traces", traces, equals=[inner, inner, 0])
        waits = [0 if lacks else count_waits(lab, device, arms[arm]) for arm in ("plain", "anomaly")]
        lab.claim("waits", waits, equals=[0, edges], lacks=lacks)
        zero = torch.zeros(1, device=device, requires_grad=True)  # the gradient of its root is inf, and 0 * inf is NaN
        refusals = [lab.raises(within, anomaly, torch.autograd.grad, root, zero) for root in (zero.sqrt() * 0, zero.sqrt())]
        lab.claim("nan-only", ["nan" in text for text in refusals], equals=[True, False])
        with profile() as profiled:
            plain()
        operators, notes = counted["plain"].operators, len(profiled.function_events)
        lab.claim("profiler", [counted["profiler"].operators - operators, notes >= 2 * operators], equals=[0, True])
        marked = None if lacks else lab.count(within, emit_nvtx, plain).operators
        lab.claim("nvtx", marked, equals=operators, lacks=lacks)

        lab.axes("calls", x="numbers that go in", y="calls of the function", log="xy")
        sizes, calls = [1, 4, 16, 64], {"gradcheck": [], "fast_mode": []}
        for size in lab.sweep(sizes, "numbers to check"):
            numbers = torch.rand(size, dtype=torch.float64, device=device, requires_grad=True)
            for arm, is_fast in {"gradcheck": False, "fast_mode": True}.items():
                calls[arm].append(lab.count(partial(gradcheck, fast_mode=is_fast), torch.sin, numbers).calls["aten.sin"])
                lab.log(size, arm=arm, calls=calls[arm][-1])
        lab.claim("gradcheck", calls["gradcheck"], equals=[2 * size + 2 for size in sizes])
        lab.claim("fast", calls["fast_mode"][-1], equals=calls["fast_mode"][0])
        with warnings.catch_warnings(action="ignore"):  # it says that float32 will likely fail
            fault = lab.raises(gradcheck, torch.sin, torch.rand(64, device=device, requires_grad=True))
        lab.claim("float32", fault[:15], equals="GradcheckError:")

    lab.stage("a step with and without")
    lab.claim_ratio("anomaly-time", "anomaly/plain", at_least=2, answers=True)
    lab.claim_ratio("profiler-time", "profiler/plain", at_least=1.5)
    lab.race(**arms, seconds=0.2)
