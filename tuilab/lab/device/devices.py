"""The CPU as a device, the Device of a torch.device, and the GPUs that this process uses."""

import contextlib
import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import torch

from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.interface import AllocatorMemory, Clock, Device
from tuilab.lab.device.torch_gpus import count

gpu = functools.cache(Cuda)  # one object for each GPU, because its events are used again


class Cpu:
    """The host: the work of a call is done when it returns."""

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
        while clock() < until:  # no sleep, which would release the core
            pass

    def is_capturing(self) -> bool:
        return False

    def held(self) -> AllocatorMemory | None:
        return None

    def reset_peak(self) -> None:
        pass


_HOST = Cpu()


def door(device: torch.device) -> Device:
    """Return the Device of a torch.device; without an index it is the current GPU.

    Raises ValueError if it is neither the CPU nor a CUDA device.
    """
    if device.type == "cpu":
        return _HOST
    if device.type != "cuda":
        raise ValueError(f"device takes the CPU or a CUDA device, not {device}")
    index = device.index
    if index is None:
        index = torch.cuda.current_device()
    return gpu(index)


def in_use(device: torch.device | None = None) -> Device:
    """Return the GPU that this process uses, or the CPU if it does not use CUDA.

    It is `device` if that is a GPU, else the current one. A question to a GPU that this process
    does not use would take memory there, and fail if it is full.
    """
    if not torch.cuda.is_initialized():
        return _HOST
    if device is None or device.type != "cuda":
        device = torch.device("cuda")
    return door(device)


def all_in_use() -> Iterator[Cuda]:
    """Yield the GPUs on which this process has memory."""
    if not torch.cuda.is_initialized():
        return
    for index in range(count()):
        if torch.cuda.memory_reserved(index):
            yield gpu(index)


def give_back() -> None:
    """Return unused GPU memory to the driver, for new processes."""
    with suppress(RuntimeError):  # a GPU that has failed in this process
        for device in all_in_use():
            device.empty_cache()


def memory_summary() -> str:
    """Return torch's summary of the memory of the GPUs in use; empty if it fails."""
    try:
        return "\n".join(torch.cuda.memory_summary(gpu.index) + "\n" for gpu in all_in_use())
    except RuntimeError:
        return ""
