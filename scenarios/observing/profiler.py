"""Sort a profile by self time: in total time a convolution counts four times.

A step is slow, and you want to know which operator takes the time. torch.profiler records when
each operator began and ended. Operators call operators: `conv2d` calls `convolution`, that calls
`_convolution`, and the routine of the library comes last. The total time of a row includes
everything that the operator calls. So the same work appears in every row above it. Self time
leaves out the operators that were called, and the self times of all rows add up to the whole.

Three more things surprise. `with_flops=True` knows a short list of operators, and backward of a
convolution is not on it. So a step seems to do less than it does. A row joins all calls of a name
until you ask for `record_shapes=True` and `group_by_input_shape=True`. And a `schedule`, which
records a few steps of many, advances with `profiler.step()`. If you forget the call, nothing is
recorded.

cProfile, on which Lightning's AdvancedProfiler is built, sees calls from Python, and the whole
backward is one such call. On a GPU the CPU time of an operator is the time of its launch. Kernels
are events of their own. The columns of their times are called `device_time`, no longer
`cuda_time`.

In practice: profile two or three steps after a warm-up, with `schedule(wait=1, warmup=1,
active=2)` and `profiler.step()` after each step. Print
`profiler.key_averages().table(sort_by="self_cpu_time_total")`, on a GPU sorted by
`self_device_time_total`. Name the parts of your step with `record_function`.
## Predict
A net has three convolutions. What percentage of the FLOPs of its training step does the profiler
count with `with_flops=True`?
## Look for
- [counts] the profiler counts as many convolutions, backwards of convolutions, addmm and mm as the
  dispatcher calls
- [nested] a conv2d contains a convolution and that a _convolution; three conv2d make 12 events with
  "conv" in their name or more
- [self] the self times of all rows add up to the total time of the outermost events, to one
  millionth
- [forward] of a forward with_flops counts as many FLOPs as torch's FlopCounterMode
- [backward] of a training step with_flops counts at most 50 % of the FLOPs
- [shapes] three calls of conv2d are one row, and grouped by shape three rows
- [label] the part named "forward" contains all three conv2d and no backward of a convolution
- [schedule] of 8 steps with wait=1, warmup=1 and active=2 two are recorded, and without step() none
- [cprofile] cProfile sees 3 calls of conv2d, 1 call of run_backward and 0 of the backward of a
  convolution
- [renamed] a row has self_device_time_total but no self_cuda_time_total, which table() still sorts
  by
- [kernels] on a GPU kernels are events of their own with ProfilerActivity.CUDA, and without it
  there are none
## Try next
`--forget-step`: `profiler.step()` is not called, so the schedule stays in its first step.
refutes: schedule
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 13,
https://www.toymoban.com/news/detail-808122.html: profile the code, with cProfile if need be. Ours:
torch.profiler and all counts.
"""

import cProfile
import pstats
from functools import partial

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from tuilab import Lab

CPU = [ProfilerActivity.CPU]
WORK = ("convolution", "convolution_backward", "addmm", "mm")  # operators with nearly all FLOPs


def build_net(device):
    return nn.Sequential(  # (images, 3, 16, 16)
        nn.Conv2d(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3),  # (images, 32, 10, 10)
        nn.Flatten(),
        nn.Linear(32 * 10 * 10, 10),
    ).to(device)


def train_step(net, images):
    with record_function("forward"):
        loss = net(images).logsumexp(1).sum()
    with record_function("backward"):
        return torch.autograd.grad(loss, list(net.parameters()))


def profile_call(function, *args, activities=CPU, **options):
    with profile(activities=activities, **options) as profiler:
        function(*args)
    return profiler


def events_below(event, depth=1):
    """Return the event and all that it calls, each with its depth."""
    events = [(event, depth)]
    for child in event.cpu_children:
        events += events_below(child, depth + 1)
    return events


def count_recorded_steps(lab, net, images, calls_step):
    two_steps = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(activities=CPU, schedule=two_steps) as profiler:
        for _ in range(8):
            net(images)
            if calls_step:
                profiler.step()
    if lab.raises(profiler.events):  # nothing was recorded
        return 0
    steps = 0
    for event in profiler.events():
        if event.name == "aten::addmm":  # one Linear in each step
            steps += 1
    return steps


def count_python_calls(profiler, word):
    """Return how many calls cProfile saw of functions with this word in their name."""
    count = 0
    for (_, _, name), (calls, *_) in pstats.Stats(profiler).stats.items():
        if word in name:
            count += calls
    return count


def show_largest(lab, rows):
    largest = sorted(rows.values(), key=lambda row: row.self_cpu_time_total, reverse=True)
    lines = []
    for row in largest[:10]:
        self_ms = row.self_cpu_time_total / 1000
        total_ms = row.cpu_time_total / 1000
        lines.append([row.key, row.count, self_ms, total_ms])
    lab.table("the largest rows", lines, head=("row", "calls", "self ms", "total ms"))


def claim_rows(lab, profiler, calls):
    """Claim what the rows of a step count; `calls` are those of the dispatcher."""
    rows = {row.key: row for row in profiler.key_averages()}
    show_largest(lab, rows)
    profiled = [rows[f"aten::{name}"].count for name in WORK]
    dispatched = [calls[f"aten.{name}"] for name in WORK]
    lab.claim("counts", profiled, equals=dispatched)

    self_us = sum(row.self_cpu_time_total for row in rows.values())
    whole_us = 0
    for event in profiler.events():
        if event.cpu_parent is None:
            whole_us += event.cpu_time_total
    lab.claim("self", self_us / whole_us, equals=1, tolerance=1e-6)

    by_shape = []
    for row in profiler.key_averages(group_by_input_shape=True):
        if row.key == "aten::conv2d":
            by_shape.append(row.count)
    lab.claim("shapes", [rows["aten::conv2d"].count, by_shape], equals=[3, [1, 1, 1]])

    row = rows["aten::conv2d"]
    has_columns = [hasattr(row, "self_device_time_total"), hasattr(row, "self_cuda_time_total")]
    error = lab.raises(profiler.key_averages().table, "self_cuda_time_total")
    lab.claim("renamed", [*has_columns, error], equals=[True, False, ""])


def claim_tree(lab, profiler):
    """Show the part that is named forward as a picture, and claim what it contains."""
    (forward,) = [event for event in profiler.events() if event.name == "forward"]
    names = []
    for event, depth in events_below(forward):
        began_s = event.time_range.start / 1e6
        ended_s = event.time_range.end / 1e6
        lab.span(f"depth {depth}", began_s, ended_s, event.name.removeprefix("aten::"))
        names.append(event.name)
    label_counts = [names.count("aten::conv2d"), names.count("aten::convolution_backward")]
    lab.claim("label", label_counts, equals=[3, 0])

    first = names.index("aten::conv2d")
    inner = names[first + 1 : first + 3]
    conv_events = sum("conv" in name for name in names)
    nested = [*inner, conv_events >= 12]
    lab.claim("nested", nested, equals=["aten::convolution", "aten::_convolution", True])


def claim_flops(lab, net, images):
    lab.axes("flops", x="images", y="FLOPs of a step", log="xy")
    for count in lab.sweep([1, 4, 16], "FLOPs of a step"):
        batch = images[:count]
        profiled, counted = {}, {}
        for part, function in {"forward": net, "step": partial(train_step, net)}.items():
            rows = profile_call(function, batch, with_flops=True).key_averages()
            profiled[part] = sum(row.flops for row in rows)
            counted[part] = lab.count(function, batch).flops
        lab.log(count, arm="with_flops", flops=profiled["step"])
        lab.log(count, arm="all", flops=counted["step"])
    lab.claim("forward", profiled["forward"], equals=counted["forward"])
    percent = 100 * profiled["step"] / counted["step"]
    lab.claim("backward", percent, at_most=50, unit="%", answers=True)


def has_kernels(function, *args, activities):
    for event in profile_call(function, *args, activities=activities).events():
        if event.device_type.name == "CUDA":
            return True
    return False


def run(
    lab: Lab,
    forget_step: bool = False,  # never call profiler.step()
) -> None:
    device = lab.device()
    net = build_net(device)
    images = torch.randn(16, 3, 16, 16, device=device)

    lab.stage("a step")
    counted = lab.count(train_step, net, images)  # also a warm-up: the first step takes longer
    profiler = profile_call(train_step, net, images, record_shapes=True)
    claim_rows(lab, profiler, counted.calls)
    claim_tree(lab, profiler)

    claim_flops(lab, net, images)

    lab.stage("steps of a schedule")
    with_step = count_recorded_steps(lab, net, images, calls_step=not forget_step)
    without_step = count_recorded_steps(lab, net, images, calls_step=False)
    lab.claim("schedule", [with_step, without_step], equals=[2, 0])

    lab.stage("cProfile")
    python_profiler = cProfile.Profile()
    python_profiler.runcall(train_step, net, images)
    python_calls = []
    for word in (".conv2d>", "'run_backward'", "convolution_backward"):
        python_calls.append(count_python_calls(python_profiler, word))
    lab.claim("cprofile", python_calls, equals=[3, 1, 0])

    if device.type != "cuda":
        lab.claim("kernels", lacks="a CUDA device")
        return
    cpu_only = has_kernels(net, images, activities=CPU)
    both = has_kernels(net, images, activities=[*CPU, ProfilerActivity.CUDA])
    lab.claim("kernels", [cpu_only, both], equals=[False, True])
