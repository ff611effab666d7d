"""Whether the streams of a run agree with each other: who wrote them, what each may say, and that nothing of one is gone.

What a kill, a full disk or a power cut leaves behind agrees. Of a stream that is known to have lost records nothing else is
said, and of a run without a record of its end nothing that only an end tells.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, get_args

import msgspec

from tuilab.judging.honest.race_record import RaceRecord, Told
from tuilab.record import events
from tuilab.record.events import Unknown
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.text import join, plural, show

_KINDS: dict[str, set[type]] = {  # that only one process of a run writes; most are a worker's
    "supervisor": {
        events.RunStarted, events.RunDescribed, events.StateChanged, events.BudgetSpent, events.WorkerStarted,
        events.WorkerExited, events.OutputCaptured, events.StopRequested, events.LeftoversEnded, events.SamplerEnded,
        events.StreamsCounted, events.NothingTimed,
    },
    "sampler": {events.Sampled, events.GpuFound, events.GpuShared, events.XidReported},
    "judge": {events.VerdictReached},
}  # fmt: skip
_DAMAGE: set[type] = {Corrupt, Gap}
_OF_SEVERAL: set[type] = {events.Unavailable, events.EnvironmentRecorded, Unknown}
_WRITERS = {kind: writer for writer, kinds in _KINDS.items() for kind in kinds}
_NOTED = {*get_args(Told), events.VerdictReached, events.ScenarioFinished, events.RunStarted, events.StateChanged}
_SAMPLER = re.compile(r"sampler(-\d+)?")
_RANK = re.compile(r"-rank-\d+\Z")


@dataclass
class Stream:
    """One stream, as far as it has been read."""

    name: str
    count: int = 0  # of records, as the last one is numbered
    is_damaged: bool = False  # records are lost, and that is told
    races: RaceRecord = field(default_factory=RaceRecord)
    verdicts: list[events.VerdictReached] = field(default_factory=list)
    is_finished: bool = False  # the scenario has said that it is
    starts: int = 0  # of the run
    ends: int = 0
    wrong: dict[str, None] = field(default_factory=dict)  # sentences, each once
    t: int = 0

    def take(self, items: Sequence[Item]) -> None:
        """Take the next items of the stream."""
        kinds = set(map(type, items))
        records: Sequence[Any] = items  # most often: a loop logs hundreds of thousands
        if not kinds.isdisjoint(_DAMAGE):
            self.is_damaged = True
            records = [item for item in items if type(item) not in _DAMAGE]
        if not records:
            return
        times = [self.t, *(record.t for record in records)]
        if any(later < earlier for earlier, later in pairwise(times)):
            self.wrong["a record is older than the one before it"] = None
        self.t, self.count = times[-1], records[-1].n + 1
        self._check_kinds(kinds)
        for record in records:
            if type(record) in _NOTED:  # most are steps of a loop
                self._note(record)

    def _check_kinds(self, kinds: set[type]) -> None:
        mine = "sampler" if _SAMPLER.fullmatch(self.name) else self.name if self.name in _KINDS else "worker"
        for kind in kinds - _OF_SEVERAL - _DAMAGE:
            if (writer := _WRITERS.get(kind, "worker")) != mine:
                who = "a worker" if writer == "worker" else f"the {writer}"
                self.wrong[f"a {events.tag_of(kind)}, which only {who} writes"] = None

    def _note(self, record: object) -> None:
        if isinstance(record, Told):
            self.races.take(record)
        elif isinstance(record, events.VerdictReached):
            self.verdicts.append(record)
        elif isinstance(record, events.ScenarioFinished):
            self.is_finished = True
        elif isinstance(record, events.RunStarted):
            self.starts += 1
        elif isinstance(record, events.StateChanged):
            self.ends += record.state in FINAL_STATES


def disagreements(streams: Mapping[str, Stream], summary: RunSummary) -> Iterator[str]:
    """Yield a sentence for each thing in which the streams of a run do not agree."""
    sound = {name: stream for name, stream in streams.items() if not stream.is_damaged}
    for name, stream in sound.items():
        stream.races.end()
        yield from (f"{show(name)}: {sentence}" for sentence in [*stream.wrong, *stream.races.wrong])
    yield from _declared_otherwise(sound)
    if "supervisor" in sound and summary.run is not None:
        yield from _told_twice(sound["supervisor"])
        if summary.is_over:
            yield from _strangers(streams, summary)
            yield from _cut(streams, sound, summary)
            yield from _repeats(summary)


def ended_in_order(streams: Mapping[str, Stream], summary: RunSummary) -> bool:
    """Say whether a run came to its end step by step: what was printed is reported after the verdicts."""
    supervisor = streams.get("supervisor")
    return summary.is_over and bool(summary.outputs) and supervisor is not None and not supervisor.is_damaged


def _told_twice(supervisor: Stream) -> Iterator[str]:
    for what, count in (("start", supervisor.starts), ("end", supervisor.ends)):
        if count > 1:
            yield f"its {what} is recorded {count} times"


def _declared_otherwise(sound: Mapping[str, Stream]) -> Iterator[str]:
    """Yield the claims that some repeats declare otherwise than most."""
    ways: dict[str, Counter[bytes]] = {}
    made = [(name, claim, _essence(claim)) for name, stream in sound.items() for claim in stream.races.declared]
    for _, claim, way in made:
        ways.setdefault(claim.claim_id, Counter())[way] += 1
    for name, claim, way in made:
        if way != ways[claim.claim_id].most_common(1)[0][0]:
            yield f"{show(name)}: “{show(claim.text)}” is declared otherwise than in another repeat"


def _essence(event: events.Event) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(event, n=0, t=0))


def _strangers(streams: Mapping[str, Stream], summary: RunSummary) -> Iterator[str]:
    """Yield the streams of processes that the run did not start."""
    for name in streams:
        worker = _RANK.sub("", name)
        is_known = name in _KINDS or _SAMPLER.fullmatch(name) or (worker in summary.workers and summary.workers[worker].started)
        if not is_known and worker.startswith("worker-"):
            yield f"{show(name)}: no worker of this name was started"
        elif not is_known:
            yield f"{show(name)}: no process of a run writes a stream of this name"
        elif summary.counted and name not in summary.counted and name != "supervisor":
            yield f"{show(name)}: the stream did not exist when the run ended"


def _cut(streams: Mapping[str, Stream], sound: Mapping[str, Stream], summary: RunSummary) -> Iterator[str]:
    """Yield the streams of which something is gone, or that somebody went on with, since the run had ended."""
    if not summary.counted:
        yield from _without_end(streams, sound, summary)
    for name, count in summary.counted.items():
        if name not in streams:
            yield f"{show(name)}: the stream is missing; it had {plural(count, 'record')}"
        elif name in sound and (missing := count - streams[name].count) > 0:
            yield f"{show(name)}: the last {'record is' if missing == 1 else f'{missing} records are'} gone"
        elif name in sound and missing < 0 and summary.state != RunState.UNKILLABLE:
            yield f"{show(name)}: {plural(-missing, 'record')} more than when the run ended"


def _without_end(streams: Mapping[str, Stream], sound: Mapping[str, Stream], summary: RunSummary) -> Iterator[str]:
    """Yield the workers that came to a good end and do not tell it: all that an older record lets one know."""
    whole = {name: one.started.repeat for name, one in summary.workers.items() if one.started and not one.started.arm}
    last = max(whole.values(), default=0)
    succeeded = [name for name, repeat in whole.items() if repeat < last or summary.state == RunState.SUCCEEDED]
    for name in succeeded:
        if name not in streams:
            yield f"{show(name)}: the stream is missing"
        elif name in sound and not streams[name].is_finished:
            yield f"{show(name)}: the last records are gone"


def _repeats(summary: RunSummary) -> Iterator[str]:
    """Yield what is odd about the repeats: those that were run are the first of those that were planned."""
    assert summary.run is not None
    for name, worker in summary.workers.items():
        if worker.started and not worker.exited and summary.outputs and summary.state != RunState.UNKILLABLE:
            yield f"{show(name)}: the record of its end is missing"
    run = sorted(one.started.repeat for one in summary.workers.values() if one.started and not one.started.arm)
    planned = summary.run.repeats
    is_early = summary.state != RunState.SUCCEEDED or bool(summary.reason) or (len(run) == 1 and not summary.races)
    if run != [*range(len(run))]:
        yield f"the workers are of the repeats {join(run)}"
    elif len(run) > planned or (len(run) < planned and not is_early):
        yield f"there are {plural(len(run), 'repeat')}, and {planned} were planned"
