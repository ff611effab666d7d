"""The questions to NVML about a GPU while it is watched, each as a function of one handle."""

from collections.abc import Callable
from typing import Any

from tuilab.text.display import show

IMPOSSIBLE_BYTES = 1 << 50
# Codes of nvml.h. After one of these a GPU is not asked again, because that may crash the process:
# uninitialised, driver not loaded, GPU lost, reset required, driver exchanged, GPU not found.
LOST_CODES = {1, 9, 15, 16, 18, 28}


def name_of(nvml: Any, handle: Any) -> str:
    """Return the name of a GPU, or a text that says that it has none."""
    try:
        return show(nvml.nvmlDeviceGetName(handle), 100)
    except (ValueError, nvml.NVMLError) as problem:
        _raise_if_lost(problem)
        return "a GPU without a known name"


def bytes_total(nvml: Any, handle: Any) -> int | None:
    """Return the size of a GPU's memory; None if the driver does not report a possible one."""
    try:
        total = int(_memory(nvml, handle).total)
    except nvml.NVMLError as problem:
        _raise_if_lost(problem)
        return None
    return total if 0 < total < IMPOSSIBLE_BYTES else None


def _raise_if_lost(problem: Exception) -> None:
    """Raise the error again if a GPU with such an error must not be asked any more."""
    if getattr(problem, "value", None) in LOST_CODES:
        raise problem


def _memory(nvml: Any, handle: Any) -> Any:
    """Return the numbers that nvidia-smi shows.

    Older drivers only have a call that counts the memory that they reserve as used.
    """
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_ArgumentVersionMismatch):
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def _bytes_used(nvml: Any, handle: Any) -> float:
    """Return the used memory of a GPU; raise ValueError if the driver's numbers are impossible."""
    memory = _memory(nvml, handle)
    if not 0 <= memory.used <= memory.total < IMPOSSIBLE_BYTES:
        raise ValueError(f"the driver said {memory.used} bytes of {memory.total}, which cannot be")
    return float(memory.used)


def _throttle_mask(nvml: Any, handle: Any) -> float:
    """Return the reasons for lower clocks as bits of nvml.h."""
    try:
        return float(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except (AttributeError, nvml.NVMLError_FunctionNotFound):  # drivers before 535
        return float(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


# By name: the call, and the largest possible value. The bare numbers are those of nvml.h: sensor 0
# is the GPU; of memory errors, 1 are the uncorrected ones, and 0 those since the last reset.
METERS: dict[str, tuple[Callable[[Any, Any], float], float]] = {
    "memory_used_bytes": (_bytes_used, IMPOSSIBLE_BYTES),
    "busy_percent": (lambda nvml, handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, 100),
    "power_w": (lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1000, 10_000),
    "temperature_c": (lambda nvml, handle: nvml.nvmlDeviceGetTemperature(handle, 0), 200),
    "sm_mhz": (
        lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        20_000,
    ),
    "memory_mhz": (
        lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        50_000,
    ),
    "throttle_mask": (_throttle_mask, 0xFFFF),
    "ecc_uncorrected": (lambda nvml, handle: nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0), 1e9),
}

# A slice of a GPU (MIG) has memory of its own, and the clocks of the whole GPU. The driver reports
# nothing else of it.
METERS_OF_SLICE = ("memory_used_bytes", "sm_mhz", "throttle_mask")
