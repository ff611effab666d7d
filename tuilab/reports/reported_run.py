"""A run as reports take it: its summary, its state, and the source that it ran; read once, and never more of its folder."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import read_recorded
from tuilab.errors import TuilabError
from tuilab.record.events import RunStarted, Scalar
from tuilab.record.live_run import Watch
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.reports.result import Result, result_of
from tuilab.runs import earlier_verdicts, notes, store
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.runs.notes import Notes
from tuilab.runs.redaction import Redactor
from tuilab.text.display import plural, show


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """One run, read for a report."""

    run_dir: Path
    summary: RunSummary
    state: str
    scenario: Scenario  # as the source that ran describes it
    source: str = ""
    source_note: str = ""  # why there is no source, or why it may be another one
    reading_gaps: tuple[str, ...] = ()  # what could not be read
    notes: Notes = field(default_factory=Notes)  # what people wrote about it
    before: Mapping[str, str] = field(
        default_factory=dict
    )  # by claim: how often it was judged on this box before
    path: str = ""  # of its folder, as it may be handed on
    private: Redactor | None = None  # what takes out what is private; None: that is kept
    of_sweep: RunEntry | None = (
        None  # what lists know of it, where what is told is its sweep: its point, whatever can be read
    )

    @property
    def name(self) -> str:
        """What the run is called where several are told apart."""
        run = self.summary.run
        return f"{show(run.topic)}/{show(run.scenario)}" if run else show(self.run_dir.name)

    @property
    def title(self) -> str:
        run = self.summary.run
        return show(run.title) if run and run.title else "A run that left no record"

    @property
    def point(self) -> Mapping[str, Scalar]:
        """Its values, where it is a point of a sweep."""
        run = self.summary.run
        known = self.of_sweep.point if self.of_sweep else {}
        return run.sweep.point if run and run.sweep else known

    def word(self, text: str) -> str:
        """Return a word of the record as it may be handed on."""
        return self.private.word(text) if self.private else text

    @cached_property
    def result(self) -> Result:
        """What is known of the run, as every report says it; its digest is of the whole record, which is read for it."""
        return result_of(self.summary, self.state, self.run_dir, self.path)

    @property
    def id(self) -> str:
        return show(store.short_id(self.run_dir.name))


def read_subject(
    run_dir: Path, cache: Index | None = None, *, keeps_private: bool = False
) -> ReportedRun:
    """Read a run as it is now, without what nobody should hand on unless that is asked for."""
    private = None if keeps_private else Redactor()
    watch = Watch(run_dir, private.item if private else None)
    watch.catch_up()
    found = _subject_of(watch, watch.state(), private, cache)
    watch.close()
    return found


def read_each(
    runs: Sequence[Path],
    tell: Callable[[str], object],
    cache: Index | None = None,
    *,
    keeps_private: bool = False,
) -> list[ReportedRun]:
    """Read runs; of several, one that cannot be read is left out, which is said in a sentence."""
    found = []
    for run_dir in runs:
        try:
            found.append(read_subject(run_dir, cache, keeps_private=keeps_private))
        except TuilabError as problem:
            if len(runs) == 1:
                raise
            tell(f"left out {show(run_dir.name)}: {show(str(problem))}")
    return found


def _subject_of(
    watch: Watch, state: str, private: Redactor | None, cache: Index | None
) -> ReportedRun:
    run_dir, summary = watch.run_dir, watch.summary
    run = summary.run
    handed_on = private.of if private else _as_it_is
    scenario, data = read_recorded(
        run_dir / "scenario.py", run.topic if run else "", run.scenario if run else ""
    )
    if run and run.command:
        scenario = Scenario(
            run.scenario, run.topic, scenario.path
        )  # its source is no scenario, and need be none
    noted = notes.read(run_dir)
    source = data.decode(errors="replace")
    return ReportedRun(
        run_dir,
        summary,
        state,
        private.scenario(scenario) if private else scenario,
        private.source(source) if private else source,
        _source_note(run, data) or show(scenario.error),
        tuple(_reading_gaps(watch, state)),
        Notes(
            [(when, handed_on(text, notes.FILE)) for when, text in noted.texts],
            handed_on(noted.tags, notes.FILE),
        ),
        earlier_verdicts.describe_earlier_verdicts(run_dir, summary, cache),
        handed_on(str(run_dir), "path"),
        private,
    )


def _as_it_is(value: Any, place: str) -> Any:
    return value


def _reading_gaps(watch: Watch, state: str) -> Iterator[str]:
    for name, why in watch.unreadable.items():
        yield f"stream {show(name)} cannot be read: {show(why)}"
    if watch.pending_bytes and (watch.summary.is_over or state == RunState.LOST):
        yield f"{plural(watch.pending_bytes, 'byte')} at the end of a stream are not a complete record"


def _source_note(run: RunStarted | None, data: bytes) -> str:
    if not data or not run or hashlib.sha256(data).hexdigest() == run.source_sha256:
        return ""
    return "not the source that ran: its digest differs from the recorded digest"
