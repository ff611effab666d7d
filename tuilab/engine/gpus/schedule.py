"""What the GPUs are asked and when: the one that is raced on twice a second, the others seldom, and all of it for little.

On a GPU of today a question is a call to a processor of its own, and may take milliseconds. Of the GPU that is raced on there
are four each half second: three that verdicts need, and one for the charts, which take turns. Whatever else there is to know
is asked every ten seconds. As long as nobody races, all GPUs are asked as often as their price allows.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from tuilab.engine.gpus.raced import Raced
from tuilab.probes.gpu.meters import METERS
from tuilab.probes.gpu.nvml import PROCESSES, SHARE, Gpu, GpuLost, Gpus
from tuilab.probes.gpu.tenants import GpuProcess
from tuilab.record.events import GpuShared, Tenant, Unavailable, XidReported
from tuilab.record.gpus.raced_gpu import nvml_uuid
from tuilab.record.journal.writer import Writer

PERIOD_S = 0.5
SELDOM_S = 10.0
GPU_SHARE = 0.005  # of a core at most, for all that is not about the GPU of the race
CLOCKS = ("sm_mhz", "throttle_mask")
_TURNS = ("memory_used_bytes", "power_w", PROCESSES, "memory_used_bytes", "busy_percent", PROCESSES)
_SELDOM = tuple(name for name in METERS if name not in {*CLOCKS, *_TURNS})
_MOST_TENANTS = 20  # that are told of by name
_USUAL = (*(name for name in METERS if name != "ecc_uncorrected"), PROCESSES)

Readings = dict[str, dict[str, float]]


class GpuContext(NamedTuple):
    """What there is to know before the GPUs are asked."""

    ours: Collection[int] = ()  # pids
    raced: Raced = Raced()


class GpuAnswers(NamedTuple):
    """What the GPUs have said, and when they were asked, in nanoseconds of CLOCK_MONOTONIC."""

    readings: Readings
    asked: dict[str, int]


class GpuSchedule:
    """Asks the GPUs: `answer` each half second, and in between `ask_next` as long as there `is_more`."""

    def __init__(
        self,
        gpus: Gpus,
        journal: Writer,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cost_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._gpus = gpus
        self._journal = journal
        self._clock_ns = clock_ns
        self._cost_s = cost_s
        self._question = GpuContext()
        self._raced = ""  # NVML's uuid
        self._turn = 0
        self._waiting: deque[tuple[Gpu, Collection[str]]] = deque()
        self._began_s, self._cost_of_round_s = (
            -math.inf,
            0.0,
        )  # of what is asked in between: when it was listed, and its price
        self._seldom_due_s = self._raced_due_s = 0.0
        self._late = GpuAnswers({}, {})
        self._explained: set[str] = set()
        self._tenants: dict[str, list[Tenant]] = {}  # by GPU, as they were told last
        self._told_s: dict[str, float] = {}  # and when

    @property
    def is_more(self) -> bool:
        return bool(self._waiting)

    def answer(self, question: GpuContext) -> GpuAnswers:
        """Return what the GPU of the race says now, and what the others have said since this was called last."""
        self._question = question
        known = {gpu.uuid: gpu for gpu in self._gpus.available}
        raced = nvml_uuid(question.raced.uuid, known) if question.raced.uuid else ""
        if raced != self._raced:
            self._raced, self._raced_due_s, self._began_s = raced, 0.0, -math.inf
            self._waiting.clear()
        if raced:
            self._ask_raced(known[raced])
        self._plan()
        said, self._late = self._late, GpuAnswers({}, {})
        return said

    def ask_next(self) -> None:
        """Ask one GPU what is next on the list."""
        gpu, names = self._waiting.popleft()
        began_s = self._cost_s()
        self._hear_errors(gpu)
        self._ask(gpu, names)
        if gpu.uuid != self._raced:
            self._cost_of_round_s += self._cost_s() - began_s

    def _ask_raced(self, gpu: Gpu) -> None:
        self._hear_errors(
            gpu
        )  # each time: the run that an error ends is over before ten seconds are
        if self._now_s() >= self._raced_due_s:
            self._raced_due_s = self._now_s() + SELDOM_S
            self._ask(
                gpu, [PROCESSES]
            )  # which of them are ours must be known before the shares of the others are
            self._waiting.extendleft((gpu, [name]) for name in _SELDOM)
        asked_ns = self._clock_ns()
        self._ask(gpu, CLOCKS)
        if self._clock_ns() - asked_ns > PERIOD_S * 1e9:
            self._disown_clocks(gpu)
        self._ask(gpu, [SHARE, _TURNS[self._turn % len(_TURNS)]])
        self._turn += 1
        if gpu.uuid in self._late.readings:
            self._late.asked[gpu.uuid] = asked_ns

    def _disown_clocks(self, gpu: Gpu) -> None:
        """Leave out clocks of which it is not known for which half second they speak."""
        for name in CLOCKS:
            self._late.readings.get(gpu.uuid, {}).pop(name, None)
        self._explain(gpu, {"clocks": "the driver takes longer to tell them than they speak for"})

    def _plan(self) -> None:
        """List what the others are to be asked, when that is due and the list is empty."""
        now_s = self._now_s()
        pause_s = SELDOM_S if self._raced else PERIOD_S / 2
        if self._waiting or now_s < self._began_s + max(pause_s, self._cost_of_round_s / GPU_SHARE):
            return
        self._began_s, self._cost_of_round_s = now_s, 0.0
        for gpu in self._gpus.available:
            if (
                self._raced and gpu.uuid != self._raced
            ):  # one question at a time: the next of the race waits for no more
                self._waiting.extend((gpu, [name]) for name in (*METERS, PROCESSES))
            elif not self._raced:
                self._waiting.append(
                    (gpu, (*METERS, PROCESSES) if now_s >= self._seldom_due_s else _USUAL)
                )
        if now_s >= self._seldom_due_s:
            self._seldom_due_s = now_s + SELDOM_S

    def _ask(self, gpu: Gpu, names: Collection[str]) -> None:
        if gpu not in self._gpus.available:  # it was lost meanwhile
            return
        asked_ns = self._clock_ns()
        raced = self._question.raced
        must_be_there = raced.is_going_on and gpu.uuid == self._raced
        try:
            reading = self._gpus.read(gpu, names, self._question.ours, must_be_there=must_be_there)
        except GpuLost as lost:
            self._journal.append(Unavailable(what=gpu.uuid, reason=str(lost)))
            return
        self._explain(gpu, reading.missing)
        if "foreign_processes" in reading.values and (
            gpu.uuid == self._raced or "memory_tree_bytes" in reading.values
        ):
            self._tell_tenants(gpu, self._gpus.foreign_processes[gpu.uuid])
        if reading.values:
            self._late.readings.setdefault(gpu.uuid, {}).update(reading.values)
            self._late.asked.setdefault(gpu.uuid, asked_ns)

    def _hear_errors(self, gpu: Gpu) -> None:
        """Record what the driver reports; it tells which whole GPU it is about, and not which slice."""
        whole = gpu.part_of or gpu.uuid
        for xid in self._gpus.errors.next(whole):
            self._journal.append(XidReported(uuid=whole, xid=xid))
        if (why := self._gpus.errors.deaf.get(whole)) and not gpu.slice:
            self._explain(gpu, {"xid": why})

    def _tell_tenants(self, gpu: Gpu, others: Sequence[GpuProcess]) -> None:
        """Record who else is on a GPU of the run, if those are others than before; seldom if it is their memory alone."""
        tenants = [Tenant(one.pid, one.user, one.why, one.bytes_used) for one in others]
        before = self._tenants.get(gpu.uuid, [])
        is_due = self._now_s() >= self._told_s.get(gpu.uuid, -math.inf) + SELDOM_S
        if {one.pid for one in tenants} != {one.pid for one in before} or (
            is_due and tenants != before
        ):
            self._tenants[gpu.uuid], self._told_s[gpu.uuid] = tenants, self._now_s()
            self._journal.append(
                GpuShared(uuid=gpu.uuid, others=tenants[:_MOST_TENANTS], count=len(tenants))
            )

    def _explain(self, gpu: Gpu, missing: Mapping[str, str]) -> None:
        """Say once why something is left out."""
        for name, reason in missing.items():
            what = (
                "gpu processes" if reason == self._gpus.no_pids else f"{gpu.uuid} {name}"
            )  # of all GPUs at once
            if what not in self._explained:
                self._explained.add(what)
                self._journal.append(Unavailable(what=what, reason=reason))

    def _now_s(self) -> float:
        return self._clock_ns() / 1e9
