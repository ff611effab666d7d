"""The slices that a GPU is cut into (MIG), as nvidia-smi names them."""

from collections.abc import Iterator
from typing import Any

from tuilab.probes.gpu.meters import name_of


def slices(nvml: Any, handle: Any) -> Iterator[tuple[str, Any]]:
    """Yield `MIG 1g.10gb Device 0` and NVML's handle of each slice of a GPU; one that is whole has none."""
    try:
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except (AttributeError, nvml.NVMLError):
        return  # it cannot be cut, or this driver does not know how
    for number in range(most):
        try:
            piece = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            profile = name_of(nvml, piece).rpartition(" MIG ")[2] if " MIG " in name_of(nvml, piece) else ""
        except nvml.NVMLError:  # nothing has this number
            continue
        yield " ".join(word for word in ("MIG", profile, "Device", str(number)) if word), piece
