"""Which GPU a race runs on: torch, NVML and CUDA number them each in their own way, and only a UUID is the same to all.

Torch leaves off what NVML's begins with: `GPU-`, or `MIG-` of a slice.
"""

from collections.abc import Collection, Mapping
from typing import Any


def torch_uuid(told: str, facts: Mapping[str, Any]) -> str:
    """Return torch's name of the GPU of a race: the one that the record tells, else that of the worker, else its first."""
    told = told or str(facts.get("chosen", ""))
    devices = facts.get("devices")
    first = devices[0] if isinstance(devices, list) and devices else None
    return told or (str(first.get("uuid", "")) if isinstance(first, dict) else "")


def nvml_uuid(torchs: str, known: Collection[str]) -> str:
    """Return which of NVML's names that is; a GPU that torch does not name is the only one that there is, or not known."""
    if torchs:
        return next((uuid for uuid in sorted(known) if uuid.endswith(torchs)), "")
    return next(iter(known)) if len(known) == 1 else ""
