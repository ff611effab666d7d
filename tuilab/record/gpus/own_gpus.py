"""Which GPUs are those of a run, and what is known of them along time: every view shows these, and others only when asked to.

A run has a GPU if it was given it, raced on it, or was seen there: by torch in one of its workers, or by the driver.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tuilab.record.events import GpuFound, RaceStarted
from tuilab.record.gpus.raced_gpu import nvml_uuid, torch_uuid
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim, GpuState
from tuilab.text.display import show

# Of nvml.h: hardware slowdown, software and hardware thermal slowdown, power brake. Not idle, nor clocks set by the user, nor
# the power cap: an arm that works a GPU to its cap is measured as it is.
HELD_BACK = 0x8 | 0x20 | 0x40 | 0x80
MASKS = 1 << 16  # that there can be
_IDLE = 0x1
_LONGEST_NS = 12_000_000_000  # that a reading speaks for: a GPU that is not raced on is asked every ten seconds
_SHORTEST_NS = 500_000_000

Lines = list[tuple[str, Series]]  # each by what it is of; lines of one name belong together


class OwnGpu(NamedTuple):
    """A GPU of a run, by the names that torch and NVML have for it."""

    torchs: str  # empty: torch has not told
    found: GpuFound | None  # None: NVML has not

    @property
    def nvmls(self) -> str:
        return self.found.uuid if self.found else ""


class Throttled(NamedTuple):
    """A stretch of time in which something held the clocks of a GPU down, on the clock of the records."""

    begin_t: int
    end_t: int
    mask: int  # as in nvml.h

    @property
    def is_held_back(self) -> bool:
        """Whether that disturbs what is measured: not what the GPU was set to, nor its power cap."""
        return bool(self.mask & HELD_BACK)


def own_gpus(summary: RunSummary) -> list[OwnGpu]:
    """Return the GPUs of a run, in the order in which they came to be."""
    told = [torch_uuid("", facts) for facts in summary.cuda.values()]
    told += [race.uuid for _, race in summary.races] + [*summary.gpus_held]
    torchs = {uuid: nvml_uuid(uuid, summary.gpus) for uuid in dict.fromkeys(told) if uuid}
    seen = [uuid for uuid in summary.gpus if f"{uuid} memory_tree_bytes" in summary.resources]
    found = [OwnGpu(uuid, summary.gpus.get(nvmls)) for uuid, nvmls in torchs.items()]
    return found + [OwnGpu("", summary.gpus[uuid]) for uuid in seen if uuid not in torchs.values()]


def other_gpus(summary: RunSummary) -> list[GpuFound]:
    """Return the GPUs of the box that are not the run's."""
    own = {gpu.nvmls for gpu in own_gpus(summary)}
    return [gpu for uuid, gpu in summary.gpus.items() if uuid not in own]


def gpu_of_claim(claim: Claim, summary: RunSummary) -> tuple[str, str]:
    """Return the UUID and the name of the GPU on which a claim was measured: of its race, else the one that its workers had."""
    arms = {claim.declared.over, claim.declared.under} if claim.declared else set()
    raced = [(writer, race) for writer, race in summary.races if arms and arms <= set(race.arms)]
    uuids = {_uuid_of_race(summary, writer, race) for writer, race in raced}
    if not raced:
        uuids = {
            torch_uuid("", summary.cuda[writer])
            for writer in claim.measured_in
            if writer in summary.cuda
        }
    known = sorted(uuid for uuid in uuids if uuid)
    names = dict.fromkeys(name_of_gpu(uuid, summary) for uuid in known)
    return ", ".join(known), ", ".join(names)


def name_of_gpu(torchs: str, summary: RunSummary) -> str:
    """Return the model of a GPU: as torch names it, else NVML."""
    devices = (
        one
        for facts in summary.cuda.values()
        for one in _devices(facts)
        if one.get("uuid") == torchs
    )
    found = summary.gpus.get(nvml_uuid(torchs, summary.gpus))
    return show(
        next((one["name"] for one in devices if one.get("name")), found.name if found else ""), 100
    )


def _uuid_of_race(summary: RunSummary, writer: str, race: RaceStarted) -> str:
    """Return the GPU of a race; of one between processes that of the arms, which the run keeps to one."""
    if race.device != "process":
        is_there = race.uuid or race.device.startswith("cuda")
        return torch_uuid(race.uuid, summary.cuda.get(writer, {})) if is_there else ""
    repeat = summary.workers[writer].repeat if writer in summary.workers else 0
    apart = (
        one
        for one, worker in summary.workers.items()
        if worker.started and worker.started.arm and worker.repeat == repeat
    )
    return next((torch_uuid("", summary.cuda[one]) for one in apart if one in summary.cuda), "")


def label_of(gpu: OwnGpu, summary: RunSummary) -> str:
    """Return what a GPU is called: as NVML counts, else as torch does."""
    if gpu.found:
        return show(gpu.found.label)
    names = (
        name
        for facts in summary.cuda.values()
        for name, uuid in _counted(facts)
        if uuid == gpu.torchs
    )
    return next(names, "GPU")


def memory_lines(summary: RunSummary, *, has_others: bool = False) -> Lines:
    """Return the memory of a run's GPUs and of its processes, on request also of the other GPUs.

    Of a GPU that is what the driver says is used there, by all and by this run, and what torch has reserved and given out.
    """
    found: Lines = []
    own, others = own_gpus(summary), other_gpus(summary) if has_others else []
    for gpu in own:
        name = f"{label_of(gpu, summary)} " if len(own) + len(others) > 1 else ""
        found += _of(
            summary,
            gpu.nvmls,
            {"memory_used_bytes": f"{name}device", "memory_tree_bytes": f"{name}run"},
        )
        found += [
            (f"{name}{word}", one)
            for metric, word in _OF_TORCH
            for one in held_lines(summary, gpu.torchs, metric)
        ]
    if processes := summary.resources.get("rss_bytes"):
        found.append(("processes", processes))
    for other in others:
        found += _of(summary, other.uuid, {"memory_used_bytes": f"{show(other.label)} device"})
    return found


def memory_title(summary: RunSummary, *, has_others: bool = False) -> str:
    """Return what the lines of memory are of: where a run has one GPU, it has no other place to be named."""
    own = own_gpus(summary)
    return f"memory, {label_of(own[0], summary)}" if len(own) == 1 and not has_others else "memory"


_OF_TORCH = (("reserved_bytes", "reserved"), ("allocated_bytes", "allocated"))


def held_lines(summary: RunSummary, torchs: str, metric: str) -> list[Series]:
    """Return what torch holds on a GPU, a line for each process of the run that has told."""
    writers = summary.gpus_held.get(torchs, ())
    known = (summary.resources.get(f"{torchs} {metric} {writer}") for writer in writers)
    return [series for series in known if series]


def of_gpus(summary: RunSummary, metric: str, word: str) -> Lines:
    """Return something that NVML tells, as `power_w`, of each GPU of the run."""
    found = [gpu.found for gpu in own_gpus(summary) if gpu.found]
    return [
        line
        for gpu in found
        for line in _of(summary, gpu.uuid, {metric: f"{show(gpu.label)} {word}".strip()})
    ]


class Throttling:
    """When something held the clocks of GPUs down, idleness apart; of a run that goes on only what is new is gone through."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._taken = 0
        self._newest: GpuState | None = None  # of those that were taken
        self._last: dict[
            str, tuple[int, int]
        ] = {}  # by GPU the time and the mask of its last reading
        self._spans: dict[str, list[Throttled]] = {}  # by GPU, until then

    def of(self, summary: RunSummary, uuid: str) -> list[Throttled]:
        """Return when that was on a GPU; a reading speaks until the next one."""
        self._take(summary.gpu_states)
        found = self._spans.get(uuid, [])[:]
        if uuid in self._last:
            _append(found, *self._last[uuid], self._last[uuid][0] + _SHORTEST_NS)
        return found

    def _take(self, states: Sequence[GpuState]) -> None:
        """Go on behind what was taken; where that is not there, or what comes is older, begin again."""
        if self._taken and (
            len(states) < self._taken or states[self._taken - 1] is not self._newest
        ):
            self._begin()
        new = _in_order(states[self._taken :])
        if any(one.uuid in self._last and one.t < self._last[one.uuid][0] for one in new):
            self._begin()
            new = _in_order(states)
        for one in new:
            if one.throttle_mask is not None and 0 <= one.throttle_mask < MASKS:
                self._add(one.uuid, one.t, one.throttle_mask & ~_IDLE)
        self._taken, self._newest = len(states), states[-1] if states else None

    def _add(self, uuid: str, t: int, mask: int) -> None:
        if uuid in self._last:
            _append(self._spans.setdefault(uuid, []), *self._last[uuid], t)
        self._last[uuid] = t, mask


def _in_order(states: Sequence[GpuState]) -> list[GpuState]:
    return sorted(states, key=lambda one: one.t)


def _append(spans: list[Throttled], t: int, mask: int, end_t: int) -> None:
    """Add for what a reading at `t` speaks, until the next one."""
    end_t = min(end_t, t + _LONGEST_NS)
    if spans and (spans[-1].end_t, spans[-1].mask) == (t, mask):
        spans[-1] = spans[-1]._replace(end_t=end_t)
    elif mask:
        spans.append(Throttled(t, end_t, mask))


def _of(summary: RunSummary, uuid: str, metrics: dict[str, str]) -> Lines:
    known = ((name, summary.resources.get(f"{uuid} {metric}")) for metric, name in metrics.items())
    return [(name, series) for name, series in known if uuid and series]


def _counted(facts: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each GPU that torch sees, as it is called there, and its UUID."""
    for index, device in enumerate(_devices(facts)):
        yield f"cuda:{index}", str(device.get("uuid", ""))


def _devices(facts: Mapping[str, object]) -> list[Mapping[str, object]]:
    devices = facts.get("devices")
    return (
        [one if isinstance(one, dict) else {} for one in devices]
        if isinstance(devices, list)
        else []
    )
