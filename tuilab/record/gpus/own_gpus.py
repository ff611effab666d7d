"""Finds the GPUs of a run, and collects what was measured on them over time.

A run has a GPU if it was given that GPU, raced on it, or was seen there: by torch in one of its
workers, or by the driver. All views show these GPUs, and other GPUs only on request.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tuilab.record.events import OWN_PROCESS, GpuFound, RaceStarted
from tuilab.record.gpus.raced_gpu import nvml_uuid, torch_uuid
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim, GpuState
from tuilab.text.display import show

# Bits of nvml.h: hardware slowdown, software and hardware thermal slowdown, power brake. Idleness,
# clocks set by the user and the power cap are left out: an arm that uses a GPU up to its power cap
# is measured as it is.
HELD_BACK = 0x8 | 0x20 | 0x40 | 0x80
MASKS = 1 << 16  # greater masks are not possible
_IDLE = 0x1
# A reading holds until the next one, but no longer than this. A GPU without a race is asked every
# ten seconds.
_LONGEST_NS = 12_000_000_000
_SHORTEST_NS = 500_000_000  # for which the last reading holds

Lines = list[tuple[str, Series]]  # each with its name; lines of one name belong together


class OwnGpu(NamedTuple):
    """A GPU of a run, as torch and NVML know it."""

    torch_uuid: str  # empty if torch did not report it
    nvml: GpuFound | None  # None if NVML did not report it

    @property
    def nvml_uuid(self) -> str:
        return self.nvml.uuid if self.nvml else ""


# ---- which GPUs


def own_gpus(summary: RunSummary) -> list[OwnGpu]:
    """Return the GPUs of a run: first those that torch reported, then those of the driver."""
    uuids = [torch_uuid("", facts) for facts in summary.cuda.values()]
    uuids += [race.uuid for _, race in summary.races]
    uuids += summary.gpus_held
    gpus = []
    nvml_uuids = set()
    for uuid in dict.fromkeys(uuids):  # each of them once
        if uuid:
            by_nvml = nvml_uuid(uuid, summary.gpus)
            nvml_uuids.add(by_nvml)
            gpus.append(OwnGpu(uuid, summary.gpus.get(by_nvml)))
    for uuid, gpu in summary.gpus.items():
        is_used = f"{uuid} memory_tree_bytes" in summary.resources
        if is_used and uuid not in nvml_uuids:
            gpus.append(OwnGpu("", gpu))
    return gpus


def other_gpus(summary: RunSummary) -> list[GpuFound]:
    """Return the GPUs of the machine that the run does not have."""
    own = {gpu.nvml_uuid for gpu in own_gpus(summary)}
    return [gpu for uuid, gpu in summary.gpus.items() if uuid not in own]


def gpu_of_claim(claim: Claim, summary: RunSummary) -> tuple[str, str]:
    """Return the UUID and the name of the GPU on which a claim was measured.

    That is the GPU of its race. Without a race, it is the GPU of the workers that measured the
    claim. Several GPUs are joined by commas; both texts are empty if there is none.
    """
    uuids = _uuids_of_races(claim, summary)
    if uuids is None:
        uuids = set()
        for writer in claim.measured_in:
            if writer in summary.cuda:
                uuids.add(torch_uuid("", summary.cuda[writer]))
    sorted_uuids = sorted(uuid for uuid in uuids if uuid)
    names = dict.fromkeys(name_of_gpu(uuid, summary) for uuid in sorted_uuids)
    return ", ".join(sorted_uuids), ", ".join(names)


def _uuids_of_races(claim: Claim, summary: RunSummary) -> set[str] | None:
    """Return the GPUs of the races that a claim is about; None if there was no such race."""
    if claim.declared is None:
        return None
    arms = {claim.declared.over, claim.declared.under}
    races = [(writer, race) for writer, race in summary.races if arms <= set(race.arms)]
    if not races:
        return None
    return {_uuid_of_race(summary, writer, race) for writer, race in races}


def _uuid_of_race(summary: RunSummary, writer: str, race: RaceStarted) -> str:
    """Return the GPU of a race; empty for a race on the CPU.

    A race between processes has the GPU of its arms: the run keeps them on one.
    """
    if race.device != OWN_PROCESS:
        if race.uuid or race.device.startswith("cuda"):
            return torch_uuid(race.uuid, summary.cuda.get(writer, {}))
        return ""
    repeat = 0
    if writer in summary.workers:
        repeat = summary.workers[writer].repeat
    for name, worker in summary.workers.items():
        is_arm = worker.started is not None and worker.started.arm != ""
        if is_arm and worker.repeat == repeat and name in summary.cuda:
            return torch_uuid("", summary.cuda[name])
    return ""


# ---- names


def name_of_gpu(uuid: str, summary: RunSummary) -> str:
    """Return the model of a GPU that torch calls `uuid`, as torch or else NVML names it.

    Empty if neither knows it.
    """
    for facts in summary.cuda.values():
        for device in _devices(facts):
            if device.get("uuid") == uuid and device.get("name"):
                return show(device["name"], 100)
    gpu = summary.gpus.get(nvml_uuid(uuid, summary.gpus))
    if gpu is None:
        return ""
    return show(gpu.name, 100)


def label_of(gpu: OwnGpu, summary: RunSummary) -> str:
    """Return a short name of a GPU: with the number that NVML gives it, else torch's."""
    if gpu.nvml:
        return show(gpu.nvml.label)
    for facts in summary.cuda.values():
        for index, device in enumerate(_devices(facts)):
            if str(device.get("uuid", "")) == gpu.torch_uuid:
                return f"cuda:{index}"
    return "GPU"


def _devices(facts: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the GPUs that torch sees, in its order; one that is not described well is empty."""
    devices = facts.get("devices")
    if not isinstance(devices, list):
        return []
    checked: list[Mapping[str, object]] = []
    for device in devices:
        checked.append(device if isinstance(device, dict) else {})
    return checked


# ---- measurements over time


def memory_lines(summary: RunSummary, *, has_others: bool = False) -> Lines:
    """Return the memory of a run's GPUs and of its processes, on request also of the other GPUs.

    For each GPU these are the bytes in use, by all processes and by this run, as the driver reports
    them, and the bytes that torch reserved and allocated.
    """
    own = own_gpus(summary)
    foreign = other_gpus(summary) if has_others else []
    has_several = len(own) + len(foreign) > 1
    lines: Lines = []
    for gpu in own:
        prefix = ""
        if has_several:
            prefix = f"{label_of(gpu, summary)} "
        lines += _line_of(summary, gpu.nvml_uuid, "memory_used_bytes", f"{prefix}device")
        lines += _line_of(summary, gpu.nvml_uuid, "memory_tree_bytes", f"{prefix}run")
        for metric, word in (("reserved_bytes", "reserved"), ("allocated_bytes", "allocated")):
            for series in held_lines(summary, gpu.torch_uuid, metric):
                lines.append((f"{prefix}{word}", series))
    processes = summary.resources.get("rss_bytes")
    if processes:
        lines.append(("processes", processes))
    for other_gpu in foreign:
        name = f"{show(other_gpu.label)} device"
        lines += _line_of(summary, other_gpu.uuid, "memory_used_bytes", name)
    return lines


def memory_title(summary: RunSummary, *, has_others: bool = False) -> str:
    """Return the title of a chart of memory; it names the GPU if the lines do not."""
    own = own_gpus(summary)
    if len(own) == 1 and not has_others:
        return f"memory, {label_of(own[0], summary)}"
    return "memory"


def held_lines(summary: RunSummary, uuid: str, metric: str) -> list[Series]:
    """Return what torch holds on the GPU that it calls `uuid`: one line for each process."""
    lines = []
    for writer in summary.gpus_held.get(uuid, ()):
        series = summary.resources.get(f"{uuid} {metric} {writer}")
        if series:
            lines.append(series)
    return lines


def of_gpus(summary: RunSummary, metric: str, word: str) -> Lines:
    """Return a metric of NVML, such as `power_w`, for each GPU of the run."""
    lines: Lines = []
    for own in own_gpus(summary):
        if own.nvml:
            name = f"{show(own.nvml.label)} {word}".strip()
            lines += _line_of(summary, own.nvml_uuid, metric, name)
    return lines


def _line_of(summary: RunSummary, uuid: str, metric: str, name: str) -> Lines:
    """Return a list with the line of a metric of NVML; an empty one if it was not measured."""
    series = summary.resources.get(f"{uuid} {metric}")
    if not uuid or not series:
        return []
    return [(name, series)]


# ---- throttled clocks


class Throttled(NamedTuple):
    """A period in which the clocks of a GPU were lowered, on the clock of the records."""

    begin_t: int
    end_t: int
    mask: int  # as in nvml.h

    @property
    def is_held_back(self) -> bool:
        """Whether this disturbs measurements; clocks that were set, and the power cap, do not."""
        return bool(self.mask & HELD_BACK)


class Throttling:
    """The periods in which the clocks of GPUs were lowered, idleness left out.

    While a run is in progress, only its new readings are processed.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._count = 0  # of processed readings
        self._newest: GpuState | None = None  # of the processed readings
        self._last: dict[str, tuple[int, int]] = {}  # by GPU: time and mask of its last reading
        self._periods: dict[str, list[Throttled]] = {}  # by GPU: up to that reading

    def of(self, summary: RunSummary, uuid: str) -> list[Throttled]:
        """Return the periods of a GPU. A reading holds until the next one."""
        self._process(summary.gpu_states)
        periods = self._periods.get(uuid, [])[:]
        if uuid in self._last:
            t, mask = self._last[uuid]
            _append(periods, t, mask, t + _SHORTEST_NS)
        return periods

    def _process(self, states: Sequence[GpuState]) -> None:
        """Process the new readings.

        Begin again if these are other readings, or if a new reading is older than the last.
        """
        if self._count and self._is_another_list(states):
            self._begin()
        new_states = _in_order(states[self._count :])
        if any(self._is_older(state) for state in new_states):
            self._begin()
            new_states = _in_order(states)
        for state in new_states:
            if state.throttle_mask is not None and 0 <= state.throttle_mask < MASKS:
                self._add(state.uuid, state.t, state.throttle_mask & ~_IDLE)
        self._count = len(states)
        self._newest = states[-1] if states else None

    def _is_another_list(self, states: Sequence[GpuState]) -> bool:
        return len(states) < self._count or states[self._count - 1] is not self._newest

    def _is_older(self, state: GpuState) -> bool:
        return state.uuid in self._last and state.t < self._last[state.uuid][0]

    def _add(self, uuid: str, t: int, mask: int) -> None:
        """Add a reading: the period of the previous one ends where it begins."""
        if uuid in self._last:
            last_t, last_mask = self._last[uuid]
            _append(self._periods.setdefault(uuid, []), last_t, last_mask, t)
        self._last[uuid] = t, mask


def _in_order(states: Sequence[GpuState]) -> list[GpuState]:
    return sorted(states, key=lambda state: state.t)


def _append(periods: list[Throttled], t: int, mask: int, end_t: int) -> None:
    """Add the period of a reading at `t`, which holds until the next reading at `end_t`."""
    end_t = min(end_t, t + _LONGEST_NS)
    if periods and (periods[-1].end_t, periods[-1].mask) == (t, mask):
        periods[-1] = periods[-1]._replace(end_t=end_t)
    elif mask:
        periods.append(Throttled(t, end_t, mask))
