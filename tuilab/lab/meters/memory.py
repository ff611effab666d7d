"""Count and record the memory and operators of a `with` block, and the memory of a GPU."""

from typing import Any

import torch

from tuilab.lab.arguments import checked, describe_value, flag
from tuilab.lab.device import devices, interface
from tuilab.lab.meters.meter import Meter
from tuilab.lab.recorder import Recorder
from tuilab.record import events

_OF_CUDA = ("cuda_before_bytes", "cuda_peak_bytes", "cuda_reserved_bytes", "cuda_requested_bytes")


class Memory(Meter):
    """The result of `Lab.memory`: the counts of a Meter, and the memory of CUDA's allocator.

    cuda_before_bytes    allocated when the block began
    cuda_peak_bytes      allocated at most, including that
    cuda_reserved_bytes  reserved at most
    cuda_requested_bytes requested at most: the peak without the rounding of blocks

    They are those of one GPU: `device`, or else the current one. They are None if nothing was on
    it, and the last one also if the allocator does not count it (only that of torch does).
    """

    def __init__(
        self,
        lab: Recorder,
        name: str,
        arm: str,
        model: torch.nn.Module | None,
        timeline: bool,
        device: torch.device | None = None,
    ) -> None:
        self._lab = lab
        self._arm = arm
        self._timeline = flag("timeline", timeline)
        super().__init__(changed=self._log_change)
        self._changes = 0
        self.cuda_before_bytes: int | None = None
        self.cuda_peak_bytes: int | None = None
        self.cuda_reserved_bytes: int | None = None
        self.cuda_requested_bytes: int | None = None
        self._device = device
        if not isinstance(model, torch.nn.Module | None):
            raise TypeError(f"model takes a torch.nn.Module, not {describe_value(model)}")
        self._event = checked(events.MemoryMeasured(name=name, values=self.values(), arm=arm))
        if model is not None:
            self.greet([*model.parameters(), *model.buffers()])

    def __enter__(self) -> "Memory":
        """Wait for the GPU, reset its peak, and count from now on."""
        device = devices.in_use(self._device)
        device.wait()
        device.reset_peak()
        held = device.held()
        self._before = held.allocated if held else 0
        super().__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        """Stop counting, and record the counts unless the block has raised an error."""
        super().__exit__(*problem)
        self._timeline = False
        if problem[0] is None:  # a question to a failed GPU would hide the first error
            self._ask(devices.in_use(self._device))
            self._event.values = self.values()
            self._lab.record(self._event)

    def values(self) -> dict[str, float]:
        """Return the counts so far."""
        values = {}
        for name in ("peak_bytes", "live_bytes", "saved_bytes", "operators", *_OF_CUDA):
            value = getattr(self, name)
            if value is not None:
                values[name] = float(value)
        return values

    def reset_peak(self) -> None:
        """Reset the peak to the memory that is in use now."""
        self.peak_bytes = self.live_bytes

    def _ask(self, device: interface.Device) -> None:
        """Read the memory of CUDA's allocator; the fields stay None if nothing was on the GPU."""
        device.wait()
        held = device.held()
        if held and held.allocated_peak:
            self.cuda_before_bytes = self._before
            self.cuda_peak_bytes = held.allocated_peak
            self.cuda_reserved_bytes = held.reserved_peak
            self.cuda_requested_bytes = held.requested_peak or None

    def _log_change(self) -> None:
        if self._timeline:
            self._changes += 1
            self._lab.log(self._changes, arm=self._arm, live_bytes=self.live_bytes)
