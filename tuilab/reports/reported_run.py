"""A run as reports take it: its summary, its state, and the source that ran.

They are read once, and nothing else of its folder is.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

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
from tuilab.runs.redaction import Redactor, secrets_of_source
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
    reading_gaps: tuple[str, ...] = ()  # parts of the record that could not be read
    notes: Notes = field(default_factory=Notes)  # tags and texts that people added to it
    # By claim: how often it was judged on this machine before.
    earlier: Mapping[str, str] = field(default_factory=dict)
    path: str = ""  # of its folder, without private words
    private: Redactor | None = None  # removes private words; None: they are kept
    # The run in the index, if the report is about its sweep: it has the point of the sweep even
    # if nothing of the run can be read.
    of_sweep: RunEntry | None = None

    @property
    def name(self) -> str:
        """The name of the run among several: its scenario."""
        run = self.summary.run
        if run is None:
            return show(self.run_dir.name)
        return f"{show(run.topic)}/{show(run.scenario)}"

    @property
    def title(self) -> str:
        run = self.summary.run
        if run is None or not run.title:
            return "A run that left no record"
        return show(run.title)

    @property
    def point(self) -> Mapping[str, Scalar]:
        """The values of the settings that were swept; empty if the run is no point of a sweep."""
        run = self.summary.run
        if run and run.sweep:
            return run.sweep.point
        if self.of_sweep:
            return self.of_sweep.point
        return {}

    def word(self, text: str) -> str:
        """Return a word of the record without what is private."""
        if self.private is None:
            return text
        return self.private.word(text)

    @cached_property
    def result(self) -> Result:
        """The result of the run, from which every report is rendered.

        Its digest is of the whole record, which is read for it.
        """
        return result_of(self.summary, self.state, self.run_dir, self.path)

    @property
    def id(self) -> str:
        return show(store.short_id(self.run_dir.name))


def read_subject(
    run_dir: Path, index: Index | None = None, *, keeps_private: bool = False
) -> ReportedRun:
    """Read a run as it is now, without private words unless they are asked for.

    The entries of earlier runs are read for their verdicts, and saved in the index of the folder.
    Raise an error of tuilab if the journal cannot be read.
    """
    if keeps_private:
        private = None
        watch = Watch(run_dir)
    else:
        private = Redactor(secrets_of_source(run_dir))
        watch = Watch(run_dir, private.item)
    with closing(watch):
        watch.catch_up()
        return _subject_of(watch, watch.state(), private, index)


def read_each(
    runs: Sequence[Path],
    warn: Callable[[str], object],
    index: Index | None = None,
    *,
    keeps_private: bool = False,
) -> list[ReportedRun]:
    """Read runs. A run that cannot be read is left out, and `warn` is called with the reason.

    If there is only one run, its error is raised instead.
    """
    subjects = []
    for run_dir in runs:
        try:
            subjects.append(read_subject(run_dir, index, keeps_private=keeps_private))
        except TuilabError as problem:
            if len(runs) == 1:
                raise
            warn(f"left out {show(run_dir.name)}: {show(str(problem))}")
    return subjects


def _subject_of(
    watch: Watch, state: str, private: Redactor | None, index: Index | None
) -> ReportedRun:
    """Return what reports take of a run that was read, without private words if asked for.

    `private` is None to keep private words. The source of a user's command is kept as text only.
    """
    run_dir = watch.run_dir
    summary = watch.summary
    run = summary.run
    topic = ""
    name = ""
    if run:
        topic = run.topic
        name = run.scenario
    scenario, data = read_recorded(run_dir / "scenario.py", topic, name)
    if run and run.command:
        # The source of a command is no scenario, so errors in reading it as one do not matter.
        scenario = Scenario(name, topic, scenario.path)
    subject = ReportedRun(
        run_dir=run_dir,
        summary=summary,
        state=state,
        scenario=scenario,
        source=data.decode(errors="replace"),
        source_note=_source_note(run, data) or show(scenario.error),
        reading_gaps=tuple(_list_reading_gaps(watch, state)),
        notes=notes.read(run_dir),
        earlier=earlier_verdicts.describe_earlier_verdicts(run_dir, summary, index),
        path=str(run_dir),
        private=private,
    )
    if private is None:
        return subject
    return _without_private(subject, private)


def _without_private(subject: ReportedRun, private: Redactor) -> ReportedRun:
    """Return a run without the private words of its scenario, source, notes and path."""
    # The order counts: `private.places` lists the places in the order in which words were removed.
    scenario = private.scenario(subject.scenario)
    source = private.source(subject.source)
    texts = []
    for wall_s, text in subject.notes.texts:
        texts.append((wall_s, private.of(text, notes.FILE)))
    tags = private.of(subject.notes.tags, notes.FILE)
    path = private.of(subject.path, "path")
    return replace(subject, scenario=scenario, source=source, notes=Notes(texts, tags), path=path)


def _list_reading_gaps(watch: Watch, state: str) -> Iterator[str]:
    """Yield the streams that cannot be read, and how many bytes are no complete record.

    While a run is running, such bytes are normal: the rest of the record will follow.
    """
    for name, why in watch.unreadable.items():
        yield f"stream {show(name)} cannot be read: {show(why)}"
    if watch.unexplained_bytes and (watch.summary.is_over or state == RunState.LOST):
        count = plural(watch.unexplained_bytes, "byte")
        yield f"{count} at the end of a stream are not a complete record"


def _source_note(run: RunStarted | None, data: bytes) -> str:
    """Return that the kept source is not the source that ran; empty if nothing is known."""
    if not data or not run or hashlib.sha256(data).hexdigest() == run.source_sha256:
        return ""
    return "not the source that ran: its digest differs from the recorded digest"
