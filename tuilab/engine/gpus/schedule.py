"""Decide what the GPUs are asked, and when, so that the questions cost little.

A question is a call to a processor on the GPU, and may take milliseconds. The GPU of a race is
asked four questions each half second: three that verdicts need, and one for the charts, in turn.
Everything else is asked every ten seconds. Without a race, all GPUs are asked as often as their
cost allows.
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

PERIOD_S = 0.5  # between two samples
SELDOM_S = 10.0  # between two rounds of questions that are not urgent
GPU_SHARE = 0.005  # of a core at most, for all questions that are not about the GPU of the race
CLOCKS = ("sm_mhz", "throttle_mask")  # verdicts need them in each half second
# The fourth question to the GPU of the race: each half second the next one.
_TURNS = ("memory_used_bytes", "power_w", PROCESSES, "memory_used_bytes", "busy_percent", PROCESSES)
_SELDOM = tuple(name for name in METERS if name not in {*CLOCKS, *_TURNS})
_MOST_TENANTS = 20  # in one record
_USUAL = [name for name in METERS if name != "ecc_uncorrected"]
_USUAL.append(PROCESSES)

Readings = dict[str, dict[str, float]]


class GpuContext(NamedTuple):
    """What the sampler knows before it asks the GPUs; `raced` is the GPU that arms are timed on."""

    ours: Collection[int] = ()  # pids of the run
    raced: Raced = Raced()


class GpuAnswers(NamedTuple):
    """Readings by GPU, and when each GPU was asked, in nanoseconds of CLOCK_MONOTONIC."""

    readings: Readings
    asked: dict[str, int]


class GpuSchedule:
    """Asks the GPUs: `answer` every half second, and in between `ask_next` while `is_more`."""

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
        self._listed_s = -math.inf  # when the questions in between were listed
        self._cost_of_round_s = 0.0  # what they have cost since then
        self._seldom_due_s = 0.0
        self._raced_due_s = 0.0
        self._answers = GpuAnswers({}, {})  # since the last call of `answer`
        self._explained: set[str] = set()
        self._tenants: dict[str, list[Tenant]] = {}  # by GPU, as recorded last
        self._recorded_s: dict[str, float] = {}  # and when

    @property
    def is_more(self) -> bool:
        return bool(self._waiting)

    def answer(self, question: GpuContext) -> GpuAnswers:
        """Ask the GPU of the race now, and return all answers since the last call.

        If questions for the other GPUs are due, they are listed for `ask_next`.
        """
        self._question = question
        gpus = {gpu.uuid: gpu for gpu in self._gpus.available}
        raced = ""
        if question.raced.uuid:
            raced = nvml_uuid(question.raced.uuid, gpus)
        if raced != self._raced:
            self._raced = raced
            self._raced_due_s = 0.0
            self._listed_s = -math.inf
            self._waiting.clear()
        if raced:
            self._ask_raced(gpus[raced])
        self._plan()
        answers = self._answers
        self._answers = GpuAnswers({}, {})
        return answers

    def ask_next(self) -> None:
        """Ask one GPU the next questions of the list, which must not be empty: see `is_more`.

        The next call of `answer` returns the answers.
        """
        gpu, names = self._waiting.popleft()
        began_s = self._cost_s()
        self._record_errors(gpu)
        self._ask(gpu, names)
        if gpu.uuid != self._raced:
            self._cost_of_round_s += self._cost_s() - began_s

    def _ask_raced(self, gpu: Gpu) -> None:
        """Ask the GPU of the race its four questions, and list those that it is asked seldom."""
        self._record_errors(gpu)  # each time, because an error may end the run within seconds
        if self._now_s() >= self._raced_due_s:
            self._raced_due_s = self._now_s() + SELDOM_S
            self._ask(gpu, [PROCESSES])  # first: the shares of others need to know which are ours
            self._waiting.extendleft((gpu, [name]) for name in _SELDOM)
        asked_ns = self._clock_ns()
        self._ask(gpu, CLOCKS)
        if self._clock_ns() - asked_ns > PERIOD_S * 1e9:
            self._remove_clocks(gpu)
        self._ask(gpu, [SHARE, _TURNS[self._turn % len(_TURNS)]])
        self._turn += 1
        if gpu.uuid in self._answers.readings:
            self._answers.asked[gpu.uuid] = asked_ns

    def _remove_clocks(self, gpu: Gpu) -> None:
        """Remove clocks if it is unknown to which half second they belong."""
        for name in CLOCKS:
            self._answers.readings.get(gpu.uuid, {}).pop(name, None)
        self._explain(gpu, {"clocks": "the driver takes longer to tell them than they speak for"})

    def _plan(self) -> None:
        """List the questions for the other GPUs, if they are due and the list is empty."""
        now_s = self._now_s()
        pause_s = SELDOM_S if self._raced else PERIOD_S / 2
        pause_s = max(pause_s, self._cost_of_round_s / GPU_SHARE)
        if self._waiting or now_s < self._listed_s + pause_s:
            return
        self._listed_s = now_s
        self._cost_of_round_s = 0.0
        all_names = (*METERS, PROCESSES)
        names = all_names if now_s >= self._seldom_due_s else _USUAL
        for gpu in self._gpus.available:
            if not self._raced:
                self._waiting.append((gpu, names))
            elif gpu.uuid != self._raced:
                # One question at a time, because the GPU of the race must not wait for more.
                for name in all_names:
                    self._waiting.append((gpu, [name]))
        if now_s >= self._seldom_due_s:
            self._seldom_due_s = now_s + SELDOM_S

    def _ask(self, gpu: Gpu, names: Collection[str]) -> None:
        """Ask a GPU for these readings, and keep them with the time of the question.

        The reason for a missing reading, other users of a GPU of the run, and the loss of a GPU are
        recorded.
        """
        if gpu not in self._gpus.available:  # lost since it was listed
            return
        asked_ns = self._clock_ns()
        raced = self._question.raced
        is_timed_here = raced.is_going_on and gpu.uuid == self._raced
        try:
            reading = self._gpus.read(gpu, names, self._question.ours, is_timed_here=is_timed_here)
        except GpuLost as lost:
            self._journal.append(Unavailable(what=gpu.uuid, reason=str(lost)))
            return
        self._explain(gpu, reading.missing)
        is_of_run = gpu.uuid == self._raced or "memory_tree_bytes" in reading.values
        if is_of_run and "foreign_processes" in reading.values:
            self._record_tenants(gpu, self._gpus.foreign_processes[gpu.uuid])
        if reading.values:
            self._answers.readings.setdefault(gpu.uuid, {}).update(reading.values)
            self._answers.asked.setdefault(gpu.uuid, asked_ns)

    def _record_errors(self, gpu: Gpu) -> None:
        """Record the Xid errors of a GPU; the driver names only the whole GPU, not a slice."""
        whole = gpu.part_of or gpu.uuid
        for xid in self._gpus.errors.next(whole):
            self._journal.append(XidReported(uuid=whole, xid=xid))
        reason = self._gpus.errors.deaf.get(whole)
        if reason and not gpu.slice:
            self._explain(gpu, {"xid": reason})

    def _record_tenants(self, gpu: Gpu, others: Sequence[GpuProcess]) -> None:
        """Record the other users of a GPU when they change; seldom if only their memory changes."""
        tenants = [Tenant(user.pid, user.user, user.why, user.bytes_used) for user in others]
        recorded = self._tenants.get(gpu.uuid, [])
        is_due = self._now_s() >= self._recorded_s.get(gpu.uuid, -math.inf) + SELDOM_S
        pids = {tenant.pid for tenant in tenants}
        recorded_pids = {tenant.pid for tenant in recorded}
        if pids != recorded_pids or (is_due and tenants != recorded):
            self._tenants[gpu.uuid] = tenants
            self._recorded_s[gpu.uuid] = self._now_s()
            self._journal.append(
                GpuShared(uuid=gpu.uuid, others=tenants[:_MOST_TENANTS], count=len(tenants))
            )

    def _explain(self, gpu: Gpu, missing: Mapping[str, str]) -> None:
        """Record once why a reading is missing."""
        for name, reason in missing.items():
            subject = f"{gpu.uuid} {name}"
            if reason == self._gpus.no_pids:
                subject = "gpu processes"  # one record for all GPUs
            if subject not in self._explained:
                self._explained.add(subject)
                self._journal.append(Unavailable(what=subject, reason=reason))

    def _now_s(self) -> float:
        return self._clock_ns() / 1e9
