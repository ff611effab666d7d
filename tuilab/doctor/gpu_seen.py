"""A GPU that is looked at while others work there: the most that it reached, and how it is set."""

from dataclasses import dataclass, field
from typing import Any

from tuilab.probes import NotKnown
from tuilab.probes.gpu.board import LINK
from tuilab.probes.gpu.nvml import Gpu, Gpus

_REACHED = ("sm_mhz", "memory_mhz", "power_w", "throttle_mask")


@dataclass
class Seen:
    """A GPU, and the most of everything that it reached while it was looked at."""

    gpus: Gpus
    gpu: Gpu
    most: dict[str, float] = field(default_factory=dict)
    mask: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def look(self) -> None:
        """Read once what changes with the load."""
        reading = self.gpus.read(self.gpu, _REACHED)
        link = self.gpus.settings(self.gpu, LINK)
        self.missing |= {**reading.missing, **link.pop("missing", {})}
        self.mask |= int(reading.values.get("throttle_mask", 0))
        for name, value in {**reading.values, **link}.items():
            self.most[name] = max(self.most.get(name, 0), value)

    def reached(self, name: str) -> float:
        """Return the most that something reached; NotKnown with the reason."""
        if name not in self.most:
            raise NotKnown(self.missing.get(name, "the driver does not report it for a slice (MIG)"))
        return self.most[name]

    def setting(self, name: str) -> Any:
        if name not in self.settings:
            raise NotKnown(self.settings.get("missing", {}).get(name, "not asked"))
        return self.settings[name]
