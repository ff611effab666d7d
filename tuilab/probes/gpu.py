"""The NVIDIA GPUs of this box through NVML: the only file that imports `pynvml`.

NVML may be absent, leave things out, lie, hang or crash its process, so it is asked by processes that may die. A GPU is
known by its UUID: NVML's index is not CUDA's.
"""

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from tuilab.probes import gather
from tuilab.probes.gpu_meters import LOST_CODES, METERS, bytes_of, bytes_total, name_of
from tuilab.text import show

_TIMEOUT_CODE = 10

_REASONS = {
    4: "no permission to use the NVIDIA driver (/dev/nvidia*)",
    9: "the NVIDIA driver is not loaded",
    12: "no NVIDIA driver (libnvidia-ml.so.1 not found)",
    18: "the NVIDIA driver and its library differ in version, as after an upgrade: reboot",
}

_THROTTLES = {
    0x1: "idle",
    0x2: "clocks set by the user",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}


class GpuLost(Exception):
    """A GPU that was there no longer answers; the text is why. It must not be asked again."""


@dataclass(frozen=True)
class Gpu:
    """What does not change about a GPU."""

    uuid: str
    index: int  # NVML's
    name: str
    bytes_total: int | None


class Reading(NamedTuple):
    """What a GPU said, and why it did not say the rest."""

    values: dict[str, float]
    missing: dict[str, str]


def open_gpus() -> "Gpus | str":
    """Start NVML; where that cannot be done return why, in a sentence."""
    nvml = _import_nvml()
    if isinstance(nvml, str):
        return nvml
    try:
        nvml.nvmlInit()
        gpus = Gpus(nvml)
    except nvml.NVMLError as problem:
        return _REASONS.get(problem.value, f"NVML does not start: {problem}")
    return gpus if gpus.found or gpus.unusable else "the NVIDIA driver sees no GPU"


def throttle_names(mask: int) -> list[str]:
    """Return in words what holds the clocks down."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return [_THROTTLES.get(bit, f"bit {bit:#x}") for bit in bits]


class Gpus:
    """The GPUs that NVML found when it was started; those plugged in later are not seen."""

    def __init__(self, nvml: Any) -> None:
        self.found: list[Gpu] = []
        self.unusable: dict[int, str] = {}  # NVML's index -> why
        self._nvml = nvml
        self._handles: dict[str, Any] = {}
        self._xids: dict[str, Any] = {}
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                self._take(index)
            except (nvml.NVMLError, ValueError) as problem:  # the others may be well
                self.unusable[index] = str(problem)

    def facts(self) -> dict[str, Any]:
        """Return the versions of the driver, of its library, and the newest CUDA it can run."""
        nvml = self._nvml
        return gather(
            {
                "driver": lambda: show(nvml.nvmlSystemGetDriverVersion(), 100),
                "nvml": lambda: show(nvml.nvmlSystemGetNVMLVersion(), 100),
                "cuda": lambda: "{}.{}".format(*divmod(nvml.nvmlSystemGetCudaDriverVersion_v2() // 10, 100)),
            }
        )

    def read(self, gpu: Gpu, pids: Collection[int] = ()) -> Reading:
        """Ask a GPU for everything; `memory_tree_bytes` is the memory of `pids`, left out where none of them is seen."""
        reading = Reading({}, {})
        try:
            self._ask(reading, "xid", lambda _, xids: self._next_xid(xids), self._xids.get(gpu.uuid))
            for name, (call, most) in METERS.items():
                self._ask(reading, name, call, self._handles[gpu.uuid], most)
            self._ask(reading, "memory_tree_bytes", lambda nvml, handle: bytes_of(nvml, handle, pids), self._handles[gpu.uuid])
        except GpuLost as lost:
            self._forget(gpu)
            xid = f" after Xid {reading.values['xid']:.0f}" if "xid" in reading.values else ""
            raise GpuLost(f"{lost}{xid}") from lost
        if not reading.values:
            self._forget(gpu)
            raise GpuLost(f"answers nothing: {next(iter(reading.missing.values()), 'no reason given')}")
        return reading

    def has_mig(self, gpu: Gpu) -> bool:
        """Say whether a GPU is cut into slices; one that cannot be is not."""
        nvml = self._nvml
        try:
            return bool(nvml.nvmlDeviceGetMigMode(self._handles[gpu.uuid])[0])
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            return False

    def processes(self, gpu: Gpu) -> list[tuple[int, int | None]]:
        """Return (pid, bytes) of each process that computes on a GPU; in a container the pids are those of the host."""
        found = self._nvml.nvmlDeviceGetComputeRunningProcesses_v3(self._handles[gpu.uuid])
        return [(process.pid, process.usedGpuMemory) for process in found]

    def _take(self, index: int) -> None:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        gpu = Gpu(show(nvml.nvmlDeviceGetUUID(handle), 100), index, name_of(nvml, handle), bytes_total(nvml, handle))
        self._handles[gpu.uuid] = handle
        self._xids[gpu.uuid] = self._listen_for_xids(handle)
        self.found.append(gpu)

    def _forget(self, gpu: Gpu) -> None:
        self.found.remove(gpu)
        del self._handles[gpu.uuid]

    def _ask(
        self, reading: Reading, name: str, call: Callable[[Any, Any], float | None], handle: Any, most: float = float("inf")
    ) -> None:
        """Note the answer to one question, or why there is none; raise when the GPU is lost."""
        try:
            value = call(self._nvml, handle)
        except AttributeError:
            reading.missing[name] = "this nvidia-ml-py does not know it"
        except ValueError as problem:
            reading.missing[name] = str(problem)
        except self._nvml.NVMLError as problem:
            if problem.value in LOST_CODES:
                raise GpuLost(str(problem)) from problem
            reading.missing[name] = str(problem)
        else:
            if value is not None and 0 <= value <= most:
                reading.values[name] = value
            elif value is not None:
                reading.missing[name] = f"the driver said {value:g}, which cannot be"

    def _listen_for_xids(self, handle: Any) -> Any:
        """Return a set of events of this one GPU, or why there is none."""
        nvml = self._nvml
        try:
            xids = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, xids)
        except (AttributeError, nvml.NVMLError) as problem:
            return str(problem)
        return xids

    def _next_xid(self, xids: Any) -> float | None:
        """Return the number of the next error that the driver has reported, None when there was none."""
        if isinstance(xids, str):
            raise ValueError(xids)
        try:
            return float(self._nvml.nvmlEventSetWait_v2(xids, 0).eventData)
        except self._nvml.NVMLError as problem:
            if problem.value == _TIMEOUT_CODE:
                return None
            raise


def _import_nvml() -> Any:
    """Return NVIDIA's module, or why it is not there; a package of the same name gives wrong numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the deprecated distribution warns although NVIDIA's is there too
            import pynvml
    except ImportError:
        return "the package nvidia-ml-py is not installed: pip install nvidia-ml-py"
    if hasattr(pynvml, "__path__") or not hasattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v3"):  # NVIDIA's is one file
        return "the module pynvml is not NVIDIA's: pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py"
    return pynvml
