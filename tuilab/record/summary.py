"""What a run amounts to: the one object that every view renders, folded from the journal."""

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
    Worker,
)

RANK = (
    "-rank-"  # between the name of a worker and the number of a rank of it, in the name of a stream
)
ARM_FAILED = "ArmFailed"  # what an arm that failed raises in the scenario

T = TypeVar("T")


@dataclass
class Damage:
    """What the journal lacks; shown by every view."""

    corrupt: list[Corrupt] = field(default_factory=list)
    corrupt_count: int = 0
    missing_count: int = 0
    unknown_count: int = 0
    lost_count: int = 0  # records that a worker could not write and said so

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
    ranks: dict[str, events.RankPlaced] = field(
        default_factory=Few
    )  # by stream, of a run on several nodes
    stages: list[events.StageEntered] = field(default_factory=list)
    progress: events.Progressed | None = None
    first_progress: events.Progressed | None = (
        None  # of the same total: the rate is measured from here
    )
    progress_told: list[events.Progressed] = field(
        default_factory=list
    )  # the last of each total and unit; of a few
    series: dict[tuple[str, str, str], Series] = field(default_factory=Few)  # name, arm, writer
    axes: dict[str, events.AxesNamed] = field(default_factory=Few)  # by metric
    resources: dict[str, Series] = field(
        default_factory=Few
    )  # what the sampler saw, and what torch held on GPUs
    gpus_held: dict[str, dict[str, None]] = field(
        default_factory=Few
    )  # by torch's UUID: writers that told what they hold
    gpu_states: list[GpuState] = field(default_factory=list)
    claims: dict[str, Claim] = field(
        default_factory=Few
    )  # by key; in early records, without keys, by text
    settings: dict[tuple[str, int], RacedSetting] = field(
        default_factory=Few
    )  # by variable and number of ranks
    blocks: dict[tuple[str, str], list[Block]] = field(default_factory=Few)  # writer, arm
    controls: dict[tuple[str, str, str], list[Block]] = field(
        default_factory=Few
    )  # writer, arm, control
    first_calls: dict[str, list[float]] = field(default_factory=Few)  # arm: seconds, one a repeat
    cores: dict[int, list[float]] = field(
        default_factory=Few
    )  # busy processes: cores that they got
    core_waits: events.CoresAwaited | None = None  # of a watched command; None: not known
    races: list[tuple[str, events.RaceStarted]] = field(default_factory=list)
    differences: list[tuple[str, events.RaceFinished]] = field(
        default_factory=list
    )  # races whose arms were compared
    memory: list[events.MemoryMeasured] = field(default_factory=list)
    texts: list[events.TextShown] = field(default_factory=list)
    images: dict[tuple[str, str], events.ImageShown] = field(
        default_factory=Few
    )  # title, arm: the last one
    figures: dict[str, events.BarsShown | events.TableShown] = field(
        default_factory=Few
    )  # by title: the last one
    spans: dict[tuple[str, str], list[events.SpanShown]] = field(default_factory=Few)  # arm, writer
    artifacts: list[events.ArtifactSaved] = field(default_factory=list)
    environment: dict[str, dict[str, Any]] = field(default_factory=Few)
    devices: dict[GivenDevice, None] = field(
        default_factory=Few
    )  # that the scenario was given, in this order
    cuda: dict[str, dict[str, Any]] = field(
        default_factory=Few
    )  # writer: the CUDA devices that its torch sees
    xids: dict[tuple[str, int], int] = field(
        default_factory=Few
    )  # GPU and error: how often the driver reported it
    gpus: dict[str, events.GpuFound] = field(default_factory=Few)
    neighbours: dict[str, GpuTenants] = field(default_factory=Few)  # by NVML's UUID of the GPU
    unavailable: dict[str, str] = field(default_factory=Few)
    alerts: list[events.Alerted] = field(
        default_factory=list
    )  # in the order in which they were seen
    leftovers: list[str] = field(default_factory=list)
    leftover_count: int = 0
    faults: list[str] = field(default_factory=list)  # where crashed workers were
    failures: dict[str, events.ScenarioFailed] = field(
        default_factory=Few
    )  # by stream; a scenario may catch those of arms
    lacks: dict[str, str] = field(default_factory=Few)  # by stream: what the box has not
    outputs: dict[str, events.OutputCaptured] = field(default_factory=Few)
    counted: dict[str, int] = field(default_factory=Few)  # streams: records, when the run had ended
    arms: list[events.ArmFinished] = field(default_factory=list)
    is_budget_spent: bool = False
    is_untimed: bool = False  # the first repeat timed nothing, and is the only one
    damage: Damage = field(default_factory=Damage)
    records: int = 0
    first_t: int = 0  # when it began; while it is queued, when that began
    last_t: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def failure(self) -> events.ScenarioFailed | None:
        """What the run failed with; where an arm took it along, what failed there, which says more; of its ranks the first."""
        own, of_arms = self._apart(self._first_of_ranks(self.failures))
        if not own and self.state not in BROKEN_STATES:
            return None
        is_by_arm = of_arms and (not own or own[-1].type == ARM_FAILED)
        return of_arms[-1] if is_by_arm else own[-1] if own else None

    @property
    def box_lacks(self) -> str:
        """What the box has not that the run needs: of an arm only where the run failed with it."""
        own, of_arms = self._apart(self.lacks)
        if own:
            return own[-1]
        failed, _ = self._apart(self.failures)
        return of_arms[-1] if of_arms and failed and failed[-1].type == ARM_FAILED else ""

    def _first_of_ranks(
        self, failures: Mapping[str, events.ScenarioFailed]
    ) -> dict[str, events.ScenarioFailed]:
        """Return, of the ranks of each worker, what failed first: the others failed for want of that one."""
        found: dict[str, events.ScenarioFailed] = {}
        for stream, failed in failures.items():
            worker = stream.partition(RANK)[0]
            found[worker] = min(found.get(worker, failed), failed, key=lambda one: one.t)
        return found

    def _apart(self, by_stream: Mapping[str, T]) -> tuple[list[T], list[T]]:
        """Return what the workers of repeats said, and what those of arms did, each in its order."""
        own: list[T] = []
        of_arms: list[T] = []
        for stream, said in by_stream.items():
            worker = self.workers.get(stream.partition(RANK)[0])
            (of_arms if worker and worker.started and worker.started.arm else own).append(said)
        return own, of_arms

    @property
    def left_out(self) -> dict[str, str]:
        """What there is so much of that not all is kept, and so not shown."""
        kept = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: f"more than {one.MOST}; the rest is not shown"
            for name, one in kept.items()
            if isinstance(one, Few) and one.is_full
        }

    def axes_of(self, metric: str) -> events.AxesNamed:
        """Return what the axes of a metric's chart are."""
        return self.axes.get(metric) or events.AxesNamed(metric=metric)

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first record to the last, without those in the queue."""
        return (self.last_t - self.first_t) / 1e9

    @property
    def planned_repeats(self) -> int:
        """How many repeats the run has when it is whole, at most."""
        return 1 if self.is_untimed else self.run.repeats if self.run else 0

    def finished_repeats(self) -> list[str]:
        """Return the workers of whole repeats that have ended, well or not."""
        return [
            name
            for name, one in self.workers.items()
            if one.exited and one.started and not one.started.arm
        ]

    def repeat_of(self, writer: str) -> int:
        """Return the number of the repeat that a stream belongs to, counted from 1."""
        worker = self.workers.get(writer.partition(RANK)[0])
        return worker.started.repeat + 1 if worker and worker.started else 1

    def arms_in_order(self) -> list[str]:
        """Return the arms in the order in which they came: each looks the same in every chart, live and afterwards."""
        seen = [(one.first_t, one.arm) for one in self.series.values()]
        seen += [(race.t, arm) for _, race in self.races for arm in race.arms]
        seen += [(blocks[0].t, arm) for (_, arm), blocks in self.blocks.items() if blocks]
        return list(dict.fromkeys(arm for _, arm in sorted(seen, key=itemgetter(0)) if arm))

    def owners_of(self, writers: Sequence[str]) -> list[str]:
        """Return whose each of some streams is, in words: `repeat 2`, `rank 1`; two arms of one repeat have the same."""
        has_ranks = any(RANK in writer for writer in writers)
        return [self._owner_of(writer, has_ranks=has_ranks) for writer in writers]

    def _owner_of(self, writer: str, *, has_ranks: bool) -> str:
        top, _, rank = writer.partition(RANK)
        repeat = (
            f"repeat {self.repeat_of(writer)}"
            if self.planned_repeats > 1 and top in self.workers
            else ""
        )
        return ", ".join(filter(None, (repeat, f"rank {rank or 0}" if has_ranks else ""))) or writer

    def repeats_with(self, name: str = "") -> list[int]:
        """Return the numbers of the repeats that logged a name, or anything."""
        return sorted(
            {self.repeat_of(one.writer) for one in self.series.values() if name in ("", one.name)}
        )

    def repeats_of(self) -> dict[str, int]:
        """Return the number of the repeat that each worker belongs to, those of arms too, where that repeat has ended."""
        started = {name: one.started for name, one in self.workers.items() if one.started}
        ended = {started[name].repeat for name in self.finished_repeats()}
        return {name: record.repeat for name, record in started.items() if record.repeat in ended}
