"""What a run amounts to: the one object that every view renders, folded from the journal by a pure function.

`fold` is incremental: a follower hands in only what is new. It needs no order between streams, so it does not matter which
stream was read first.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import compress, groupby, zip_longest
from operator import itemgetter, not_
from typing import Any, NamedTuple

from tuilab.record import events
from tuilab.record.events import SPAN_LIMIT, Unknown
from tuilab.record.holding import holds
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.series import Series, add_logged
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.verdicts import NOT_JUDGED, is_against
from tuilab.words import gpu_words

_KEPT = 500  # texts, stages, damages and the like that are kept one by one


@dataclass
class Worker:
    """A worker process of the run."""

    started: events.WorkerStarted | None = None
    exited: events.WorkerExited | None = None
    lost: int = 0  # records that it could not write
    is_stopped: bool = False  # it was ended with the run, and neither finished nor failed

    @property
    def repeat(self) -> int:
        return self.started.repeat if self.started else 0


@dataclass
class Claim:
    """A claim, what was measured for it, and the verdict once there is one."""

    text: str
    key: str = ""
    declared: events.ClaimDeclared | None = None
    others: list[events.ClaimDeclared] = field(default_factory=list)  # declarations that differ from the first one
    is_late: bool = False  # a race of its arms had begun when it was declared
    measured: list[events.ClaimMeasured] = field(default_factory=list)  # one a repeat, of very many the first
    last: events.ClaimMeasured | None = None  # of all
    missed: events.ClaimMeasured | None = None  # the first of all that is not as claimed
    measured_in: set[str] = field(default_factory=set)  # streams
    missed_in: set[str] = field(default_factory=set)
    needs: str = ""  # why it cannot be tested here
    verdict: events.VerdictReached | None = None
    advises: str = ""  # the setting that follows when it is supported
    is_old: bool = False  # the scenario claims it by a call of the old form
    is_once: bool = False  # it stands in a part that only the first repeat runs

    @property
    def claim_id(self) -> str:
        return self.key or self.text

    @property
    def outcome(self) -> str:
        """The verdict, or that there is none."""
        return self.verdict.verdict if self.verdict else NOT_JUDGED

    @property
    def gpu(self) -> str:
        """The GPU that the verdict is about, in words; nothing where it is about none."""
        return gpu_words(self.verdict.gpu_name, self.verdict.gpu) if self.verdict else ""

    @property
    def is_contradicted(self) -> bool:
        """Whether the verdict stands against the claim: what exit codes, JUnit and reports go by."""
        bound = self.declared.bound if self.declared else None
        return self.verdict is not None and is_against(self.verdict.verdict, bound)


@dataclass
class Block:
    """The time of one call of an arm in one block of a race, and whether it counts."""

    round: int
    step_s: float
    is_warmup: bool = False
    is_disturbed: bool = False
    is_rerun: bool = False
    wall_ns: int = 0
    records: int = 0  # written while the time ran
    t: int = 0  # when it had ended
    loops: int = 1
    cpu_ns: int = 0
    thread_ns: int | None = None  # CPU time of the thread that made the calls
    waits: int | None = None  # times that it gave its core away by itself
    submitted_ns: int | None = None  # until the last call had returned, on a GPU


class GivenDevice(NamedTuple):
    """A device that `lab.device()` gave to a scenario."""

    wanted: str
    chosen: str
    why: str
    notice: str  # what is to be known of it first
    rank: str = ""  # on its box, of one under torchrun: each has a GPU of its own


class GpuState(NamedTuple):
    """What the sampler read of a GPU for verdicts; None where the driver did not tell."""

    t: int  # when it was asked
    uuid: str
    throttle_mask: int | None  # as in nvml.h
    sm_mhz: float | None
    foreign_percent: float | None = None  # of its time, in which processes of others kept it busy


@dataclass
class Neighbour:
    """A process of somebody else that was seen on a GPU of the run."""

    tenant: events.Tenant
    most_bytes: int | None
    seen_t: int


@dataclass
class Neighbours:
    """Who else was on a GPU of the run, and how many there were at most; `told_t` is when that was told last."""

    known: dict[tuple[int, str], Neighbour] = field(default_factory=dict)  # by pid and user
    most: int = 0
    told_t: int = 0


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
    workers: dict[str, Worker] = field(default_factory=dict)
    stages: list[events.StageEntered] = field(default_factory=list)
    progress: events.Progressed | None = None
    first_progress: events.Progressed | None = None  # of the same total: the rate is measured from here
    series: dict[tuple[str, str, str], Series] = field(default_factory=dict)  # name, arm, writer
    axes: dict[str, events.AxesNamed] = field(default_factory=dict)  # by metric
    resources: dict[str, Series] = field(default_factory=dict)  # what the sampler saw, and what torch held on GPUs
    gpus_held: dict[str, dict[str, None]] = field(default_factory=dict)  # by torch's UUID: writers that told what they hold
    gpu_states: list[GpuState] = field(default_factory=list)
    claims: dict[str, Claim] = field(default_factory=dict)  # by key; one of the old form, without a key, by its text
    blocks: dict[tuple[str, str], list[Block]] = field(default_factory=dict)  # writer, arm
    controls: dict[tuple[str, str, str], list[Block]] = field(default_factory=dict)  # writer, arm, control
    first_calls: dict[str, list[float]] = field(default_factory=dict)  # arm: seconds, one a repeat
    cores: dict[int, list[float]] = field(default_factory=dict)  # busy processes: cores that they got
    races: list[tuple[str, events.RaceStarted]] = field(default_factory=list)
    differences: list[tuple[str, events.RaceFinished]] = field(default_factory=list)  # races whose arms were compared
    memory: list[events.MemoryMeasured] = field(default_factory=list)
    texts: list[events.TextShown] = field(default_factory=list)
    images: dict[tuple[str, str], events.ImageShown] = field(default_factory=dict)  # title, arm: the last one
    figures: dict[str, events.BarsShown | events.TableShown] = field(default_factory=dict)  # by title: the last one
    spans: dict[tuple[str, str], list[events.SpanShown]] = field(default_factory=dict)  # arm, writer
    artifacts: list[events.ArtifactSaved] = field(default_factory=list)
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: dict[GivenDevice, None] = field(default_factory=dict)  # that the scenario was given, in this order
    cuda: dict[str, dict[str, Any]] = field(default_factory=dict)  # writer: the CUDA devices that its torch sees
    xids: dict[tuple[str, int], int] = field(default_factory=dict)  # GPU and error: how often the driver reported it
    gpus: dict[str, events.GpuFound] = field(default_factory=dict)
    neighbours: dict[str, Neighbours] = field(default_factory=dict)  # by NVML's UUID of the GPU
    unavailable: dict[str, str] = field(default_factory=dict)
    leftovers: list[str] = field(default_factory=list)
    leftover_count: int = 0
    faults: list[str] = field(default_factory=list)  # where crashed workers were
    failure: events.ScenarioFailed | None = None
    box_lacks: str = ""
    outputs: dict[str, events.OutputCaptured] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)  # streams: records, when the run had ended
    arms: list[events.ArmFinished] = field(default_factory=list)
    is_budget_spent: bool = False
    is_untimed: bool = False  # the first repeat timed nothing, and is the only one
    damage: Damage = field(default_factory=Damage)
    records: int = 0
    first_t: int = 0
    last_t: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in FINAL_STATES

    def axes_of(self, metric: str) -> events.AxesNamed:
        """Return what the axes of a metric's chart are."""
        return self.axes.get(metric) or events.AxesNamed(metric=metric)

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first record to the last."""
        return (self.last_t - self.first_t) / 1e9

    @property
    def planned_repeats(self) -> int:
        """How many repeats the run has when it is whole, at most."""
        return 1 if self.is_untimed else self.run.repeats if self.run else 0

    def finished_repeats(self) -> list[str]:
        """Return the workers of whole repeats that have ended, well or not."""
        return [name for name, one in self.workers.items() if one.exited and one.started and not one.started.arm]

    def repeats_of(self) -> dict[str, int]:
        """Return the number of the repeat that each worker belongs to, those of arms too, where that repeat has ended."""
        started = {name: one.started for name, one in self.workers.items() if one.started}
        ended = {started[name].repeat for name in self.finished_repeats()}
        return {name: record.repeat for name, record in started.items() if record.repeat in ended}


def fold(items: Iterable[tuple[str, Item]], summary: RunSummary | None = None) -> RunSummary:
    """Fold records (and what is wrong among them) into a summary: a new one, or the one that a follower has."""
    summary = summary or RunSummary()
    for stream, group in groupby(items, itemgetter(0)):
        fold_stream(summary, stream, [item for _, item in group])
    return summary


def fold_stream(summary: RunSummary, stream: str, items: list[Item]) -> None:
    """Fold what one stream brought; many items at once are several times as fast as one at a time."""
    are_logged = [kind is events.Logged for kind in map(type, items)]
    logged: list[Any] = list(compress(items, are_logged))
    if logged:
        add_logged(summary.series, stream, logged)
        _note_times(summary, [event.t for event in logged])
    if len(logged) < len(items):
        _fold_others(summary, stream, compress(items, map(not_, are_logged)))


def _fold_others(summary: RunSummary, stream: str, items: Iterable[Item]) -> None:
    for item in items:
        if isinstance(item, Corrupt):
            summary.damage.corrupt_count += 1
            _keep(summary.damage.corrupt, item)
        elif isinstance(item, Gap):
            summary.damage.missing_count += item.missing
        else:
            if isinstance(item, Unknown):
                summary.damage.unknown_count += 1
            else:
                _FOLDS[type(item)](summary, stream, item)
            _note_times(summary, [item.t])


def _note_times(summary: RunSummary, times: list[int]) -> None:
    """Count records, and note when the first and the last of all were written."""
    summary.records += len(times)
    summary.last_t = max(summary.last_t, max(times))
    earliest = min(times)
    summary.first_t = min(summary.first_t or earliest, earliest)


def _run_started(summary: RunSummary, stream: str, event: events.RunStarted) -> None:
    summary.run = summary.run or event  # there is one; a second would change who is alive
    _announce_claims(summary, event)


def _run_described(summary: RunSummary, stream: str, event: events.RunDescribed) -> None:
    if summary.run is None:
        return  # the record of the start is damaged
    summary.run.params |= event.params
    for name in ("changed", "claims", "claim_keys", "argv"):
        getattr(summary.run, name).extend(getattr(event, name))
    _announce_claims(summary, event)


def _announce_claims(summary: RunSummary, event: events.RunStarted | events.RunDescribed) -> None:
    """Note the claims that a run will come to; each has its key in the same record, if it has one."""
    for text, key in zip_longest(event.claims, event.claim_keys[: len(event.claims)], fillvalue=""):
        summary.claims.setdefault(key or text, Claim(text, key))


def _state_changed(summary: RunSummary, stream: str, event: events.StateChanged) -> None:
    summary.state, summary.reason = event.state, event.reason
    summary.states.append(event)


def _worker_started(summary: RunSummary, stream: str, event: events.WorkerStarted) -> None:
    summary.workers.setdefault(event.writer, Worker()).started = event


def _worker_exited(summary: RunSummary, stream: str, event: events.WorkerExited) -> None:
    worker = summary.workers.setdefault(event.writer, Worker())
    worker.exited = event
    worker.is_stopped = summary.state == RunState.STOPPING and event.code != 0
    _note_lost(summary, event.writer, event.lost)
    if event.fault:
        _keep(summary.faults, event.fault)


def _leftovers_ended(summary: RunSummary, stream: str, event: events.LeftoversEnded) -> None:
    summary.leftover_count += event.count
    for name in event.processes:
        _keep(summary.leftovers, name)


def _stage_entered(summary: RunSummary, stream: str, event: events.StageEntered) -> None:
    _keep(summary.stages, event)
    summary.progress = summary.first_progress = None


def _progressed(summary: RunSummary, stream: str, event: events.Progressed) -> None:
    first = summary.first_progress
    if first is None or first.total != event.total or event.done < first.done:
        summary.first_progress = event
    summary.progress = event


def _claim_measured(summary: RunSummary, stream: str, event: events.ClaimMeasured) -> None:
    """Note a measurement; by their times, not as they are read, one is the last and one the first that missed."""
    claim = _claim(summary, event)
    _keep(claim.measured, event)
    claim.measured_in.add(stream)
    if claim.last is None or event.t >= claim.last.t:
        claim.last = event
    if not holds(event):
        claim.missed_in.add(stream)
        if claim.missed is None or event.t < claim.missed.t:
            claim.missed = event


def _claim_declared(summary: RunSummary, stream: str, event: events.ClaimDeclared) -> None:
    claim = _claim(summary, event)
    arms = {event.over, event.under}
    claim.is_late |= any(writer == stream and arms <= set(race.arms) for writer, race in summary.races)
    if claim.declared is None:
        claim.declared = event
    elif _terms(event) != _terms(claim.declared):
        _keep(claim.others, event)


def _terms(event: events.ClaimDeclared) -> tuple[Any, ...]:
    return event.over, event.under, event.op, event.bound, event.margin, event.confidence, event.cores


def _claim_not_testable(summary: RunSummary, stream: str, event: events.ClaimNotTestable) -> None:
    _claim(summary, event).needs = event.needs


def _setting_advised(summary: RunSummary, stream: str, event: events.SettingAdvised) -> None:
    _claim(summary, event).advises = event.setting


def _budget_spent(summary: RunSummary, stream: str, event: events.BudgetSpent) -> None:
    summary.is_budget_spent = True


def _nothing_timed(summary: RunSummary, stream: str, event: events.NothingTimed) -> None:
    summary.is_untimed = True


def _race_started(summary: RunSummary, stream: str, event: events.RaceStarted) -> None:
    summary.races.append((stream, event))  # as every block is: what verdicts rest on is never cut


def _block_timed(summary: RunSummary, stream: str, event: events.BlockTimed) -> None:
    # Older versions timed the GPU by itself, and had 0 where the clock of its events was too coarse.
    step_s = (event.device_ns or event.wall_ns) / event.loops / 1e9
    block = Block(
        event.round, step_s, event.is_warmup, event.is_disturbed, event.is_rerun, event.wall_ns, event.records, event.t,
        event.loops, event.cpu_ns, event.thread_ns, event.waits, event.submitted_ns,
    )  # fmt: skip
    if event.control:
        summary.controls.setdefault((stream, event.arm, event.control), []).append(block)
    else:
        summary.blocks.setdefault((stream, event.arm), []).append(block)


def _first_called(summary: RunSummary, stream: str, event: events.FirstCalled) -> None:
    _keep(summary.first_calls.setdefault(event.arm, []), event.wall_ns / 1e9)


def _cores_measured(summary: RunSummary, stream: str, event: events.CoresMeasured) -> None:
    _keep(summary.cores.setdefault(event.processes, []), event.effective)


def _race_finished(summary: RunSummary, stream: str, event: events.RaceFinished) -> None:
    summary.differences.append((stream, event))


def _image_shown(summary: RunSummary, stream: str, event: events.ImageShown) -> None:
    summary.images[event.title, event.arm] = event


def _axes_named(summary: RunSummary, stream: str, event: events.AxesNamed) -> None:
    if event.metric in summary.axes or len(summary.axes) < _KEPT:
        summary.axes[event.metric] = event


def _figure_shown(summary: RunSummary, stream: str, event: events.BarsShown | events.TableShown) -> None:
    before = summary.figures.get(event.title)
    if len(summary.figures) < _KEPT if before is None else event.t >= before.t:
        summary.figures[event.title] = event


def _span_shown(summary: RunSummary, stream: str, event: events.SpanShown) -> None:
    picture = event.arm, stream
    if (picture in summary.spans or len(summary.spans) < _KEPT) and len(summary.spans.get(picture, [])) < SPAN_LIMIT:
        summary.spans.setdefault(picture, []).append(event)


def _environment_recorded(summary: RunSummary, stream: str, event: events.EnvironmentRecorded) -> None:
    summary.environment.setdefault(event.part, event.facts)
    if event.part == "cuda":
        summary.cuda.setdefault(stream, event.facts)
    if event.part == "device" and len(summary.devices) < _KEPT:
        told = (str(event.facts.get(name, "")) for name in ("wanted", "chosen", "why", "notice", "rank"))
        summary.devices.setdefault(GivenDevice(*told))


def _scenario_failed(summary: RunSummary, stream: str, event: events.ScenarioFailed) -> None:
    summary.failure = event


def _box_lacked(summary: RunSummary, stream: str, event: events.BoxLacked) -> None:
    summary.box_lacks = event.needs


def _scenario_finished(summary: RunSummary, stream: str, event: events.ScenarioFinished) -> None:
    _note_lost(summary, stream, event.lost)
    if event.trouble and not event.lost:
        summary.unavailable[f"records of {stream}"] = event.trouble


def _sampled(summary: RunSummary, stream: str, event: events.Sampled) -> None:
    memory = ("rss_bytes", "uss_bytes") if event.processes else ()  # where nothing is at work there is none to tell
    waiting = ("waiting_bytes",) if event.waiting_bytes else ()
    for name in ("processes", "threads", "cpu_percent", *memory, *waiting):
        _add_resource(summary, name, event.t, getattr(event, name))
    for uuid, metrics in event.gpus.items():
        t = event.gpus_asked.get(uuid, event.t)
        for metric, value in metrics.items():
            _add_resource(summary, f"{uuid} {metric}", t, value)
        told = {name: value for name, value in metrics.items() if math.isfinite(value)}
        mask = told.get("throttle_mask")
        mask_bits = None if mask is None else int(mask)
        summary.gpu_states.append(GpuState(t, uuid, mask_bits, told.get("sm_mhz"), told.get("foreign_percent")))


def _add_resource(summary: RunSummary, name: str, t: int, value: float | None) -> None:
    if value is not None:
        series = summary.resources.setdefault(name, Series(name, writer="sampler"))
        series.add(series.count, t, float(value))


def _gpu_held(summary: RunSummary, stream: str, event: events.GpuHeld) -> None:
    if event.uuid not in summary.gpus_held and len(summary.gpus_held) >= _KEPT:
        return
    summary.gpus_held.setdefault(event.uuid, {})[stream] = None
    for metric in ("allocated_bytes", "reserved_bytes"):
        name = f"{event.uuid} {metric}"
        series = summary.resources.setdefault(f"{name} {stream}", Series(name, writer=stream))
        series.add(series.count, event.t, float(getattr(event, metric)))


def _verdict_reached(summary: RunSummary, stream: str, event: events.VerdictReached) -> None:
    _claim(summary, event).verdict = event


def _output_captured(summary: RunSummary, stream: str, event: events.OutputCaptured) -> None:
    summary.outputs[event.stream] = event


def _gpu_found(summary: RunSummary, stream: str, event: events.GpuFound) -> None:
    summary.gpus[event.uuid] = event


def _gpu_shared(summary: RunSummary, stream: str, event: events.GpuShared) -> None:
    if event.uuid not in summary.neighbours and len(summary.neighbours) >= _KEPT:
        return
    found = summary.neighbours.setdefault(event.uuid, Neighbours())
    found.most, found.told_t = max(found.most, event.count), max(found.told_t, event.t)
    for one in event.others:
        name = one.pid, one.user
        if name in found.known or len(found.known) < _KEPT:
            known = found.known.setdefault(name, Neighbour(one, one.bytes_used, event.t))
            known.most_bytes = max((used for used in (known.most_bytes, one.bytes_used) if used is not None), default=None)
            known.seen_t = max(known.seen_t, event.t)


def _xid_reported(summary: RunSummary, stream: str, event: events.XidReported) -> None:
    error = event.uuid, event.xid
    if error in summary.xids or len(summary.xids) < _KEPT:
        summary.xids[error] = summary.xids.get(error, 0) + 1


def _unavailable(summary: RunSummary, stream: str, event: events.Unavailable) -> None:
    summary.unavailable[event.what] = event.reason


def _sampler_ended(summary: RunSummary, stream: str, event: events.SamplerEnded) -> None:
    summary.unavailable["sampler"] = f"{event.reason} (restarted {event.restarts} times)"


def _note_lost(summary: RunSummary, writer: str, lost: int) -> None:
    """Count what a worker could not write: it says so in its own stream, if that can be written, and to the supervisor."""
    worker = summary.workers.setdefault(writer, Worker())
    summary.damage.lost_count += max(lost - worker.lost, 0)
    worker.lost = max(lost, worker.lost)


def _claim(summary: RunSummary, event: events.AboutClaim) -> Claim:
    claim = summary.claims.setdefault(event.claim_id, Claim(event.text, event.key))
    claim.is_old |= event.is_old
    claim.is_once |= event.is_once
    return claim


def _keep(kept: list[Any], item: Any) -> None:
    if len(kept) < _KEPT:
        kept.append(item)


_FOLDS: dict[type, Callable[[RunSummary, str, Any], None]] = {
    events.RunStarted: _run_started,
    events.RunDescribed: _run_described,
    events.StateChanged: _state_changed,
    events.BudgetSpent: _budget_spent,
    events.NothingTimed: _nothing_timed,
    events.WorkerStarted: _worker_started,
    events.WorkerExited: _worker_exited,
    events.OutputCaptured: _output_captured,
    events.StopRequested: lambda summary, stream, event: None,  # the state says it
    events.LeftoversEnded: _leftovers_ended,
    events.SamplerEnded: _sampler_ended,
    events.StreamsCounted: lambda summary, stream, event: summary.counted.update(event.records),
    events.EnvironmentRecorded: _environment_recorded,
    events.StageEntered: _stage_entered,
    events.Progressed: _progressed,
    events.ClaimMeasured: _claim_measured,
    events.ClaimDeclared: _claim_declared,
    events.ClaimNotTestable: _claim_not_testable,
    events.SettingAdvised: _setting_advised,
    events.TextShown: lambda summary, stream, event: _keep(summary.texts, event),
    events.ImageShown: _image_shown,
    events.AxesNamed: _axes_named,
    events.BarsShown: _figure_shown,
    events.TableShown: _figure_shown,
    events.SpanShown: _span_shown,
    events.ArtifactSaved: lambda summary, stream, event: _keep(summary.artifacts, event),
    events.MemoryMeasured: lambda summary, stream, event: _keep(summary.memory, event),
    events.ArmFinished: lambda summary, stream, event: _keep(summary.arms, event),
    events.RaceStarted: _race_started,
    events.BlockTimed: _block_timed,
    events.FirstCalled: _first_called,
    events.CoresMeasured: _cores_measured,
    events.RaceFinished: _race_finished,
    events.ScenarioFailed: _scenario_failed,
    events.BoxLacked: _box_lacked,
    events.ScenarioFinished: _scenario_finished,
    events.Sampled: _sampled,
    events.GpuFound: _gpu_found,
    events.GpuHeld: _gpu_held,
    events.GpuShared: _gpu_shared,
    events.XidReported: _xid_reported,
    events.Unavailable: _unavailable,
    events.VerdictReached: _verdict_reached,
}
