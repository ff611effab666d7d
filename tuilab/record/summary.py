"""Defines the summary of a run: the one object that all views render, folded from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any, TypeVar

from tuilab.record import events
from tuilab.record.journal.lines import Corrupt
from tuilab.record.series import Series
from tuilab.record.states import BROKEN_STATES, FINAL_STATES, RunState
from tuilab.record.summary_parts import (
    Block,
    Claim,
    Few,
    GivenDevice,
    GpuState,
    GpuTenants,
    RacedSetting,
    Tuning,
    Worker,
)

RANK = "-rank-"  # in the name of a stream: between the name of a worker and the number of its rank
ARM_FAILED = "ArmFailed"  # exception in the scenario if an arm failed

T = TypeVar("T")


@dataclass
class Damage:
    """Damage of the journal; all views show it."""

    corrupt: list[Corrupt] = field(default_factory=list)
    corrupt_count: int = 0
    unknown_count: int = 0
    missing: dict[str, int] = field(default_factory=Few)  # records, by stream
    # Records that a worker reported as not written, by its stream.
    lost: dict[str, int] = field(default_factory=Few)

    @property
    def missing_count(self) -> int:
        return sum(self.missing.values())

    @property
    def lost_count(self) -> int:
        return sum(self.lost.values())

    @property
    def unexplained(self) -> dict[str, int]:
        """Missing records, by stream, beyond those that the worker reported as not written."""
        counts = {}
        for stream, missing in self.missing.items():
            unreported = missing - self.lost.get(stream, 0)
            if unreported > 0:
                counts[stream] = unreported
        return counts

    @property
    def unexplained_count(self) -> int:
        return sum(self.unexplained.values())

    @property
    def is_any(self) -> bool:
        return bool(self.corrupt_count or self.missing_count or self.lost_count)


@dataclass
class RunSummary:
    """Everything the views show of a run."""

    run: events.RunStarted | None = None
    state: str = RunState.STARTING
    reason: str = ""
    states: list[events.StateChanged] = field(default_factory=list)
    workers: dict[str, Worker] = field(default_factory=Few)
    ranks: dict[str, events.RankPlaced] = field(default_factory=Few)  # by stream
    stages: list[events.StageEntered] = field(default_factory=list)
    progress: events.Progressed | None = None
    first_progress: events.Progressed | None = None  # of the same total: the rate starts here
    # the last progress of each total and unit, for a few of them
    progress_by_total: list[events.Progressed] = field(default_factory=list)
    series: dict[tuple[str, str, str], Series] = field(default_factory=Few)  # by name, arm, writer
    axes: dict[str, events.AxesNamed] = field(default_factory=Few)  # by metric
    # Readings of the sampler, and what torch held on GPUs. The keys are a metric for the processes
    # of the run, "UUID metric" for a GPU, and "UUID metric writer" for what torch held.
    resources: dict[str, Series] = field(default_factory=Few)
    # by torch's UUID: the writers that reported what they hold
    gpus_held: dict[str, dict[str, None]] = field(default_factory=Few)
    gpu_states: list[GpuState] = field(default_factory=list)
    # by key; claims of early records have no keys, and are stored by text
    claims: dict[str, Claim] = field(default_factory=Few)
    # by variable and number of ranks
    settings: dict[tuple[str, int], RacedSetting] = field(default_factory=Few)
    blocks: dict[tuple[str, str], list[Block]] = field(default_factory=Few)  # by writer, arm
    # by writer, arm, control
    controls: dict[tuple[str, str, str], list[Block]] = field(default_factory=Few)
    first_calls: dict[str, list[float]] = field(default_factory=Few)  # by arm: seconds, per repeat
    # by number of busy processes: the cores that they got
    cores: dict[int, list[float]] = field(default_factory=Few)
    core_waits: events.CoresAwaited | None = None  # of a watched command; None if not known
    # of a watched command: steps whose FLOPs, copies and reads were counted
    counted_steps: list[events.StepCounted] = field(default_factory=list)
    # by arm: how much of its device a watched command used
    uses: dict[str, events.DeviceUsed] = field(default_factory=Few)
    races: list[tuple[str, events.RaceStarted]] = field(default_factory=list)
    # finished races, whose arms were compared
    differences: list[tuple[str, events.RaceFinished]] = field(default_factory=list)
    memory: list[events.MemoryMeasured] = field(default_factory=list)
    texts: list[events.TextShown] = field(default_factory=list)
    # by title and arm: the last image
    images: dict[tuple[str, str], events.ImageShown] = field(default_factory=Few)
    # by title: the last figure
    figures: dict[str, events.BarsShown | events.TableShown] = field(default_factory=Few)
    # by arm and writer
    spans: dict[tuple[str, str], list[events.SpanShown]] = field(default_factory=Few)
    artifacts: list[events.ArtifactSaved] = field(default_factory=list)
    environment: dict[str, dict[str, Any]] = field(default_factory=Few)
    # devices that the scenario was given, in this order
    devices: dict[GivenDevice, None] = field(default_factory=Few)
    # by writer: the CUDA devices that its torch sees
    cuda: dict[str, dict[str, Any]] = field(default_factory=Few)
    # by GPU and error: how often the driver reported it
    xids: dict[tuple[str, int], int] = field(default_factory=Few)
    gpus: dict[str, events.GpuFound] = field(default_factory=Few)  # by NVML's UUID
    # by NVML's UUID: the processes of others on the GPU
    neighbours: dict[str, GpuTenants] = field(default_factory=Few)
    unavailable: dict[str, str] = field(default_factory=Few)  # what was not measured: the reason
    alerts: list[events.Alerted] = field(default_factory=list)  # in the order of their reading
    leftovers: list[str] = field(default_factory=list)
    leftover_count: int = 0
    faults: list[str] = field(default_factory=list)  # places where workers crashed
    # by stream; a scenario may catch the failures of arms
    failures: dict[str, events.ScenarioFailed] = field(default_factory=Few)
    lacks: dict[str, str] = field(default_factory=Few)  # by stream: what the machine lacks
    outputs: dict[str, events.OutputCaptured] = field(default_factory=Few)
    counted: dict[str, int] = field(default_factory=Few)  # by stream: records, at the end
    arms: list[events.ArmFinished] = field(default_factory=list)
    tuning: Tuning = field(default_factory=Tuning)
    is_budget_spent: bool = False
    is_untimed: bool = False  # the first repeat timed nothing, and is the only one
    damage: Damage = field(default_factory=Damage)
    records: int = 0
    first_t: int = 0  # when the run began; for a queued run, when it was queued
    last_t: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def failure(self) -> events.ScenarioFailed | None:
        """The failure of the run; None if it did not fail, or if no record says how.

        If an arm made the run fail, it is the failure of that arm, which says more. Of the ranks of
        a worker, the first failure counts.
        """
        own, of_arms = self._split_by_arm(self._first_of_ranks(self.failures))
        if not own and self.state not in BROKEN_STATES:
            return None  # the scenario caught the failures of its arms
        if not own:
            return of_arms[-1] if of_arms else None
        if of_arms and own[-1].type == ARM_FAILED:
            return of_arms[-1]
        return own[-1]

    @property
    def box_lacks(self) -> str:
        """Needs of the run that the machine lacks; empty if there are none.

        The needs of an arm count only if that arm made the run fail.
        """
        own, of_arms = self._split_by_arm(self.lacks)
        if own:
            return own[-1]
        failures, _ = self._split_by_arm(self.failures)
        if of_arms and failures and failures[-1].type == ARM_FAILED:
            return of_arms[-1]
        return ""

    def _first_of_ranks(
        self, failures: Mapping[str, events.ScenarioFailed]
    ) -> dict[str, events.ScenarioFailed]:
        """Return, by worker, the first failure of its ranks: it made the other ranks fail."""
        first: dict[str, events.ScenarioFailed] = {}
        for stream, failure in failures.items():
            worker = _worker_of(stream)
            if worker not in first or failure.t < first[worker].t:
                first[worker] = failure
        return first

    def _split_by_arm(self, by_stream: Mapping[str, T]) -> tuple[list[T], list[T]]:
        """Return the values of the workers of repeats, and those of the workers of arms."""
        own: list[T] = []
        of_arms: list[T] = []
        for stream, value in by_stream.items():
            worker = self.workers.get(_worker_of(stream))
            if worker and worker.started and worker.started.arm:
                of_arms.append(value)
            else:
                own.append(value)
        return own, of_arms

    @property
    def left_out(self) -> dict[str, str]:
        """Fields that reached their limit, so that the rest is not kept, with words for it."""
        words = {}
        for summary_field in fields(self):
            value = getattr(self, summary_field.name)
            if isinstance(value, Few) and value.is_full:
                words[summary_field.name] = f"more than {value.MOST}; the rest is not shown"
        return words

    def axes_of(self, metric: str) -> events.AxesNamed:
        """Return the axes of a metric's chart."""
        return self.axes.get(metric) or events.AxesNamed(metric=metric)

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first record to the last, without the time in the queue."""
        return (self.last_t - self.first_t) / 1e9

    @property
    def planned_repeats(self) -> int:
        """The number of repeats of the whole run, at most."""
        if self.is_untimed:
            return 1
        return self.run.repeats if self.run else 0

    def finished_repeats(self) -> list[str]:
        """Return the workers of whole repeats that have ended, well or not."""
        names = []
        for name, worker in self.workers.items():
            if worker.exited and worker.started and not worker.started.arm:
                names.append(name)
        return names

    def workers_of_stage(self, stage: str) -> set[str]:
        """Return the workers that raced in a stage of a tuning."""
        return {worker for worker, race in self.races if race.stage == stage}

    def stage_of(self, claim: events.ClaimDeclared) -> str:
        """Return the stage of a tuning that races the arms of a claim; empty if there is none."""
        for _, race in self.races:
            if claim.over in race.arms and claim.under in race.arms:
                return race.stage
        return ""

    def repeat_of(self, writer: str) -> int:
        """Return the number of the repeat that a stream belongs to, counted from 1."""
        worker = self.workers.get(_worker_of(writer))
        if worker is None or worker.started is None:
            return 1
        return worker.started.repeat + 1

    def repeats_with(self, name: str = "") -> list[int]:
        """Return the numbers of the repeats that logged a name, or anything."""
        repeats = set()
        for series in self.series.values():
            if name in ("", series.name):
                repeats.add(self.repeat_of(series.writer))
        return sorted(repeats)

    def repeats_of(self) -> dict[str, int]:
        """Return, by worker, the repeat that it belongs to, if that repeat has ended.

        The workers of arms are in it as well.
        """
        repeats = {}
        for name, worker in self.workers.items():
            if worker.started:
                repeats[name] = worker.started.repeat
        ended = {repeats[name] for name in self.finished_repeats()}
        return {name: repeat for name, repeat in repeats.items() if repeat in ended}

    def arms_in_order(self) -> list[str]:
        """Return the arms in the order of their appearance.

        So an arm looks the same in all charts, while the run is in progress and afterwards.
        """
        appearances = [(series.first_t, series.arm) for series in self.series.values()]
        for _, race in self.races:
            appearances += [(race.t, arm) for arm in race.arms]
        for (_, arm), blocks in self.blocks.items():
            if blocks:
                appearances.append((blocks[0].t, arm))
        appearances.sort(key=itemgetter(0))
        return list(dict.fromkeys(arm for _, arm in appearances if arm))

    def owners_of(self, writers: Sequence[str]) -> list[str]:
        """Return the owner of each stream in words: `repeat 2`, `rank 1`.

        Two arms of one repeat have the same owner.
        """
        has_ranks = any(RANK in writer for writer in writers)
        return [self._owner_of(writer, has_ranks=has_ranks) for writer in writers]

    def _owner_of(self, writer: str, *, has_ranks: bool) -> str:
        """Return the owner of a stream, such as `repeat 2, rank 1`; its name if there is only one.

        `has_ranks` says whether any of the streams in question is that of a rank.
        """
        worker, _, rank = writer.partition(RANK)
        words = []
        if self.planned_repeats > 1 and worker in self.workers:
            words.append(f"repeat {self.repeat_of(writer)}")
        if has_ranks:
            words.append(f"rank {rank or 0}")
        return ", ".join(words) or writer


def _worker_of(stream: str) -> str:
    """Return the name of the worker whose stream, or whose rank's stream, this is."""
    return stream.partition(RANK)[0]
