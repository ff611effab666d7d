"""Sort a profile by self time: in total time a convolution counts four times, and cProfile sees no operator of backward.

torch.profiler writes down when each operator began and ended. Operators call operators: `conv2d` calls `convolution`, that
calls `_convolution`, and the library's routine comes last. The total time of a row is that of all it calls, so the work is
found again in every row above it. Self time leaves out what is called, and all self times add up to the whole.

`with_flops=True` knows a short list of operators. Backward of a convolution is not on it, so a step seems to do less than it
does. A row joins all calls of a name until you ask for `record_shapes` and `group_by_input_shape`. A `schedule` records a few
steps of many. It moves on with `profiler.step()`; forget that, and nothing is recorded.

cProfile, on which Lightning's AdvancedProfiler stands, sees calls from Python, and backward is one. On a GPU the CPU time of an
operator is that of its launch; kernels are events of their own, and their times have new names, without "cuda".
## Predict
Of the FLOPs of a training step of a net with three convolutions, what percentage does the profiler count, with_flops=True?
## Look for
- [counts] the profiler counts as many convolutions and products of matrices, forward and backward, as the dispatcher calls
- [nested] one conv2d is a convolution in it, and a _convolution in that: with the library's routine at least four rows
- [self] self times of all rows add up to the total time of the outermost
- [forward] of forward it counts the FLOPs that torch's FlopCounterMode counts
- [backward] of the FLOPs of a training step it counts less than half
- [shapes] three convolutions are one row, and grouped by shape three
- [label] the part that is named forward holds all three convolutions, and none of backward
- [schedule] of 8 steps, 1 to wait, 1 to warm up and 2 to record, it records 2, and without step() none
- [cprofile] cProfile sees three calls of conv2d, one of run_backward, and no convolution in backward
- [renamed] a row has self_device_time_total and no self_cuda_time_total, by which the table still sorts
- [kernels] on a GPU kernels are events of their own, if CUDA is among the activities; else there are none
## Try next
`--forget-step`: the schedule is never told that a step is done. refutes: schedule
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 13,
https://www.toymoban.com/news/detail-808122.html: find the bottleneck. Ours: all counts.
"""

import cProfile
import pstats
from functools import partial

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from tuilab import Lab

CPU = [ProfilerActivity.CPU]


def build_net(device):
    layers = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 10 * 10, 10)).to(device)


def step(net, x):
    with record_function("forward"):
        loss = net(x).logsumexp(1).sum()
    with record_function("backward"):
        return torch.autograd.grad(loss, [*net.parameters()])


def profiled(f, *args, activities=CPU, **options):
    with profile(activities=activities, **options) as profiler:
        f(*args)
    return profiler


def below(event, depth=1):  # the event and all that it calls, each with its depth
    return [(event, depth)] + [pair for child in event.cpu_children for pair in below(child, depth + 1)]


def steps_recorded(lab, net, x, is_told):
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as profiler:
        for _ in range(8):
            net(x)
            profiler.step() if is_told else None
    return 0 if lab.raises(profiler.events) else sum(event.name == "aten::addmm" for event in profiler.events())


def run(lab: Lab, forget_step: bool = False) -> None:  # never call profiler.step()
    device = lab.device()
    net, x = build_net(device), torch.randn(16, 3, 16, 16, device=device)
    counted = lab.count(step, net, x)  # the first step takes longer than others, and is not profiled
    profiler = profiled(step, net, x, record_shapes=True)
    events, rows = profiler.events(), {row.key: row for row in profiler.key_averages()}
    top = sorted(rows.values(), key=lambda row: -row.self_cpu_time_total)[:10]
    shown = [[row.key, row.count, row.self_cpu_time_total / 1e3, row.cpu_time_total / 1e3] for row in top]
    lab.table("the largest rows", shown, head=("row", "calls", "self ms", "total ms"))
    work = "convolution", "convolution_backward", "addmm", "mm"
    lab.claim("counts", [rows[f"aten::{name}"].count for name in work], equals=[counted.calls[f"aten.{name}"] for name in work])
    whole = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    lab.claim("self", sum(row.self_cpu_time_total for row in rows.values()) / whole, equals=1, tolerance=1e-6)
    (forward,) = [event for event in events if event.name == "forward"]
    for event, depth in below(forward):
        lab.span(f"depth {depth}", event.time_range.start / 1e6, event.time_range.end / 1e6, event.name.removeprefix("aten::"))
    names = [event.name for event, _ in below(forward)]
    lab.claim("label", [names.count("aten::conv2d"), names.count("aten::convolution_backward")], equals=[3, 0])
    inner, conv_rows = names[names.index("aten::conv2d") + 1 :], sum("conv" in name for name in names)
    lab.claim("nested", [*inner[:2], conv_rows >= 4 * 3], equals=["aten::convolution", "aten::_convolution", True])
    grouped = [row.count for row in profiler.key_averages(group_by_input_shape=True) if row.key == "aten::conv2d"]
    lab.claim("shapes", [rows["aten::conv2d"].count, grouped], equals=[3, [1, 1, 1]])
    lab.axes("flops", x="images", y="FLOPs of a step", log="xy")
    for images in lab.sweep([1, 4, 16], "FLOPs of a step"):
        flops = {}
        for part, f in {"forward": net, "step": partial(step, net)}.items():
            seen = profiled(f, x[:images], with_flops=True).key_averages()
            flops[part] = {"with_flops": sum(row.flops for row in seen), "all": lab.count(f, x[:images]).flops}
        for arm, number in flops["step"].items():
            lab.log(images, arm=arm, flops=number)
    lab.claim("forward", flops["forward"]["with_flops"], equals=flops["forward"]["all"])
    lab.claim("backward", 100 * flops["step"]["with_flops"] / flops["step"]["all"], at_most=50, answers=True)
    lab.stage("steps of a schedule, and cProfile")
    lab.claim("schedule", [steps_recorded(lab, net, x, is_told) for is_told in (not forget_step, False)], equals=[2, 0])
    python = cProfile.Profile()
    python.runcall(step, net, x)
    stats, words = pstats.Stats(python).stats.items(), (".conv2d>", "'run_backward'", "convolution_backward")
    seen = [sum(calls for (_, _, name), (calls, *_) in stats if word in name) for word in words]
    lab.claim("cprofile", seen, equals=[3, 1, 0])
    names = [hasattr(top[0], f"self_{kind}_time_total") for kind in ("device", "cuda")]
    lab.claim("renamed", [*names, lab.raises(profiler.key_averages().table, "self_cuda_time_total")], equals=[True, False, ""])
    lacks = "" if device.type == "cuda" else "a CUDA device"
    both = [] if lacks else [profiled(net, x, activities=kinds).events() for kinds in (CPU, [*CPU, ProfilerActivity.CUDA])]
    kernels = [any(event.device_type.name == "CUDA" for event in events) for events in both]
    lab.claim("kernels", kernels, equals=[False, True], lacks=lacks)
