"""What torch holds on the GPUs that this process was given, told twice a second at most, and never while something is timed."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.devices import door
from tuilab.record.events import Event, GpuHeld

_PERIOD_S = 0.5


class Holdings:
    """The GPUs that are looked at: none on the CPU, so that a look costs nothing there."""

    def __init__(self, record: Callable[[Event], object], *, is_timing: bool) -> None:
        self.gpus: dict[int, Cuda] = {}
        self._record = record
        self._due_s = 0.0
        self._is_timing = is_timing

    def watch(self, device: torch.device) -> None:
        """Look at a GPU from now on."""
        gpu = door(device)  # without an index it is the current GPU
        if isinstance(gpu, Cuda):
            self.gpus.setdefault(gpu.index, gpu)

    @contextmanager
    def kept_quiet(self) -> Iterator[None]:
        """Let arms that log tell nothing meanwhile: their blocks are timed."""
        was_timing, self._is_timing = self._is_timing, True
        try:
            yield
        finally:
            self._is_timing = was_timing

    def tell(self) -> None:
        """Tell what is held, unless a block may be timed, or it was told just now."""
        if not self._is_timing:
            self.tell_between_blocks()

    def tell_between_blocks(self) -> None:
        """Tell what is held, unless it was told just now."""
        if not self.gpus or time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + _PERIOD_S
        self.tell_last()

    def tell_after_failure(self) -> None:
        """Tell what was held when the scenario failed, unless torch is in no state to say it."""
        with suppress(
            RuntimeError, AssertionError
        ):  # as it raises after an error of CUDA, or without a driver
            self.tell_last()

    def tell_last(self) -> None:
        """Tell what is held, however lately it was told."""
        for gpu in self.gpus.values():
            if held := gpu.holds():
                self._record(GpuHeld(gpu.uuid, *held))
