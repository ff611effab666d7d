"""A run as reports take it: its summary, its state, and the source that it ran; read once, and never more of its folder."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import read_recorded
from tuilab.record.digest import digest_of
from tuilab.record.live_run import Watch
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs import earlier, notes, store
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.notes import Notes
from tuilab.text import plural, show


@dataclass(frozen=True, eq=False)
class Subject:
    """One run, read for a report."""

    run_dir: Path
    summary: RunSummary
    state: str
    scenario: Scenario  # as the source that ran describes it
    source: str = ""
    source_note: str = ""  # why there is no source, or why it may be another one
    reading_gaps: tuple[str, ...] = ()  # what could not be read
    notes: Notes = field(default_factory=Notes)  # what people wrote about it
    before: Mapping[str, str] = field(default_factory=dict)  # by claim: how often it was judged on this box before

    @property
    def name(self) -> str:
        """What the run is called where several are told apart."""
        run = self.summary.run
        return f"{show(run.topic)}/{show(run.scenario)}" if run else show(self.run_dir.name)

    @property
    def title(self) -> str:
        run = self.summary.run
        return show(run.title) if run and run.title else "A run that left no record"

    @cached_property
    def digest(self) -> str:
        """The digest of the record, or why it has none; the whole record is read for it."""
        return digest_of(self.run_dir, self.state)

    @property
    def id(self) -> str:
        return show(store.short_id(self.run_dir.name))


def read_subject(run_dir: Path, cache: LedgerCache | None = None) -> Subject:
    """Read a run as it is now."""
    watch = Watch(run_dir)
    while watch.refresh():
        pass
    found = subject_of(watch, watch.state())
    watch.close()
    return found


def subject_of(watch: Watch, state: str, cache: LedgerCache | None = None) -> Subject:
    """Return a run as it has been read."""
    run_dir, summary = watch.run_dir, watch.summary
    gaps = [f"stream {show(name)} cannot be read: {show(why)}" for name, why in watch.unreadable.items()]
    if watch.pending_bytes and (summary.is_over or state == RunState.LOST):
        gaps.append(f"{plural(watch.pending_bytes, 'byte')} at the end of a stream are no whole record")
    run = summary.run
    scenario, data = read_recorded(run_dir / "scenario.py", run.topic if run else "", run.scenario if run else "")
    note = show(scenario.error) if scenario.error else ""
    if data and run and hashlib.sha256(data).hexdigest() != run.source_sha256:
        note = "this is not the source that ran: its digest is another than the recorded one"
    source, before = data.decode(errors="replace"), earlier.tell(run_dir, summary, cache)
    return Subject(run_dir, summary, state, scenario, source, note, tuple(gaps), notes.read(run_dir), before)
