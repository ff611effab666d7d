"""The questions to NVML about the settings and the connection of a GPU.

They are not needed while something is measured.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_BUS = "sys/bus/pci/devices"


class Rows(NamedTuple):
    """The numbers of memory rows that were replaced after errors of two kinds."""

    corrected: int
    uncorrected: int
    is_pending: bool  # a replacement waits for a reset of the GPU
    has_failed: bool


class Links(NamedTuple):
    """The numbers of NVLinks of a GPU."""

    up: int
    there: int  # whether up or down


def _links(nvml: Any, handle: Any) -> Links:
    """Ask for each link that a GPU can have; this one has some of them, or none."""
    states = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            states.append(bool(nvml.nvmlDeviceGetNvLinkState(handle, link)))
        except (nvml.NVMLError_InvalidArgument, nvml.NVMLError_NotSupported):
            continue
    return Links(sum(states), len(states))


def _power_w(milliwatts: int) -> float:
    return milliwatts / 1000


def _rows(nvml: Any, handle: Any) -> Rows:
    corrected, uncorrected, is_pending, has_failed = nvml.nvmlDeviceGetRemappedRows(handle)
    return Rows(corrected, uncorrected, bool(is_pending), bool(has_failed))


def _bus(nvml: Any, handle: Any) -> str:
    """Return the PCI address as the kernel writes it: 0000:17:00.0."""
    address = nvml.nvmlDeviceGetPciInfo(handle).busId
    if isinstance(address, bytes):
        address = address.decode(errors="replace")
    return str(address)[-12:].lower()


# The state of the PCIe link changes with the load: it sleeps while nothing is copied.
LINK: dict[str, Callable[[Any, Any], Any]] = {
    "generation": lambda nvml, handle: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
    "width": lambda nvml, handle: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
}

BOARD: dict[str, Callable[[Any, Any], Any]] = {
    "bus": _bus,
    "most_generation": lambda nvml, handle: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
    "most_width": lambda nvml, handle: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
    "most_sm_mhz": lambda nvml, handle: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
    "most_memory_mhz": lambda nvml, handle: nvml.nvmlDeviceGetMaxClockInfo(
        handle, nvml.NVML_CLOCK_MEM
    ),
    "power_limit_w": lambda nvml, handle: _power_w(nvml.nvmlDeviceGetPowerManagementLimit(handle)),
    "usual_power_limit_w": lambda nvml, handle: _power_w(
        nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)
    ),
    "is_persistent": lambda nvml, handle: bool(nvml.nvmlDeviceGetPersistenceMode(handle)),
    "has_ecc": lambda nvml, handle: bool(nvml.nvmlDeviceGetEccMode(handle)[0]),
    "rows": _rows,
    "links": _links,
}


def width_of_card(bus: str, root: Path) -> int | None:
    """Return the number of PCIe lanes of the GPU itself; None if it is not known.

    NVML's maximum is lower if the slot has fewer lanes.
    """
    try:
        width = int((root / _BUS / bus / "max_link_width").read_text())
    except (OSError, ValueError):
        return None
    return width if 0 < width <= 32 else None
