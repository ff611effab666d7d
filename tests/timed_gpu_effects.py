"""Measure the effects of the GPU of `tests/fakes/timed_gpu.py`, and print them as JSON.

A process of its own runs this, because the model has to be loaded before torch. All times are those
of the model's kernels, which do not depend on the machine.

    python -m tests.timed_gpu_effects LIBRARY
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.fakes import timed_gpu


def main() -> None:
    timed_gpu.load(Path(sys.argv[1]))
    # imported here: the model has to be loaded first
    import torch

    model = torch.ops.cuda_values

    def count(call: Callable[[], Any]) -> dict[str, int]:
        """Return what a call adds to the counts of the model."""
        before = model.time_counts()
        call()
        after = model.time_counts()
        names = ("launches", "busy_ns", "waits")
        return {name: after[at] - before[at] for at, name in enumerate(names)}

    def make_busy() -> None:
        """Keep the GPU busy for more than four seconds."""
        torch.mm(large, large)

    def is_idle() -> bool:
        return bool(model.queue_end() <= model.now())

    effects: dict[str, Any] = {}
    square = torch.randn(64, 64, device="cuda")
    half = square.bfloat16()
    large = torch.randn(1024, 1024, device="cuda", dtype=torch.float64)
    numbers = torch.randn(1 << 16, device="cuda")

    # speeds
    effects["ieee"] = count(lambda: square @ square)
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    effects["tf32"] = count(lambda: square @ square)
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    effects["bfloat16"] = count(lambda: half @ half)
    effects["addition"] = count(lambda: numbers + numbers)
    effects["view"] = count(lambda: square.t().reshape(32, 2, 64))

    # launches
    tensors = [torch.zeros(8, device="cuda", requires_grad=True) for _ in range(50)]
    for tensor in tensors:
        tensor.grad = torch.ones_like(tensor)
    for name, optimizer in {
        "single": torch.optim.Adam(tensors, foreach=False),
        "foreach": torch.optim.Adam(tensors, foreach=True),
        "fused": torch.optim.Adam(tensors, fused=True),
    }.items():
        optimizer.step()
        effects[name] = count(optimizer.step)

    def compute(values: torch.Tensor) -> torch.Tensor:
        return (torch.tanh(values * 2) + 1).sin() @ square

    for name, function in {
        "eager": compute,
        "compiled": torch.compile(compute),
        "cuda_graph": torch.compile(compute, mode="reduce-overhead"),
    }.items():
        function(square)
        effects[name] = count(partial(function, square))

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute(square)
    effects["replay"] = count(graph.replay)

    # waits
    pageable = torch.randn(1 << 16)
    pinned = pageable.pin_memory()
    torch.cuda.synchronize()
    make_busy()
    effects["is_busy_after_launch"] = not is_idle()
    effects["pinned"] = count(lambda: pinned.to("cuda", non_blocking=True))
    effects["is_busy_after_pinned_copy"] = not is_idle()
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    numbers + numbers
    end.record()
    effects["is_event_pending"] = not end.query()
    effects["pageable"] = count(lambda: pageable.to("cuda", non_blocking=True))
    effects["is_idle_after_pageable_copy"] = is_idle()
    effects["is_event_done"] = end.query()
    effects["event_ms"] = start.elapsed_time(end)
    numbers + numbers
    effects["item"] = count(lambda: numbers[0].item())
    effects["is_idle_after_item"] = is_idle()

    # memory
    effects["retries"] = count_retries()
    print(json.dumps(effects))


def count_retries() -> int:
    """Return how often the driver has no room for a block that is larger than all freed blocks."""
    import torch

    before = torch.cuda.memory_stats()["num_alloc_retries"]
    blocks = [torch.empty(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(15)]
    blocks.clear()
    torch.empty(16 << 20, dtype=torch.uint8, device="cuda")
    return int(torch.cuda.memory_stats()["num_alloc_retries"] - before)


if __name__ == "__main__":
    main()
