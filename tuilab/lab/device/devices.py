"""The CPU as a device, what to ask of a torch.device, and which GPUs this process uses."""

import contextlib
import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import torch

from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.interface import AllocatorMemory, Clock, Device
from tuilab.lab.device.torch_gpus import count

gpu = functools.cache(Cuda)  # one of each, as its events are used again and again


class Cpu:
    """The host: what it was told is done when the call returns."""

    type = "cpu"
    index = None
    uuid = ""

    def wait(self) -> None:
        pass

    def selected(self) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def make_ready(self) -> None:
        pass

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def stream_ns(self) -> int | None:
        return None

    def is_idle(self) -> bool:
        return True

    def delay(self, nanoseconds: float, clock: Clock) -> None:
        until = clock() + nanoseconds
        while clock() < until:  # sleeping would give the core away
            pass

    def is_capturing(self) -> bool:
        return False

    def held(self) -> AllocatorMemory | None:
        return None

    def reset_peak(self) -> None:
        pass


_HOST = Cpu()


def door(device: torch.device) -> Device:
    """Return what to ask of a device; of CUDA without an index it is the current one. ValueError for one of a third kind."""
    if device.type == "cpu":
        return _HOST
    if device.type != "cuda":
        raise ValueError(f"device takes the CPU or a CUDA device, not {device}")
    return gpu(torch.cuda.current_device() if device.index is None else device.index)


def in_use(device: torch.device | None = None) -> Device:
    """Return the GPU that this process works on, `device` if it is one; the CPU where CUDA does not run in this process.

    To ask a GPU that nobody here uses would take memory of it, and fail where others have all of it.
    """
    if not torch.cuda.is_initialized():
        return _HOST
    return door(device if device is not None and device.type == "cuda" else torch.device("cuda"))


def all_in_use() -> Iterator[Cuda]:
    """Yield the GPUs on which this process holds memory; work on a tensor holds some."""
    if torch.cuda.is_initialized():
        yield from (gpu(index) for index in range(count()) if torch.cuda.memory_reserved(index))


def give_back() -> None:
    """Give back to the driver what torch holds here and nobody uses: for processes that are to find as much as this one did."""
    with suppress(RuntimeError):  # a GPU that has failed in this process
        for device in all_in_use():
            device.empty_cache()


def memory_summary() -> str:
    """Return torch's account of the memory of the GPUs that this process uses; nothing where that cannot be had."""
    try:
        return "\n".join(torch.cuda.memory_summary(gpu.index) + "\n" for gpu in all_in_use())
    except RuntimeError:
        return ""
