"""Read the NVIDIA GPUs of this machine through NVML: the only file that imports `pynvml`.

NVML may be missing, leave facts out, give wrong ones, hang or crash its process. So only processes
that may die use it. A GPU is identified by its UUID, because NVML's index is not CUDA's. A slice of
a GPU (MIG) is a GPU of its own, next to the whole one.
"""

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.probes import NotKnown, gather
from tuilab.probes.gpu.board import BOARD
from tuilab.probes.gpu.meters import LOST_CODES, METERS, METERS_OF_SLICE, bytes_total, name_of
from tuilab.probes.gpu.tenants import (
    ForeignUse,
    GpuProcess,
    count_foreign,
    list_tenants,
    memory_of,
    why_pids_mean_nothing,
)
from tuilab.text.display import show
from tuilab.text.words import gpu_label

# Two names that a GPU can be asked for besides the meters. SHARE is how busy foreign processes keep
# it. PROCESSES stands for the number of foreign processes and the memory of the run's own.
SHARE, PROCESSES = "foreign_percent", "processes"

_REASONS = {
    4: "no permission to use the NVIDIA driver (/dev/nvidia*)",
    9: "the NVIDIA driver is not loaded",
    12: "no NVIDIA driver (libnvidia-ml.so.1 not found)",
    18: (
        "the NVIDIA driver and its library have different versions, "
        "for example after an upgrade: reboot"
    ),
    999: (
        "NVML does not start (unknown error): "
        "if this is a container, it may have lost its devices: restart it"
    ),
}

_READ = 0  # the capability to read another GPU's memory, in nvml.h; the module has it as a tuple
_REFUSALS = {
    0: "",
    1: "the chipset does not allow it",
    2: "this kind of GPU does not support it",
    3: "the PCIe path between the GPUs does not support it",
    4: "switched off in the driver",
    5: "not supported",
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


_TIMEOUT_CODE = 10
_MAX_ERRORS = 16  # of a GPU that are read at a time


class GpuLost(Exception):
    """A GPU no longer answers; the text is the reason. It must not be asked again."""


@dataclass(frozen=True)
class Gpu:
    """The facts about a GPU, or about a slice of one, that do not change."""

    uuid: str
    index: int  # NVML's; for a slice, that of the whole GPU
    name: str
    bytes_total: int | None
    slice: str = ""  # as nvidia-smi names it: "MIG 1g.10gb Device 0"; empty: a whole GPU
    part_of: str = ""  # of a slice: the UUID of the whole GPU

    @property
    def label(self) -> str:
        return gpu_label(self.index, self.slice)


class _Handles(NamedTuple):
    """NVML's handles of a GPU, or of a slice and of its whole GPU, which has the clocks."""

    own: Any
    whole: Any


class GpuReading(NamedTuple):
    """The values that a GPU reported, and by name the reason why others are missing."""

    values: dict[str, float]
    missing: dict[str, str]


def open_gpus(root: Path = Path("/")) -> "Gpus | str":
    """Start NVML, and return the GPUs, or a sentence that says why there are none.

    `root` is the folder with /proc.
    """
    nvml = _import_nvml()
    if isinstance(nvml, str):
        return nvml
    try:
        nvml.nvmlInit()
        gpus = Gpus(nvml, root)
    except nvml.NVMLError as problem:
        return _REASONS.get(problem.value, f"NVML does not start: {problem}")
    if not gpus.available and not gpus.unusable:
        return "the NVIDIA driver sees no GPU"
    return gpus


def throttle_names(mask: int) -> list[str]:
    """Return the reasons for lower clocks, in words."""
    names = []
    for position in range(mask.bit_length()):
        bit = 1 << position
        if mask & bit:
            names.append(_THROTTLES.get(bit, f"bit {bit:#x}"))
    return names


class Gpus:
    """The GPUs that NVML had when it was started, and their slices; later ones are not seen."""

    def __init__(self, nvml: Any, root: Path) -> None:
        """Find the GPUs and slices of a started NVML, and listen to their errors.

        A GPU that cannot be opened goes into `unusable`; the others may work.
        """
        self.available: list[Gpu] = []  # without those that were lost
        self.unusable: dict[int, str] = {}  # by NVML's index, the reason
        self.no_pids = why_pids_mean_nothing(root)
        self.errors = XidListener(nvml)
        # By UUID: the foreign processes at the last reading of PROCESSES.
        self.foreign_processes: dict[str, list[GpuProcess]] = {}
        self._nvml = nvml
        self._root = root
        self._handles: dict[str, _Handles] = {}
        self._foreign_use: dict[str, ForeignUse] = {}
        self._why_unknown: dict[str, str] = {}  # by UUID: why its processes cannot be told apart
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                self._open(index)
            except (nvml.NVMLError, ValueError) as problem:  # other GPUs may work
                self.unusable[index] = str(problem)

    @property
    def whole(self) -> list[Gpu]:
        """The GPUs without their slices."""
        return [gpu for gpu in self.available if not gpu.slice]

    def facts(self) -> dict[str, Any]:
        """Return the versions of the driver and its library, and its newest CUDA."""
        nvml = self._nvml
        return gather(
            {
                "driver": lambda: show(nvml.nvmlSystemGetDriverVersion(), 100),
                "nvml": lambda: show(nvml.nvmlSystemGetNVMLVersion(), 100),
                "cuda": self._cuda_version,
            }
        )

    def _cuda_version(self) -> str:
        version = self._nvml.nvmlSystemGetCudaDriverVersion_v2()  # 13020 for CUDA 13.2
        major, minor = divmod(version // 10, 100)
        return f"{major}.{minor}"

    def read(
        self,
        gpu: Gpu,
        names: Collection[str] = tuple(METERS),
        ours: Collection[int] = (),
        *,
        is_timed_here: bool = False,
    ) -> GpuReading:
        """Read the meters of a GPU with these names, which may include SHARE and PROCESSES.

        `ours` are the pids of the run. `is_timed_here`: a process of the run computes on this GPU.
        If the driver lists none of `ours` then, its pids are those of another namespace, and the
        reading has no processes. GpuLost if the GPU does not answer: it is no longer available.
        """
        reading = GpuReading({}, {})
        handles = self._handles[gpu.uuid]
        try:
            for name, (call, maximum) in METERS.items():
                if name not in names or (gpu.slice and name not in METERS_OF_SLICE):
                    continue
                handle = handles.own if name == "memory_used_bytes" else handles.whole
                self._ask(reading, name, call, handle, maximum)
            # First the processes: this finds out whether SHARE can tell them apart.
            if PROCESSES in names:
                self._ask_processes(reading, gpu, ours, is_timed_here)
            if SHARE in names:
                self._ask(reading, SHARE, partial(self._read_share, gpu, ours), handles.own)
        except GpuLost as lost:
            self._forget(gpu)
            raise GpuLost(f"{lost}{self.errors.after(gpu.part_of or gpu.uuid)}") from lost
        if not reading.values and set(METERS) <= set(names):
            self._forget(gpu)
            reason = next(iter(reading.missing.values()), "no reason given")
            raise GpuLost(f"answers nothing: {reason}")
        return reading

    def settings(
        self, gpu: Gpu, questions: Mapping[str, Callable[[Any, Any], Any]] = BOARD
    ) -> dict[str, Any]:
        """Return the answers to questions about a GPU; for a slice, those of the whole GPU.

        By default these are its settings and connection. The entry `missing` has the reasons why
        some are not known.
        """
        handle = self._handles[gpu.uuid].whole
        return gather({name: partial(ask, self._nvml, handle) for name, ask in questions.items()})

    def has_mig(self, gpu: Gpu) -> bool:
        """Return whether a GPU is divided into slices; raise NotKnown if that cannot be read."""
        nvml = self._nvml
        try:
            return bool(nvml.nvmlDeviceGetMigMode(self._handles[gpu.uuid].whole)[0])
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            return False
        except nvml.NVMLError as problem:
            raise NotKnown(str(problem)) from problem

    def peers(self, gpu: Gpu) -> list[str]:
        """Return, for each other GPU, why this one cannot read its memory directly.

        The text is empty if the driver allows it. Raises NotKnown if the driver does not say.
        """
        nvml = self._nvml
        own = self._handles[gpu.uuid].own
        refusals = []
        try:
            for peer in self.whole:
                if peer.uuid != gpu.uuid:
                    status = nvml.nvmlDeviceGetP2PStatus(own, self._handles[peer.uuid].own, _READ)
                    refusals.append(_REFUSALS.get(status, f"status {status}"))
        except nvml.NVMLError as problem:
            raise NotKnown(str(problem)) from problem
        return refusals

    def tenants(self, gpu: Gpu) -> list[GpuProcess]:
        """Return the processes on a GPU, including ours; raise NotKnown if the driver does not say.

        Users are left out if the driver's pids are not those seen here.
        """
        try:
            listed = self._nvml.nvmlDeviceGetComputeRunningProcesses_v3(self._handles[gpu.uuid].own)
        except self._nvml.NVMLError as problem:
            raise NotKnown(str(problem)) from problem
        processes = list_tenants(listed, (), self._root)
        if self.no_pids:
            processes = [process._replace(user="", why=self.no_pids) for process in processes]
        return processes

    def _open(self, index: int) -> None:
        """Add a GPU and its slices."""
        handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        gpu = self._add(index, _Handles(handle, handle))
        self.errors.listen(gpu.uuid, handle)
        for slice_name, slice_handle in slices(self._nvml, handle):
            with contextlib.suppress(self._nvml.NVMLError, ValueError):  # other slices may work
                self._add(index, _Handles(slice_handle, handle), slice_name, gpu.uuid)

    def _add(self, index: int, handles: _Handles, slice_name: str = "", part_of: str = "") -> Gpu:
        """Add a GPU or a slice to those that can be read, and return it.

        Raises NVMLError or ValueError if it does not report its UUID.
        """
        nvml = self._nvml
        gpu = Gpu(
            uuid=show(nvml.nvmlDeviceGetUUID(handles.own), 100),
            index=index,
            name=name_of(nvml, handles.own),
            bytes_total=bytes_total(nvml, handles.own),
            slice=slice_name,
            part_of=part_of,
        )
        self._handles[gpu.uuid] = handles
        self._foreign_use[gpu.uuid] = ForeignUse()
        self._why_unknown[gpu.uuid] = self.no_pids
        self.available.append(gpu)
        return gpu

    def _forget(self, gpu: Gpu) -> None:
        """Remove a lost GPU, so that it is never asked again."""
        self.available.remove(gpu)
        del self._handles[gpu.uuid]

    def _ask(
        self,
        reading: GpuReading,
        name: str,
        call: Callable[[Any, Any], float | None],
        handle: Any,
        maximum: float = float("inf"),
    ) -> None:
        """Add the answer to one question to a reading, or the reason why there is none.

        An answer of None adds neither. Raises GpuLost if the error means that the GPU is lost.
        """
        try:
            value = call(self._nvml, handle)
        except AttributeError:
            reading.missing[name] = "this version of nvidia-ml-py does not support it"
        except ValueError as problem:
            reading.missing[name] = str(problem)
        except self._nvml.NVMLError as problem:
            if problem.value in LOST_CODES:
                raise GpuLost(str(problem)) from problem
            reading.missing[name] = str(problem)
        else:
            if value is None:
                return
            if 0 <= value <= maximum:
                reading.values[name] = value
            else:
                reading.missing[name] = f"the driver said {value:g}, which cannot be"

    def _ask_processes(
        self, reading: GpuReading, gpu: Gpu, ours: Collection[int], is_timed_here: bool
    ) -> None:
        """Add the number of foreign processes to a reading, and the memory of the run's own.

        The memory is left out if none of the run's processes is listed.
        """
        listed: list[Any] = []

        def count(nvml: Any, handle: Any) -> float:
            if self.no_pids:
                raise ValueError(self.no_pids)
            listed.extend(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))
            return count_foreign(listed, ours, is_timed_here=is_timed_here)

        def read_memory(nvml: Any, handle: Any) -> float | None:
            return memory_of(listed, ours)

        handle = self._handles[gpu.uuid].own
        self._ask(reading, "foreign_processes", count, handle)
        reason = reading.missing.pop("foreign_processes", "")
        self._why_unknown[gpu.uuid] = reason
        if reason:
            reading.missing[PROCESSES] = reason
        else:
            self.foreign_processes[gpu.uuid] = list_tenants(listed, ours, self._root)
            self._ask(reading, "memory_tree_bytes", read_memory, handle)

    def _read_share(self, gpu: Gpu, ours: Collection[int], nvml: Any, handle: Any) -> float | None:
        """Return how busy foreign processes keep a GPU, in percent.

        None at the first reading, and if its processes cannot be told apart: PROCESSES has the
        reason. Raises ValueError for a slice.
        """
        if gpu.slice:
            raise ValueError("the driver does not report it for a slice (MIG)")
        if self._why_unknown[gpu.uuid]:
            return None
        return self._foreign_use[gpu.uuid].read(nvml, handle, ours)


def _import_nvml() -> Any:
    """Return NVIDIA's module, or a sentence that says why it cannot be used.

    Another package of the same name gives wrong numbers.
    """
    try:
        with warnings.catch_warnings():
            # The deprecated distribution warns even if NVIDIA's is installed as well.
            warnings.simplefilter("ignore")
            import pynvml
    except ImportError:
        return "the package nvidia-ml-py is not installed: pip install nvidia-ml-py"
    is_package = hasattr(pynvml, "__path__")  # NVIDIA's is one file
    if is_package or not hasattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v3"):
        return (
            "the module pynvml is not from NVIDIA: "
            "pip uninstall -y pynvml; pip install --force-reinstall nvidia-ml-py"
        )
    return pynvml


def slices(nvml: Any, handle: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and NVML's handle of each slice of a GPU, such as `MIG 1g.10gb Device 0`."""
    try:
        max_slices = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except (AttributeError, nvml.NVMLError):
        return  # the GPU or this driver has no slices
    for number in range(max_slices):
        try:
            slice_handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            name = name_of(nvml, slice_handle)
        except nvml.NVMLError:  # no slice has this number
            continue
        profile = name.rpartition(" MIG ")[2] if " MIG " in name else ""
        words = ["MIG", profile, "Device", str(number)]
        yield " ".join(word for word in words if word), slice_handle


class XidListener:
    """Listens to the errors of GPUs. The driver puts them into a queue, so no GPU is asked."""

    def __init__(self, nvml: Any) -> None:
        self.deaf: dict[str, str] = {}  # by UUID: why the errors of a GPU are not received
        self._nvml = nvml
        self._events: dict[str, Any] = {}  # by UUID: an event set of this GPU alone
        self._last: dict[str, int] = {}

    def listen(self, uuid: str, handle: Any) -> None:
        """Receive the errors of a GPU from now on; if that fails, `deaf` has the reason."""
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
        except (AttributeError, nvml.NVMLError) as problem:
            self.deaf[uuid] = str(problem)
        else:
            self._events[uuid] = events

    def next(self, uuid: str) -> list[int]:
        """Return the numbers of the errors of a GPU since the previous call, without waiting.

        If the driver fails, the GPU is not listened to any more, and `deaf` has the reason.
        """
        numbers: list[int] = []
        while uuid in self._events and len(numbers) < _MAX_ERRORS:
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events[uuid], 0)
                numbers.append(int(event.eventData))
            except self._nvml.NVMLError as problem:
                if problem.value != _TIMEOUT_CODE:
                    self.deaf[uuid] = str(problem)
                    del self._events[uuid]
                break
        if numbers:
            self._last[uuid] = numbers[-1]
        return numbers

    def after(self, uuid: str) -> str:
        """Return ` after Xid 79`, the end of a sentence, if that was the last error; else empty."""
        if uuid not in self._last:
            return ""
        return f" after Xid {self._last[uuid]}"
