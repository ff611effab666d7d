"""Matches the names of a GPU.

Torch, NVML and CUDA each number the GPUs in their own way, and only the UUID is common. But torch
leaves out the beginning of NVML's UUID: `GPU-`, or `MIG-` for a slice.
"""

from collections.abc import Collection, Mapping
from typing import Any


def torch_uuid(recorded: str, facts: Mapping[str, Any]) -> str:
    """Return torch's UUID of the GPU of a race; empty if it is not known.

    That is the UUID in the record of the race, else the one that the worker chose, else the
    worker's first GPU.
    """
    uuid = recorded or str(facts.get("chosen", ""))
    if uuid:
        return uuid
    devices = facts.get("devices")
    if not isinstance(devices, list) or not devices:
        return ""
    first = devices[0]
    return str(first.get("uuid", "")) if isinstance(first, dict) else ""


def nvml_uuid(torch_uuid: str, nvml_uuids: Collection[str]) -> str:
    """Return NVML's UUID of a GPU, by torch's; empty if it is not known.

    A GPU without a UUID of torch can only be matched if there is exactly one.
    """
    if torch_uuid:
        for uuid in sorted(nvml_uuids):
            if uuid.endswith(torch_uuid):
                return uuid
        return ""
    if len(nvml_uuids) != 1:
        return ""
    return next(iter(nvml_uuids))
