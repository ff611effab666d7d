"""Checks that a run's record is whole: every line, every number in its sequence, every artifact, every verdict."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tuilab.files import open_regular
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.journal import Corrupt, Gap
from tuilab.record.live_run import Watch, presence
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import RULE
from tuilab.text import plural, show


@dataclass
class Findings:
    """What the check found: counts, and a sentence for each thing that is wrong."""

    records: int = 0
    streams: int = 0
    artifacts: int = 0
    verdicts: int = 0
    rules: set[str] = field(default_factory=set)
    unknown: int = 0  # records of kinds that this version does not know
    unchecked: int = 0  # verdicts by a rule that this version does not have
    wrong: list[str] = field(default_factory=list)


def examine(run_dir: Path) -> Findings:
    """Examine a run's folder."""
    findings = Findings()
    summary = _examine_journal(run_dir, findings)
    _examine_ends(run_dir, summary, findings)
    _examine_artifacts(run_dir, summary, findings)
    _examine_verdicts(summary, findings)
    return findings


def _examine_journal(run_dir: Path, findings: Findings) -> RunSummary:
    watch = Watch(run_dir)
    summary = watch.summary
    streams = set()
    while items := watch.refresh():
        for stream, item in items:
            streams.add(stream)
            if isinstance(item, Corrupt):
                findings.wrong.append(f"{show(stream)}: {item.reason} at byte {item.offset}")
            elif isinstance(item, Gap):
                findings.wrong.append(f"{show(stream)}: {plural(item.missing, 'record')} missing")
    if watch.pending_bytes and summary.is_over:
        findings.wrong.append(f"{watch.pending_bytes} bytes after the last whole line: a record cut short")
    findings.wrong += [f"{show(stream)}: cannot be read: {why}" for stream, why in watch.unreadable.items()]
    if summary.damage.lost_count:
        findings.wrong.append(f"{plural(summary.damage.lost_count, 'record')} could not be written")
    watch.close()
    findings.records, findings.streams = summary.records, len(streams)
    findings.unknown = summary.damage.unknown_count
    return summary


def _examine_ends(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    if summary.run is None:
        findings.wrong.append("there is no record of its start")
    if not summary.is_over and presence(run_dir, summary) == "dead":
        findings.wrong.append("there is no record of its end: it is lost")
    if summary.run is not None and _digest(run_dir / "scenario.py") != summary.run.source_sha256:
        findings.wrong.append("scenario.py is not the source that ran")


def _examine_artifacts(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    for saved in summary.artifacts:
        findings.artifacts += 1
        if saved.name != Path(saved.name).name or _digest(run_dir / "artifacts" / saved.name) != saved.sha256:
            findings.wrong.append(f"artifact {show(saved.name)} is missing or not what was saved")


def _examine_verdicts(summary: RunSummary, findings: Findings) -> None:
    """Reach every verdict again from the raw measurements and compare."""
    recorded = {name: claim.verdict for name, claim in summary.claims.items() if claim.verdict}
    findings.verdicts = len(recorded)
    findings.rules = {verdict.rule for verdict in recorded.values()}
    findings.unchecked = sum(verdict.rule != RULE for verdict in recorded.values())
    again = {verdict.claim_id: verdict for verdict in judge(summary)}
    for name, verdict in recorded.items():
        if verdict.rule == RULE and (name not in again or _essence(again[name]) != _essence(verdict)):
            findings.wrong.append(f"the verdict on “{show(verdict.text)}” does not follow from the measurements")


def _essence(verdict: events.VerdictReached) -> dict[str, object]:
    """Return all of a verdict but where and when it was written."""
    return {name: repr(value) for name, value in msgspec.to_builtins(verdict).items() if name not in ("n", "t")}


def _digest(path: Path) -> str:
    """Return the SHA-256 of a regular file; of anything else nothing."""
    try:
        with open(open_regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # a name may hold what no file name can
        return ""
