"""Record the memory that torch holds on GPUs.

At most twice a second, never during a timed block.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.devices import door
from tuilab.record.events import Event, GpuHeld

_PERIOD_S = 0.5  # between two records


class Holdings:
    """Records the memory of the watched GPUs; on a CPU there are none, so it costs nothing."""

    def __init__(self, record: Callable[[Event], object], *, is_timing: bool) -> None:
        self.gpus: dict[int, Cuda] = {}
        self._record = record
        self._due_s = 0.0
        self._is_timing = is_timing

    def watch(self, device: torch.device) -> None:
        """Watch a GPU from now on; the CPU has nothing to watch."""
        gpu = door(device)  # without an index it is the current GPU
        if isinstance(gpu, Cuda):
            self.gpus.setdefault(gpu.index, gpu)

    @contextmanager
    def kept_quiet(self) -> Iterator[None]:
        """Record nothing in a `with` block, because arms that log are timed."""
        was_timing = self._is_timing
        self._is_timing = True
        try:
            yield
        finally:
            self._is_timing = was_timing

    def tell(self) -> None:
        """Record the memory, unless a block may be timed, or the last record is recent."""
        if not self._is_timing:
            self.tell_between_blocks()

    def tell_between_blocks(self) -> None:
        """Record the memory, unless the last record is recent."""
        if not self.gpus or time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + _PERIOD_S
        self.tell_last()

    def tell_after_failure(self) -> None:
        """Record the memory after a failure of the scenario, if torch still works."""
        with suppress(RuntimeError, AssertionError):  # after an error of CUDA, or without a driver
            self.tell_last()

    def tell_last(self) -> None:
        """Record the memory in any case."""
        for gpu in self.gpus.values():
            held = gpu.holds()
            if held:
                self._record(GpuHeld(gpu.uuid, *held))
