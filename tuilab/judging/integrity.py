"""Checks that the record of a run is complete and unchanged: every line, stream and artifact, the source and every verdict.

What a kill, a full disk or a power cut leaves behind is lost, and nothing worse. An edit is found where it changes a verdict
or a number, or how many records a stream has. To find every edit, compare the digest.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.files import open_regular, read_regular
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

Streams = dict[str, int | None]  # records by stream; None if some are lost, so that the length says nothing


@dataclass
class Findings:
    """What the check found: counts, the verdicts, and a sentence for each thing that is wrong."""

    records: int = 0
    streams: int = 0
    artifacts: int = 0
    recorded: list[VerdictReached] = field(default_factory=list)
    again: list[VerdictReached] = field(default_factory=list)  # the verdicts that this version reaches
    unknown: int = 0  # records of kinds that this version does not know
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
    findings.wrong += _changed_lengths(streams, summary)
    findings.recorded = [claim.verdict for claim in summary.claims.values() if claim.verdict]
    findings.again = judge(summary)
    if findings.state != RunState.LOST:  # the measurements behind a verdict may be lost as well
        findings.wrong += _wrong_verdicts(findings, summary)
        if _was_judged(streams, summary):
            findings.wrong += _missing_verdicts(findings)
    return findings


def _examine_journal(run_dir: Path, findings: Findings) -> tuple[RunSummary, Streams]:
    """Read the journal once; return its summary, and by stream its length, or None if records of it are lost."""
    watch = Watch(run_dir)
    summary = watch.summary
    streams: Streams = {path.stem: 0 for path in sorted((run_dir / "journal").glob("*.jsonl"))}
    for portion in watch.portions():
        for name, items in portion.streams:
            damage = [_damage(name, item) for item in items if type(item) in (Corrupt, Gap)]
            findings.wrong += damage
            last = items[-1] if items else None
            if damage or streams.get(name, 0) is None:
                streams[name] = None
            elif last is not None and not isinstance(last, Corrupt | Gap):
                streams[name] = last.n + 1
    if watch.pending_bytes and summary.is_over:
        findings.wrong.append(f"{watch.pending_bytes} bytes after the last complete line: a record was cut off")
    for name, why in watch.unreadable.items():
        streams[name] = None
        findings.wrong.append(f"{show(name)}: cannot be read: {why}")
    if summary.damage.lost_count:
        findings.wrong.append(f"{plural(summary.damage.lost_count, 'record')} could not be written")
    watch.close()
    findings.records = summary.records
    findings.streams = sum(count != 0 for count in streams.values())
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


def _changed_lengths(streams: Streams, summary: RunSummary) -> Iterator[str]:
    """Yield the streams that were removed, added, cut or continued after the run had ended, by the count at its end."""
    if not summary.is_over or not summary.counted:
        return
    for name, count in summary.counted.items():
        length = streams.get(name, 0)
        if name not in streams:
            yield f"{show(name)}: the stream is missing; it had {plural(count, 'record')}"
        elif length is None:
            continue
        elif length < count:
            yield f"{show(name)}: the last {plural(count - length, 'record')} of {count} are missing"
        elif length > count and summary.state != RunState.UNKILLABLE:
            yield f"{show(name)}: {plural(length - count, 'record')} more than when the run ended"
    for name in streams.keys() - summary.counted.keys() - {"supervisor"}:
        yield f"{show(name)}: the stream did not exist when the run ended"


def _wrong_verdicts(findings: Findings, summary: RunSummary) -> Iterator[str]:
    """Yield the verdicts by another rule than the run's, and those that do not follow from the measurements."""
    rule = summary.run.rule if summary.run else ""
    if rule:
        others = [name for name in findings.rules if name != rule]
        if others:
            yield f"the run uses the rule {show(rule)}, but has verdicts by {join(others)}"
    again = {verdict.claim_id: judged_fields(verdict) for verdict in findings.again}
    for verdict in findings.recorded:
        if verdict.rule == RULE and judged_fields(verdict) != again.get(verdict.claim_id):
            yield f"the verdict on “{show(verdict.text)}” does not follow from the measurements"


def judged_fields(verdict: VerdictReached) -> tuple[str, ...]:
    """Return the verdict and its numbers, without its sentence: another version may word the same verdict differently."""
    numbers = (
        verdict.estimate, verdict.low, verdict.high, verdict.noise_floor, verdict.smallest_effect, verdict.more_repeats,
        verdict.units, verdict.confidence,
    )  # fmt: skip
    return verdict.verdict, verdict.measure, *map(repr, numbers)  # repr: nan differs from itself


def _was_judged(streams: Streams, summary: RunSummary) -> bool:
    """Say whether the run had claims and came to its end step by step: the output is recorded after the verdicts."""
    is_claimed = any(claim.declared or claim.last or claim.needs for claim in summary.claims.values())
    is_excused = "verdicts" in summary.unavailable or streams.get("judge", 0) is None or streams.get("supervisor") is None
    return summary.is_over and bool(summary.outputs) and is_claimed and not is_excused


def _missing_verdicts(findings: Findings) -> list[str]:
    """Return which claims have no verdict although the run was judged."""
    judged = {verdict.claim_id for verdict in findings.recorded}
    return [f"the verdict on “{show(one.text)}” is missing" for one in findings.again if one.claim_id not in judged]


def _digest(path: Path, most: int) -> str:
    """Return the SHA-256 of a regular file of at most so many bytes; of anything else nothing."""
    try:
        with open(open_regular(path), "rb") as file:
            is_larger = os.fstat(file.fileno()).st_size > most
            return "" if is_larger else hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # a name may hold what no file name can
        return ""
