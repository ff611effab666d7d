"""The NVIDIA GPUs of this box through NVML: the only file that imports `pynvml`.

NVML may be absent, leave things out, lie, hang or crash its process, so it is asked by processes that may die. A GPU is
known by its UUID: NVML's index is not CUDA's. A slice of a GPU (MIG) is one of its own, beside the whole one.
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
    Other,
    Shares,
    memory_of,
    others_of,
    strangers,
    why_pids_mean_nothing,
)
from tuilab.text.display import show
from tuilab.text.words import gpu_label

# Beside the meters: how busy processes of others keep it, and one list that tells how many there are, and the run's own memory.
SHARE, PROCESSES = "foreign_percent", "processes"

_REASONS = {
    4: "no permission to use the NVIDIA driver (/dev/nvidia*)",
    9: "the NVIDIA driver is not loaded",
    12: "no NVIDIA driver (libnvidia-ml.so.1 not found)",
    18: "the NVIDIA driver and its library have different versions, for example after an upgrade: reboot",
    999: "NVML does not start (unknown error): if this is a container, it may have lost its devices: restart it",
}

_READ = 0  # of nvml.h's capabilities between two GPUs; the module has it as a tuple
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
_MOST = 16  # at once


class GpuLost(Exception):
    """A GPU that was there no longer answers; the text is why. It must not be asked again."""


@dataclass(frozen=True)
class Gpu:
    """What does not change about a GPU, or about a slice of one."""

    uuid: str
    index: int  # NVML's, of a slice that of the whole GPU
    name: str
    bytes_total: int | None
    slice: str = ""  # as nvidia-smi names it: "MIG 1g.10gb Device 0"; empty: a whole GPU
    part_of: str = ""  # the UUID of the whole GPU

    @property
    def label(self) -> str:
        return gpu_label(self.index, self.slice)


class _Handles(NamedTuple):
    """NVML's handles of a GPU; of a slice its own, and that of the whole GPU, which has the clocks."""

    own: Any
    whole: Any


class GpuReading(NamedTuple):
    """What a GPU said, and why it did not say the rest."""

    values: dict[str, float]
    missing: dict[str, str]


def open_gpus(root: Path = Path("/")) -> "Gpus | str":
    """Start NVML; where that cannot be done return why, in a sentence. `root` is where /proc is looked for."""
    nvml = _import_nvml()
    if isinstance(nvml, str):
        return nvml
    try:
        nvml.nvmlInit()
        gpus = Gpus(nvml, root)
    except nvml.NVMLError as problem:
        return _REASONS.get(problem.value, f"NVML does not start: {problem}")
    return gpus if gpus.found or gpus.unusable else "the NVIDIA driver sees no GPU"


def throttle_names(mask: int) -> list[str]:
    """Return in words what holds the clocks down."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return [_THROTTLES.get(bit, f"bit {bit:#x}") for bit in bits]


class Gpus:
    """The GPUs that NVML found when it was started, and their slices; those that come later are not seen."""

    def __init__(self, nvml: Any, root: Path) -> None:
        self.found: list[Gpu] = []
        self.unusable: dict[int, str] = {}  # NVML's index -> why
        self.no_pids = why_pids_mean_nothing(root)
        self.errors = Errors(nvml)
        self.others: dict[
            str, list[Other]
        ] = {}  # who was there besides us, when PROCESSES of a GPU were told last
        self._nvml, self._root = nvml, root
        self._handles: dict[str, _Handles] = {}
        self._shares: dict[str, Shares] = {}
        self._strange: dict[str, str] = {}  # uuid -> why its processes cannot be told apart
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                self._take(index)
            except (nvml.NVMLError, ValueError) as problem:  # the others may be well
                self.unusable[index] = str(problem)

    @property
    def whole(self) -> list[Gpu]:
        """The GPUs without their slices."""
        return [gpu for gpu in self.found if not gpu.slice]

    def facts(self) -> dict[str, Any]:
        """Return the versions of the driver, of its library, and the newest CUDA it can run."""
        nvml = self._nvml
        return gather(
            {
                "driver": lambda: show(nvml.nvmlSystemGetDriverVersion(), 100),
                "nvml": lambda: show(nvml.nvmlSystemGetNVMLVersion(), 100),
                "cuda": lambda: "{}.{}".format(
                    *divmod(nvml.nvmlSystemGetCudaDriverVersion_v2() // 10, 100)
                ),
            }
        )

    def read(
        self,
        gpu: Gpu,
        names: Collection[str] = tuple(METERS),
        ours: Collection[int] = (),
        *,
        must_be_there: bool = False,
    ) -> GpuReading:
        """Ask a GPU for its meters, or for some of them, for SHARE and PROCESSES; `ours` are the pids of the run's own.

        One of those computes there if it `must_be_there`; else the driver's pids are not those seen here.
        """
        reading = GpuReading({}, {})
        handles = self._handles[gpu.uuid]
        try:
            for name, (call, most) in METERS.items():
                if name in names and (not gpu.slice or name in METERS_OF_SLICE):
                    self._ask(
                        reading,
                        name,
                        call,
                        handles.own if name == "memory_used_bytes" else handles.whole,
                        most,
                    )
            if PROCESSES in names:
                self._ask_processes(reading, gpu, ours, must_be_there)
            if SHARE in names:
                self._ask(
                    reading, SHARE, lambda nvml, handle: self._share(gpu, handle, ours), handles.own
                )
        except GpuLost as lost:
            self._forget(gpu)
            raise GpuLost(f"{lost}{self.errors.after(gpu.part_of or gpu.uuid)}") from lost
        if not reading.values and set(METERS) <= set(names):
            self._forget(gpu)
            raise GpuLost(
                f"answers nothing: {next(iter(reading.missing.values()), 'no reason given')}"
            )
        return reading

    def settings(
        self, gpu: Gpu, questions: Mapping[str, Callable[[Any, Any], Any]] = BOARD
    ) -> dict[str, Any]:
        """Return how a GPU is set and plugged in, or of that what is asked; of a slice what is true of the whole."""
        handle = self._handles[gpu.uuid].whole
        return gather({name: partial(ask, self._nvml, handle) for name, ask in questions.items()})

    def has_mig(self, gpu: Gpu) -> bool:
        """Say whether a GPU is cut into slices; one that cannot be is not. NotKnown where it does not tell."""
        nvml = self._nvml
        try:
            return bool(nvml.nvmlDeviceGetMigMode(self._handles[gpu.uuid].whole)[0])
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            return False
        except nvml.NVMLError as problem:
            raise NotKnown(str(problem)) from problem

    def peers(self, gpu: Gpu) -> list[str]:
        """Return of each other GPU why this one cannot read its memory directly, or nothing where the driver lets it.

        NotKnown where the driver does not tell.
        """
        nvml, own = self._nvml, self._handles[gpu.uuid].own
        others = [one for one in self.whole if one.uuid != gpu.uuid]
        try:
            found = [
                nvml.nvmlDeviceGetP2PStatus(own, self._handles[one.uuid].own, _READ)
                for one in others
            ]
        except nvml.NVMLError as problem:
            raise NotKnown(str(problem)) from problem
        return [_REFUSALS.get(status, f"status {status}") for status in found]

    def tenants(self, gpu: Gpu) -> list[Other]:
        """Return who computes on a GPU, ours too, without users where pids mean nothing here; NotKnown where it is not told."""
        try:
            listed = self._nvml.nvmlDeviceGetComputeRunningProcesses_v3(self._handles[gpu.uuid].own)
        except self._nvml.NVMLError as problem:
            raise NotKnown(str(problem)) from problem
        found = others_of(listed, (), self._root)
        return [one._replace(user="", why=self.no_pids) for one in found] if self.no_pids else found

    def _take(self, index: int) -> None:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        gpu = Gpu(
            show(nvml.nvmlDeviceGetUUID(handle), 100),
            index,
            name_of(nvml, handle),
            bytes_total(nvml, handle),
        )
        self._add(gpu, _Handles(handle, handle))
        self.errors.listen(gpu.uuid, handle)
        for words, piece in slices(nvml, handle):
            with contextlib.suppress(nvml.NVMLError, ValueError):  # the others may be well
                uuid = show(nvml.nvmlDeviceGetUUID(piece), 100)
                found = Gpu(
                    uuid, index, name_of(nvml, piece), bytes_total(nvml, piece), words, gpu.uuid
                )
                self._add(found, _Handles(piece, handle))

    def _add(self, gpu: Gpu, handles: _Handles) -> None:
        self._handles[gpu.uuid] = handles
        self._shares[gpu.uuid] = Shares()
        self._strange[gpu.uuid] = self.no_pids
        self.found.append(gpu)

    def _forget(self, gpu: Gpu) -> None:
        self.found.remove(gpu)
        del self._handles[gpu.uuid]

    def _ask(
        self,
        reading: GpuReading,
        name: str,
        call: Callable[[Any, Any], float | None],
        handle: Any,
        most: float = float("inf"),
    ) -> None:
        """Note the answer to one question, or why there is none; raise when the GPU is lost."""
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
            if value is not None and 0 <= value <= most:
                reading.values[name] = value
            elif value is not None:
                reading.missing[name] = f"the driver said {value:g}, which cannot be"

    def _ask_processes(
        self, reading: GpuReading, gpu: Gpu, ours: Collection[int], must_be_there: bool
    ) -> None:
        """Note how many processes of others are there, and the memory of the run's own, left out where none of them is seen."""
        listed: list[Any] = []

        def count(nvml: Any, handle: Any) -> float:
            if self.no_pids:
                raise ValueError(self.no_pids)
            listed.extend(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))
            return strangers(listed, ours, must_be_there=must_be_there)

        handle = self._handles[gpu.uuid].own
        self._ask(reading, "foreign_processes", count, handle)
        self._strange[gpu.uuid] = why = reading.missing.pop("foreign_processes", "")
        if why:
            reading.missing[PROCESSES] = why
        else:
            self.others[gpu.uuid] = others_of(listed, ours, self._root)
            self._ask(reading, "memory_tree_bytes", lambda *_: memory_of(listed, ours), handle)

    def _share(self, gpu: Gpu, handle: Any, ours: Collection[int]) -> float | None:
        """Return how busy others keep a GPU; nothing where its processes cannot be told apart, as was said of those."""
        if gpu.slice:
            raise ValueError("the driver does not report it for a slice (MIG)")
        return (
            None
            if self._strange[gpu.uuid]
            else self._shares[gpu.uuid].of_others(self._nvml, handle, ours)
        )


def _import_nvml() -> Any:
    """Return NVIDIA's module, or why it is not there; a package of the same name gives wrong numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the deprecated distribution warns although NVIDIA's is there too
            import pynvml
    except ImportError:
        return "the package nvidia-ml-py is not installed: pip install nvidia-ml-py"
    if hasattr(pynvml, "__path__") or not hasattr(
        pynvml, "nvmlDeviceGetComputeRunningProcesses_v3"
    ):  # NVIDIA's is one file
        return "the module pynvml is not from NVIDIA: pip uninstall -y pynvml; pip install --force-reinstall nvidia-ml-py"
    return pynvml


def slices(nvml: Any, handle: Any) -> Iterator[tuple[str, Any]]:
    """Yield `MIG 1g.10gb Device 0` and NVML's handle of each slice of a GPU; one that is whole has none."""
    try:
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except (AttributeError, nvml.NVMLError):
        return  # it cannot be cut, or this driver does not know how
    for number in range(most):
        try:
            piece = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            profile = (
                name_of(nvml, piece).rpartition(" MIG ")[2]
                if " MIG " in name_of(nvml, piece)
                else ""
            )
        except nvml.NVMLError:  # nothing has this number
            continue
        yield " ".join(word for word in ("MIG", profile, "Device", str(number)) if word), piece


class Errors:
    """Listens to GPUs, each known by its UUID; the driver has their errors in a queue, so that no GPU is asked for them."""

    def __init__(self, nvml: Any) -> None:
        self.deaf: dict[str, str] = {}  # uuid -> why its errors are not heard
        self._nvml = nvml
        self._events: dict[str, Any] = {}  # uuid -> a set of events of this one GPU
        self._last: dict[str, int] = {}

    def listen(self, uuid: str, handle: Any) -> None:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
        except (AttributeError, nvml.NVMLError) as problem:
            self.deaf[uuid] = str(problem)
        else:
            self._events[uuid] = events

    def next(self, uuid: str) -> list[int]:
        """Return the numbers of the errors that came since this was asked last."""
        found: list[int] = []
        while uuid in self._events and len(found) < _MOST:
            try:
                found.append(int(self._nvml.nvmlEventSetWait_v2(self._events[uuid], 0).eventData))
            except self._nvml.NVMLError as problem:
                if problem.value != _TIMEOUT_CODE:
                    self.deaf[uuid] = str(problem)
                    del self._events[uuid]
                break
        if found:
            self._last[uuid] = found[-1]
        return found

    def after(self, uuid: str) -> str:
        """Return ` after Xid 79` where that was the last error, to be put behind a sentence."""
        return f" after Xid {self._last[uuid]}" if uuid in self._last else ""
