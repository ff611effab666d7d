"""The CUDA devices that torch finds, and why it finds none."""

import os
from typing import Any

import torch

from tuilab.probes import NotKnown, gather
from tuilab.text.display import show


def why_no_cuda() -> str:
    """Return why CUDA cannot be used, with the error of torch; an empty string if it can."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is a build without CUDA"
    reason = f"torch sees no CUDA device: {_refusal()}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return reason
    return f"{reason} (CUDA_VISIBLE_DEVICES is {show(visible, 60) or 'empty'})"


def _refusal() -> str:
    """Return the error of torch when it starts CUDA, which creates no context without devices."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as problem:
        return first_sentence(problem)
    return "it reports none"


def first_sentence(problem: Exception) -> str:
    """Return the first sentence of an error; those of CUDA continue with advice for kernels."""
    lines = str(problem).splitlines()
    line = lines[0] if lines else type(problem).__name__
    return show(line.partition(". ")[0].rstrip("."), 300)


def count() -> int:
    """Return the number of GPUs that torch sees, without using them."""
    if not torch.cuda.is_available():
        return 0
    return torch.cuda.device_count()


def architectures() -> list[str]:
    """Return the targets of this torch: sm_90 is machine code, the driver translates compute_90."""
    return torch.cuda.get_arch_list()


def facts() -> dict[str, Any]:
    """Return the CUDA devices that torch sees; this initialises CUDA's runtime."""
    return gather({"devices": _devices})


def _devices() -> list[dict[str, Any]]:
    """Return the facts of each GPU; raise NotKnown if there is none."""
    reason = why_no_cuda()
    if reason:
        raise NotKnown(reason)
    return [_facts_of(torch.cuda.get_device_properties(index)) for index in range(count())]


def _facts_of(device: Any) -> dict[str, Any]:
    """Return the facts of a device; its UUID is the end of the UUID in NVML."""
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
