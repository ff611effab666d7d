"""Scalars that are still on a device: held back, so that no step waits for one, and brought over together."""

import time
from collections.abc import Iterator

import torch

_LIMIT = 256
_PERIOD_S = 0.5


class Pending:
    """Copies on the device: a tensor may be written to again before it is brought over."""

    def __init__(self) -> None:
        self._held: list[tuple[int, str, str, torch.Tensor]] = []
        self._taken = 0.0

    def add(self, step: int, arm: str, name: str, value: torch.Tensor) -> None:
        """Hold a scalar back."""
        if value.numel() != 1 or value.is_complex() or value.is_meta:
            raise TypeError(f"{name} takes a number, not a tensor of {tuple(value.shape)} {value.dtype} on {value.device}")
        self._held.append((step, arm, name, value.detach().to(torch.float64, copy=True)))

    @property
    def is_due(self) -> bool:
        return len(self._held) >= _LIMIT or time.monotonic() - self._taken > _PERIOD_S

    def take(self) -> Iterator[tuple[int, str, str, float]]:
        """Bring everything over in one copy and yield it as (step, arm, name, value)."""
        if not self._held:
            return
        held, self._held = self._held, []
        self._taken = time.monotonic()
        values = torch.stack([value.reshape(()) for *_, value in held]).tolist()
        for (step, arm, name, _), value in zip(held, values, strict=True):
            yield step, arm, name, value
