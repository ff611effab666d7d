"""Make runs repeatable, but switch off the filling of empty tensors.

Two runs with the same seed should give the same weights. On a GPU the weights often differ, because
some kernels add with atomic operations, in an order that changes from run to run. The switch
`torch.use_deterministic_algorithms(True)` chooses other kernels. If an operator has no
deterministic kernel, it raises an error; with `warn_only=True` it only warns. On a CPU the switch
affects only a few operators.

The switch has a second effect that is easy to miss, because
`torch.utils.deterministic.fill_uninitialized_memory` is True by default. With the switch,
`torch.empty`, `empty_like` and `resize_` fill new memory. Floats become NaN, and integers become
the largest number. Many operators of torch allocate their results by `empty` and then overwrite
them, so each such result is written twice. The filling helps to find code that reads memory before
it is written. It changes no result of correct code. So you can switch the filling off, and the
kernels stay deterministic. The filling can also mislead you. If a random difference disappears with
the switch, the cause may be a read of unwritten memory, and not the order of a sum.

The switch does not set seeds. The results can still differ if you change the number of threads, the
batch size, the version of torch or the GPU model. Each change can alter the order of a sum (see
batch-invariance). On a GPU, older versions of torch also need the environment variable
`CUBLAS_WORKSPACE_CONFIG=:4096:8`.

In practice: call `torch.manual_seed(seed)` and `torch.use_deterministic_algorithms(True)`, and set
`torch.utils.deterministic.fill_uninitialized_memory = False`. Leave the filling on in tests, where
a NaN shows memory that was never written. If you only compare final losses over several seeds,
leave the switch off.
## Predict
torch.empty creates 20 tensors of 4 MiB on a CPU. How many times as long does this take with
use_deterministic_algorithms(True) as without?
## Look for
- [default] use_deterministic_algorithms(True) fills empty tensors unless fill_uninitialized_memory
  is set to False
- [nan] with use_deterministic_algorithms(True), torch.empty(8) has 8 NaN in float32, and 8 times
  the largest number in int64
- [forgotten] with use_deterministic_algorithms(True), a sum over torch.empty(8) is NaN if only 7 of
  the 8 numbers were written
- [fills] forward and backward of a net with 4 convolutions fill at least 10 more tensors with
  use_deterministic_algorithms(True) than without
- [no-fill] with fill_uninitialized_memory = False, a net with 4 convolutions fills as many tensors
  with use_deterministic_algorithms(True) as without
- [same-bits] with use_deterministic_algorithms(True), the weights after 10 steps are the same bit
  for bit with fill_uninitialized_memory on and off
- [repeat] with use_deterministic_algorithms(True), two trainings of 10 steps from the same seed end
  with the same weights bit for bit
- [cpu-same] on a CPU, the weights after 10 steps are the same bit for bit with
  use_deterministic_algorithms(True) and without
- [seed] with use_deterministic_algorithms(True), two layers have different weights, and the same
  weights if manual_seed(0) precedes each
- [raises] with use_deterministic_algorithms(True), max_unpool2d and put_ without accumulate raise a
  RuntimeError, and index_add and scatter_add do not
- [warns] with use_deterministic_algorithms(True, warn_only=True), max_unpool2d and put_ without
  accumulate each warn instead of raising
- [gpu-raises] on a GPU with use_deterministic_algorithms(True), the backward of reflection_pad2d
  and of grid_sample raises a RuntimeError
- [gpu-index-add] on a GPU, 20 calls of index_add of 1,000,000 numbers give 1 result with
  use_deterministic_algorithms(True), and at least 2 different results without
- [empty-time] on a CPU, 20 calls of torch.empty for 4 MiB take at least 5 times as long with
  use_deterministic_algorithms(True) as without
- [fill-time] on a CPU with use_deterministic_algorithms(True), torch.empty of 4 MiB takes at least
  5 times as long with fill_uninitialized_memory as without
- [step-time] on a CPU, a step of a net with 4 convolutions takes at most 1.5 times as long with
  use_deterministic_algorithms(True) as without
## Try next
`--filling off`: fill_uninitialized_memory is False for all claims. The calls of torch.empty are
then as fast as without the switch. refutes: default, nan, forgotten, fills
## Source
- PyTorch documentation, "Reproducibility" in the notes and `torch.utils.deterministic`,
  https://docs.pytorch.org/docs/stable/notes/randomness.html.
- "perf(determinism): stop filling uninitialized memory under --deterministic-mode",
  https://github.com/NVIDIA/Megatron-LM/pull/7093: the filling cost about 15 % of TFLOP/s.
- "[docs][determinism] Note that use_deterministic_algorithms also fills uninitialized memory",
  https://github.com/pytorch/pytorch/issues/193317: why the switch is a weak test for races.
- Ours: the counts, the times and the comparison bit for bit.
"""

import os
from contextlib import contextmanager
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
import torch.utils.deterministic
from torch import nn
from torch.profiler import ProfilerActivity, profile

from tuilab import Lab

STEPS = 10
EMPTY_TENSORS = 20
EMPTY_NUMBERS = 1 << 20  # 4 MiB in float32


@contextmanager
def deterministic(fills, warn_only=False):
    """Switch deterministic algorithms on in a block, with or without filling."""
    settings = torch.utils.deterministic
    is_filling = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    settings.fill_uninitialized_memory = fills
    try:
        yield
    finally:
        settings.fill_uninitialized_memory = is_filling
        torch.use_deterministic_algorithms(False)


class Training:
    """A convolutional net, and images."""

    def __init__(self, device, depth=4):
        torch.manual_seed(0)
        layers = []
        channels = 3
        for _ in range(depth):
            layers.append(nn.Conv2d(channels, 16, 3, padding=1))
            layers.append(nn.BatchNorm2d(16))
            layers.append(nn.ReLU())
            channels = 16
        head = [nn.AvgPool2d(16), nn.Flatten(), nn.Linear(16, 10)]
        self.net = nn.Sequential(*layers, *head).to(device)
        self.images = torch.randn(8, 3, 16, 16).to(device)

    def gradients(self):
        loss = self.net(self.images).square().mean()
        return torch.autograd.grad(loss, list(self.net.parameters()))

    def train(self):
        """Return all weights after some steps of SGD."""
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for _ in range(STEPS):
            for parameter, gradient in zip(self.net.parameters(), self.gradients(), strict=True):
                parameter.grad = gradient
            optimizer.step()
        return nn.utils.parameters_to_vector(self.net.parameters()).detach()


def train_from_seed(device):
    return Training(device).train()


def count_fills(function):
    """Return how many tensors the function fills with one number."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        function()
    return sum(event.name == "aten::fill_" for event in profiler.events())


def make_empty_tensors(device):
    for _ in range(EMPTY_TENSORS):
        torch.empty(EMPTY_NUMBERS, device=device)


def call_deterministic(fills, function):
    with deterministic(fills):
        return function()


def max_unpool(device):
    pooled, places = F.max_pool2d(torch.ones(1, 1, 4, 4, device=device), 2, return_indices=True)
    return F.max_unpool2d(pooled, places, 2)


def put(device):
    place = torch.tensor([0], device=device)
    return torch.zeros(4, device=device).put_(place, torch.ones(1, device=device))


def index_add(device):
    place = torch.tensor([0, 0], device=device)
    return torch.zeros(4, device=device).index_add(0, place, torch.ones(2, device=device))


def scatter_add(device):
    place = torch.tensor([0, 0], device=device)
    return torch.zeros(4, device=device).scatter_add(0, place, torch.ones(2, device=device))


def pad_backward(device):
    image = torch.ones(1, 1, 4, 4, device=device, requires_grad=True)
    return torch.autograd.grad(F.pad(image, (1, 1, 1, 1), mode="reflect").sum(), image)


def sample_backward(device):
    image = torch.ones(1, 1, 4, 4, device=device, requires_grad=True)
    grid = torch.zeros(1, 2, 2, 2, device=device)
    return torch.autograd.grad(F.grid_sample(image, grid, align_corners=False).sum(), image)


def error_classes(lab, functions, device):
    errors = []
    for function in functions:
        errors.append(lab.raises(function, device).partition(":")[0])
    return errors


def claim_filling(lab, device, fills):
    lab.stage("empty tensors")
    with deterministic(fills):
        floats = torch.empty(8, device=device)
        integers = torch.empty(8, dtype=torch.int64, device=device)
        partly = torch.empty(8, device=device)
        partly[:7] = 1
        total = partly.sum()
        is_filled = torch.utils.deterministic.fill_uninitialized_memory
    lab.claim("default", is_filled)
    largest = torch.iinfo(torch.int64).max
    counts = [floats.isnan().sum().item(), (integers == largest).sum().item()]
    lab.claim("nan", counts, equals=[8, 8])
    lab.claim("forgotten", total.isnan().item())

    lab.axes("fills", x="convolutions of the net", y="fills in forward and backward")
    for depth in lab.sweep(range(1, 5), "fills of deeper nets"):
        gradients = Training(device, depth).gradients
        without = count_fills(gradients)
        with_switch = count_fills(partial(call_deterministic, fills, gradients))
        not_filled = count_fills(partial(call_deterministic, False, gradients))
        lab.log(depth, arm="without the switch", fills=without)
        lab.log(depth, arm="switch", fills=with_switch)
        lab.log(depth, arm="switch, no filling", fills=not_filled)
    lab.claim("fills", with_switch - without, at_least=10)
    lab.claim("no-fill", not_filled, equals=without)


def claim_bits(lab, device, fills):
    lab.stage("bit for bit")
    plain = train_from_seed(device)
    with deterministic(fills):
        first = train_from_seed(device)
        second = train_from_seed(device)
        nets = [nn.Linear(8, 8).weight for _ in range(2)]
        seeded = []
        for _ in range(2):
            torch.manual_seed(0)
            seeded.append(nn.Linear(8, 8).weight)
    with deterministic(False):
        unfilled = train_from_seed(device)
    lab.claim("same-bits", torch.equal(first, unfilled))
    lab.claim("repeat", torch.equal(first, second))
    lacks = "" if device.type == "cpu" else "--device cpu"
    lab.claim("cpu-same", torch.equal(first, plain), lacks=lacks)
    lab.claim("seed", [torch.equal(*nets), torch.equal(*seeded)], equals=[False, True])


def count_results(device):
    """Return how many different results 20 calls of index_add give."""
    values = torch.randn(1_000_000).to(device)
    places = torch.randint(10, (1_000_000,)).to(device)
    results = set()
    for _ in range(20):
        sums = torch.zeros(10, device=device).index_add(0, places, values)
        results.add(tuple(sums.tolist()))
    return len(results)


def claim_errors(lab, device, fills):
    lab.stage("operators without a deterministic kernel")
    functions = [max_unpool, put, index_add, scatter_add]
    with deterministic(fills):
        errors = error_classes(lab, functions, device)
    lab.claim("raises", errors, equals=["RuntimeError", "RuntimeError", "", ""])
    with deterministic(fills, warn_only=True):
        warnings = []
        for function in (max_unpool, put):
            texts = lab.warns(function, device)
            warnings.append(sum("deterministic implementation" in text for text in texts))
    lab.claim("warns", warnings, equals=[1, 1])

    if device.type != "cuda":
        lab.claim("gpu-raises", lacks="a CUDA device")
        lab.claim("gpu-index-add", lacks="a CUDA device")
        return
    with deterministic(fills):
        errors = error_classes(lab, [pad_backward, sample_backward], device)
        fixed_results = count_results(device)
    lab.claim("gpu-raises", errors, equals=["RuntimeError", "RuntimeError"])
    is_as_said = [count_results(device) >= 2, fixed_results]
    lab.claim("gpu-index-add", is_as_said, equals=[True, 1])


def run(
    lab: Lab,
    filling: Literal["default", "off"] = "default",  # fill_uninitialized_memory with the switch
) -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for older versions of torch
    device = lab.device()
    fills = filling == "default" and torch.utils.deterministic.fill_uninitialized_memory

    @lab.once
    def exact():
        claim_filling(lab, device, fills)
        claim_bits(lab, device, fills)
        claim_errors(lab, device, fills)

    lab.stage("timing")
    lacks = "" if device.type == "cpu" else "--device cpu"
    lab.claim_ratio("empty-time", "switch/without", at_least=5, answers=True, lacks=lacks)
    lab.claim_ratio("fill-time", "switch/no_filling", at_least=5, lacks=lacks)
    lab.claim_ratio("step-time", "step_switch/step", at_most=1.5, lacks=lacks)
    make = partial(make_empty_tensors, device)
    lab.race(
        without=make,
        switch=partial(call_deterministic, fills, make),
        no_filling=partial(call_deterministic, False, make),
        seconds=0.2,
    )
    gradients = Training(device).gradients
    lab.race(
        step=gradients,
        step_switch=partial(call_deterministic, fills, gradients),
        seconds=0.2,
    )
