"""Which CUDA devices torch finds, and why it finds none."""

import os
from typing import Any

import torch

from tuilab.probes import NotKnown, gather
from tuilab.text.display import show


def why_no_cuda() -> str:
    """Return why CUDA cannot be used here, in torch's own words where it has some; nothing when it can."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is a build without CUDA"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = "" if visible is None else f" (CUDA_VISIBLE_DEVICES is {show(visible, 60) or 'empty'})"
    return f"torch sees no CUDA device: {_refusal()}{hidden}"


def _refusal() -> str:
    """Return what torch says where it cannot start CUDA; where it could not even count devices, this makes no context."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as problem:
        return first_sentence(problem)
    return "it reports none"


def first_sentence(problem: Exception) -> str:
    """Return the first sentence of an error; those of CUDA go on with advice for who wrote the kernel."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return show(line.partition(". ")[0].rstrip("."), 300)


def count() -> int:
    """Return how many GPUs torch sees; it touches none."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def architectures() -> list[str]:
    """Return for what this torch was compiled: sm_90 is machine code, compute_90 what a driver translates."""
    return torch.cuda.get_arch_list()


def facts() -> dict[str, Any]:
    """Return the CUDA devices that torch sees; this initialises CUDA's runtime."""
    return gather({"devices": _devices})


def _devices() -> list[dict[str, Any]]:
    if reason := why_no_cuda():
        raise NotKnown(reason)
    return [_facts_of(torch.cuda.get_device_properties(index)) for index in range(count())]


def _facts_of(device: Any) -> dict[str, Any]:
    """Describe one device; its place in the list is CUDA's index, its uuid ends NVML's."""
    return gather(
        {
            "name": lambda: show(device.name, 200),
            "capability": lambda: f"{device.major}.{device.minor}",
            "uuid": lambda: str(device.uuid),
            "memory_bytes": lambda: int(device.total_memory),
            "multiprocessors": lambda: int(device.multi_processor_count),
            "l2_bytes": lambda: int(device.L2_cache_size),
        }
    )
