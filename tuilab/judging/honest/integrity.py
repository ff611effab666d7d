"""Checks that a run's record is whole: every line, every number in its sequence, every artifact, every verdict."""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tuilab import __version__
from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.files import open_regular, read_regular
from tuilab.judging.honest.agreement import Stream, disagreements, ended_in_order
from tuilab.judging.judge_run import judge
from tuilab.record import unwritten
from tuilab.record.events import VerdictReached
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.live_run import Watch, presence
from tuilab.record.origin.taken_out import words_taken_from_source
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import RULE
from tuilab.text import join, plural, show


@dataclass
class Findings:
    """What the check found: counts, the verdicts, and a sentence for each thing that is wrong."""

    records: int = 0
    streams: int = 0
    artifacts: int = 0
    recorded: list[VerdictReached] = field(default_factory=list)
    again: list[VerdictReached] = field(default_factory=list)  # the verdicts that this version reaches
    unknown: int = 0  # records of kinds that this version does not know
    unchecked: int = 0  # verdicts by a rule that this version does not have
    state: str = ""
    is_over: bool = False
    wrong: list[str] = field(default_factory=list)
    taken_out: int | None = None  # words of the source that its archive left out, as it says itself; None: it is as it ran

    @property
    def rules(self) -> list[str]:
        return sorted({verdict.rule for verdict in self.recorded})


def examine(run_dir: Path) -> Findings:
    """Examine a run's folder."""
    findings = Findings()
    summary, streams = _examine_journal(run_dir, findings)
    _examine_ends(run_dir, summary, findings)
    _examine_artifacts(run_dir, summary, findings)
    findings.wrong += disagreements(streams, summary)
    findings.recorded = [verdict for stream in streams.values() for verdict in stream.verdicts]
    findings.again = judge(summary)
    rule = summary.run.rule if summary.run else ""
    if others := [name for name in findings.rules if rule and name != rule]:
        findings.wrong.append(f"the run uses the rule {show(rule)}, but has verdicts by {join(others)}")
    findings.unchecked = sum(verdict.rule != RULE for verdict in findings.recorded)
    if findings.state != RunState.LOST:  # then the measurements of a verdict may have been lost, too
        findings.wrong += [*_odd_verdicts(findings, summary), *_missing_verdicts(streams, summary, findings)]
    return findings


def _examine_journal(run_dir: Path, findings: Findings) -> tuple[RunSummary, dict[str, Stream]]:
    watch = Watch(run_dir)
    summary = watch.summary
    streams = {path.stem: Stream(path.stem) for path in sorted((run_dir / "journal").glob("*.jsonl"))}
    for portion in watch.portions():
        for name, items in portion.streams:
            streams.setdefault(name, Stream(name)).take(items)
            findings.wrong += [_damage(name, item) for item in items if type(item) in (Corrupt, Gap)]
    if watch.pending_bytes and summary.is_over:
        findings.wrong.append(f"{watch.pending_bytes} bytes after the last complete line: a record was cut off")
    for name, why in watch.unreadable.items():
        streams.setdefault(name, Stream(name)).is_damaged = True
        findings.wrong.append(f"{show(name)}: cannot be read: {why}")
    if summary.damage.lost_count:
        findings.wrong.append(f"{plural(summary.damage.lost_count, 'record')} could not be written")
    watch.close()
    findings.records = summary.records
    findings.streams = sum(bool(stream.count) or stream.is_damaged for stream in streams.values())
    findings.unknown = summary.damage.unknown_count
    return summary, streams


def _damage(stream: str, item: Item) -> str:
    if isinstance(item, Corrupt):
        return f"{show(stream)}: {item.reason} at byte {item.offset}"
    assert isinstance(item, Gap)
    return f"{show(stream)}: {plural(item.missing, 'record')} missing"


def _examine_ends(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    if summary.run is None:
        findings.wrong.append("the record of its start is missing")
    findings.is_over = summary.is_over
    is_lost = not summary.is_over and presence(run_dir, summary) == "dead"
    findings.state = RunState.LOST if is_lost else summary.state
    if is_lost:
        findings.wrong.append("the record of its end is missing: the run is lost")
        for name, count in unwritten.left(run_dir).items():
            findings.wrong.append(f"{show(name)}: {plural(count, 'record')} with values from a GPU could not be written")
    _examine_source(run_dir, summary, findings)


def _examine_source(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    """Compare the source with the one that ran, or with what an archive says to have left of it."""
    path = run_dir / "scenario.py"
    if summary.run is None or _digest(path, SOURCE_LIMIT) == summary.run.source_sha256:
        return
    try:
        source = read_regular(path, SOURCE_LIMIT)
    except OSError:
        source = b""
    findings.taken_out = words_taken_from_source(run_dir, source)
    if findings.taken_out is None:
        findings.wrong.append("scenario.py is not the source that ran")


def _examine_artifacts(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    for saved in summary.artifacts:
        findings.artifacts += 1
        path = run_dir / "artifacts" / saved.name
        if saved.name != Path(saved.name).name or _digest(path, saved.bytes_total) != saved.sha256:
            findings.wrong.append(f"artifact {show(saved.name)} is missing, or differs from what was saved")


def _odd_verdicts(findings: Findings, summary: RunSummary) -> Iterator[str]:
    """Yield what is odd about the verdicts: each claim has one, by one rule, that which is reached from the measurements.

    Another version may say the same in other words.
    """
    if len(findings.rules) > 1:
        yield f"the verdicts were reached by different rules: {join(findings.rules)}"
    for (_, text), count in Counter((verdict.claim_id, verdict.text) for verdict in findings.recorded).items():
        if count > 1:
            yield f"{count} verdicts on the same claim, “{show(text)}”"
    has_our_words = summary.run is None or summary.run.tuilab == __version__
    passed_over = {"n", "t", *([] if has_our_words else ["why", "gpu", "gpu_name"])}  # where and when it was written
    follow = [_essence(verdict, passed_over) for verdict in findings.again]
    for verdict in findings.recorded:
        if verdict.rule == RULE and _essence(verdict, passed_over) not in follow:
            yield f"the verdict on “{show(verdict.text)}” does not follow from the measurements"


def _missing_verdicts(streams: Mapping[str, Stream], summary: RunSummary, findings: Findings) -> list[str]:
    """Return which claims have no verdict although the run was judged: it had claims, and its end came in order."""
    is_claimed = any(claim.declared or claim.last or claim.needs for claim in summary.claims.values())
    is_excused = "verdicts" in summary.unavailable or ("judge" in streams and streams["judge"].is_damaged)
    if not is_claimed or is_excused or not ended_in_order(streams, summary):
        return []
    judged = {verdict.claim_id for verdict in findings.recorded}
    return [f"the verdict on “{show(one.text)}” is missing" for one in findings.again if one.claim_id not in judged]


def _essence(verdict: VerdictReached, but: Collection[str]) -> dict[str, object]:
    """Return all of a verdict but these fields."""
    return {name: repr(value) for name, value in msgspec.to_builtins(verdict).items() if name not in but}


def _digest(path: Path, most: int) -> str:
    """Return the SHA-256 of a regular file of at most so many bytes; of anything else nothing."""
    try:
        with open(open_regular(path), "rb") as file:
            is_larger = os.fstat(file.fileno()).st_size > most
            return "" if is_larger else hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # a name may hold what no file name can
        return ""
