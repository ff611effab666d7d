"""Switch debug modes off: anomaly detection checks every gradient of a step.

A bug produced a NaN, somebody switched on `detect_anomaly`, found the line, and forgot the switch.
The run is slow now, and nobody knows why. Backward passes gradients from node to node along the
edges of the graph. `detect_anomaly` asks of each gradient whether it contains a NaN, and reads the
answer. On a GPU this read waits until all queued work of the stream is done. In forward, each node
also stores the call stack as text, so that an error can name the line of the culprit.
`check_nan=False` leaves out the checks and keeps the stacks. An inf is not a NaN, and passes.

`with detect_anomaly():` ends with its block. `set_detect_anomaly(True)` called as a function stays
on until you call it with False.

`gradcheck` moves every input number a little to both sides, and calls the function each time.
With `fast_mode=True` it uses one random direction, with the same few calls at every size.
`gradgradcheck` does the same for second derivatives. They need float64, because float32 has too
few digits for such differences. They belong in tests, with small inputs.

The profiler and `emit_nvtx` (marks for Nsight) add no operators. The profiler records every
operator and the functions around it, and that takes time. The layers here are small, so checks
and records take longer than the products. With large layers the factor is smaller.

In practice: call `torch.autograd.set_detect_anomaly(False)` and leave profilers out of normal
runs. To find a NaN, run the failing step again inside `with torch.autograd.detect_anomaly():`. To
check that a custom backward is right, call `torch.autograd.gradcheck` in a test, in float64.
## Predict
A net is ten times Linear(64, 64) and Tanh, and gets 32 rows. How many times as long does a step
take with detect_anomaly?
## Look for
- [checks] detect_anomaly adds one isnan, one any and one scalar read for each edge of the graph,
  and no other operator
- [switch] set_detect_anomaly(True) adds as many operators as detect_anomaly, and it is still on
  after the step
- [waits] on a GPU the CPU waits once for each edge with detect_anomaly, and never without it
- [traces] with detect_anomaly, also with check_nan=False, each node except leaves keeps its call
  stack, and without it none does
- [nan-only] detect_anomaly raises an error at a NaN, and lets an inf pass
- [gradcheck] gradcheck calls a function of n numbers 2n + 2 times
- [fast] with fast_mode=True gradcheck calls a function of 64 numbers as often as that of 1 number
- [second-order] gradgradcheck of the sine of n numbers calls the operator sin 6n + 4 times
- [float32] in float32 gradcheck rejects the right gradient of the sine of 64 numbers
- [profiler] the profiler adds no operator, and records at least two events for each operator
- [nvtx] on a GPU emit_nvtx adds no operator
- [anomaly-time] a step of this net takes at least 2 times as long with detect_anomaly
- [profiler-time] a step of this net takes at least 1.5 times as long with the profiler
## Try next
`--stacks-only`: `check_nan=False` leaves out the checks, so nothing is found. refutes: checks,
switch, waits, nan-only
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 9,
https://www.toymoban.com/news/detail-808122.html: turn off anomaly detection, the profiler,
emit_nvtx, gradcheck and gradgradcheck, without numbers. Ours: all counts, the stacks, inf, and
float32.
"""

import warnings
from functools import partial

import torch
from torch import nn
from torch.autograd import detect_anomaly, gradcheck, gradgradcheck, set_detect_anomaly
from torch.autograd.profiler import emit_nvtx, profile

from tuilab import Lab

CHECKS = ("aten.isnan", "aten._is_any_true", "aten._local_scalar_dense")
SIZES = (1, 4, 16, 64)  # numbers that gradcheck checks


def build_net(device):
    layers = []
    for _ in range(10):
        layers.append(nn.Linear(64, 64))
        layers.append(nn.Tanh())
    return nn.Sequential(*layers).to(device)


def train_step(net, x):  # (32, 64)
    loss = net(x).square().mean()
    return loss, torch.autograd.grad(loss, list(net.parameters()))


def call_within(mode, function, *args):
    with mode():
        return function(*args)


def call_switched_on(check_nan, function):
    """Call the function after set_detect_anomaly(True), and return whether it was on afterwards."""
    set_detect_anomaly(True, check_nan=check_nan)
    function()
    is_on = torch.is_anomaly_enabled()
    set_detect_anomaly(False)
    return is_on


def children_of_nodes(output):
    """Return each node of the graph of a tensor, with the nodes that it passes gradients to."""
    children = {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node in children:
            continue
        children[node] = []
        for child, _ in node.next_functions:
            if child is not None:
                children[node].append(child)
                waiting.append(child)
    return children


def count_traces(loss):
    """Return how many nodes of the graph keep the call stack of their forward."""
    count = 0
    for node in children_of_nodes(loss):
        if "traceback_" in node.metadata:
            count += 1
    return count


def count_waits(lab, device, function):
    """Return how often torch warns that the CPU waited for the GPU."""
    module = torch.get_device_module(device)  # torch.cuda
    module.set_sync_debug_mode("warn")
    texts = lab.warns(function)
    module.set_sync_debug_mode("default")
    count = 0
    for text in texts:
        if "synchronizing" in text:
            count += 1
    return count


def square_root(x):
    return x.sqrt()  # at 0 its gradient is inf


def zero_times_root(x):
    return x.sqrt() * 0  # at 0 its gradient is 0 * inf, a NaN


def count_sines(lab, check, numbers):
    return lab.count(check, torch.sin, numbers).calls["aten.sin"]


def random_numbers(size, dtype, device):
    return torch.rand(size, dtype=dtype, device=device, requires_grad=True)


def claim_anomaly(lab, device, arms, stacks, is_checking):
    """Claim what detect_anomaly adds to a step, and what it finds."""
    plain = lab.count(arms["plain"])
    anomaly = lab.count(arms["anomaly"])
    graph = children_of_nodes(plain.value[0])
    edges = sum(len(children) for children in graph.values())
    added = anomaly.calls - plain.calls
    checks = [added[name] for name in CHECKS]
    lab.claim("checks", [*checks, added.total()], equals=[edges, edges, edges, 3 * edges])

    switched = lab.count(call_switched_on, is_checking, arms["plain"])
    more = switched.operators - plain.operators
    lab.claim("switch", [more, switched.value], equals=[3 * edges, True])

    if device.type == "cuda":
        waits = [count_waits(lab, device, arms[arm]) for arm in ("plain", "anomaly")]
        lab.claim("waits", waits, equals=[0, edges])
    else:
        lab.claim("waits", lacks="a CUDA device")

    inner_nodes = 0
    for children in graph.values():
        if children:  # leaves have none
            inner_nodes += 1
    loss_with_stacks, _ = call_within(stacks, arms["plain"])
    traces = [
        count_traces(anomaly.value[0]),
        count_traces(loss_with_stacks),
        count_traces(plain.value[0]),
    ]
    lab.claim("traces", traces, equals=[inner_nodes, inner_nodes, 0])


def claim_nan_only(lab, device, anomaly):
    zero = torch.zeros(1, device=device, requires_grad=True)
    has_raised = []
    for function in (zero_times_root, square_root):
        error = lab.raises(call_within, anomaly, torch.autograd.grad, function(zero), zero)
        has_raised.append("nan" in error)
    lab.claim("nan-only", has_raised, equals=[True, False])


def claim_profilers(lab, device, arms):
    plain = lab.count(arms["plain"])
    profiled = lab.count(arms["profiler"])
    with profile() as profiler:
        arms["plain"]()
    added = profiled.operators - plain.operators
    events = len(profiler.function_events)
    lab.claim("profiler", [added, events >= 2 * plain.operators], equals=[0, True])
    if device.type == "cuda":
        marked = lab.count(call_within, emit_nvtx, arms["plain"])
        lab.claim("nvtx", marked.operators, equals=plain.operators)
    else:
        lab.claim("nvtx", lacks="a CUDA device")


def claim_gradcheck(lab, device):
    lab.axes("calls", x="numbers that go in", y="calls of sin", log="xy")
    checks = {
        "gradcheck": gradcheck,
        "fast_mode": partial(gradcheck, fast_mode=True),
        "gradgradcheck": gradgradcheck,
    }
    calls = {arm: [] for arm in checks}
    for size in lab.sweep(SIZES, "numbers to check"):
        numbers = random_numbers(size, torch.float64, device)
        for arm, check in checks.items():
            count = count_sines(lab, check, numbers)
            calls[arm].append(count)
            lab.log(size, arm=arm, calls=count)
    first_order = [2 * size + 2 for size in SIZES]
    second_order = [6 * size + 4 for size in SIZES]
    lab.claim("gradcheck", calls["gradcheck"], equals=first_order)
    lab.claim("fast", calls["fast_mode"][-1], equals=calls["fast_mode"][0])
    lab.claim("second-order", calls["gradgradcheck"], equals=second_order)

    with warnings.catch_warnings(action="ignore"):  # torch warns that float32 will likely fail
        numbers = random_numbers(64, torch.float32, device)
        error = lab.raises(gradcheck, torch.sin, numbers)
    lab.claim("float32", error[:15], equals="GradcheckError:")


def run(
    lab: Lab,
    stacks_only: bool = False,  # detect_anomaly with check_nan=False
) -> None:
    warnings.filterwarnings("ignore", "Anomaly Detection has been|Error detected in")
    device = lab.device()
    net = build_net(device)
    x = torch.randn(32, 64, device=device)
    plain = partial(train_step, net, x)
    anomaly = partial(detect_anomaly, check_nan=not stacks_only)
    stacks = partial(detect_anomaly, check_nan=False)
    arms = {
        "plain": plain,
        "anomaly": partial(call_within, anomaly, plain),
        "profiler": partial(call_within, profile, plain),
    }

    @lab.once
    def exact():
        lab.stage("a step")
        claim_anomaly(lab, device, arms, stacks, is_checking=not stacks_only)
        claim_nan_only(lab, device, anomaly)
        claim_profilers(lab, device, arms)
        claim_gradcheck(lab, device)

    lab.stage("a step with and without")
    lab.claim_ratio("anomaly-time", "anomaly/plain", at_least=2, answers=True)
    lab.claim_ratio("profiler-time", "profiler/plain", at_least=1.5)
    lab.race(**arms, seconds=0.2)
