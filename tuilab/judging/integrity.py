"""Check that the record of a run is complete and unchanged.

The check covers every line, stream and artifact, the source and every verdict. A kill, a full disk
or a power cut leaves lost records, and nothing worse. An edit is detected if a verdict or its
numbers no longer follow from the measurements, or if a stream has more or fewer records than at
the end of the run. To detect every edit, compare the digest.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.judging.judge_run import judge
from tuilab.record import held_back_records
from tuilab.record.events import VerdictReached
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.live_run import Watch, presence
from tuilab.record.origin.taken_out import words_taken_from_source
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import RULE
from tuilab.storage.files import open_regular, read_regular
from tuilab.text.display import join, plural, show

# The number of records by stream; None if some are lost, because the length then proves nothing.
StreamLengths = dict[str, int | None]


@dataclass
class Findings:
    """The result of the check: counts, the verdicts, and a sentence for each problem."""

    records: int = 0
    streams: int = 0
    artifacts: int = 0
    recorded: list[VerdictReached] = field(default_factory=list)
    again: list[VerdictReached] = field(default_factory=list)  # as this version judges the run
    unknown: int = 0  # records of kinds that this version does not know
    state: str = ""
    is_over: bool = False
    wrong: list[str] = field(default_factory=list)  # the sentences
    # Words that an archive left out of the source, by its own account; None: the source is as it
    # ran, or its change is a problem.
    taken_out: int | None = None

    @property
    def rules(self) -> list[str]:
        return sorted({verdict.rule for verdict in self.recorded})


def examine(run_dir: Path) -> Findings:
    """Return what is wrong with the folder of a run, with its recorded and recomputed verdicts.

    Raises UsageError if the run cannot be read, or if a newer tuilab recorded it.
    """
    findings = Findings()
    summary, lengths = _examine_journal(run_dir, findings)
    _examine_ends(run_dir, summary, findings)
    _examine_source(run_dir, summary, findings)
    _examine_artifacts(run_dir, summary, findings)
    findings.wrong += _describe_changed_lengths(lengths, summary)
    findings.recorded = [claim.verdict for claim in summary.claims.values() if claim.verdict]
    findings.again = judge(summary)
    if findings.state != RunState.LOST:  # of a lost run, measurements may be lost as well
        findings.wrong += _describe_wrong_verdicts(findings, summary)
        if _has_to_have_verdicts(lengths, summary):
            findings.wrong += _describe_missing_verdicts(findings)
    return findings


# ---- the journal


def _examine_journal(run_dir: Path, findings: Findings) -> tuple[RunSummary, StreamLengths]:
    """Read the journal once, and return its summary and the lengths of its streams.

    Problems and counts are added to `findings`.
    """
    watch = Watch(run_dir)
    summary = watch.summary
    lengths: StreamLengths = {}
    for path in sorted((run_dir / "journal").glob("*.jsonl")):
        lengths[path.stem] = 0
    for portion in watch.portions():
        for name, items in portion.streams:
            _examine_items(name, items, lengths, findings)
    if watch.unexplained_bytes and summary.is_over:
        pending = f"{watch.unexplained_bytes} bytes after the last complete line"
        findings.wrong.append(f"{pending}: a record was cut off")
    for name, why in watch.unreadable.items():
        lengths[name] = None
        findings.wrong.append(f"{show(name)}: cannot be read: {why}")
    for name, count in summary.damage.unexplained.items():
        findings.wrong.append(f"{show(name)}: {plural(count, 'record')} missing")
    if summary.damage.lost_count:
        lost = plural(summary.damage.lost_count, "record")
        findings.wrong.append(f"{lost} could not be written")
    watch.close()
    findings.records = summary.records
    findings.streams = len([length for length in lengths.values() if length != 0])
    findings.unknown = summary.damage.unknown_count
    return summary, lengths


def _examine_items(
    name: str, items: Sequence[Item], lengths: StreamLengths, findings: Findings
) -> None:
    """Update the length of a stream by the next part of its items, and note its problems.

    If a record is damaged or missing, the length becomes None.
    """
    is_damaged = False
    for item in items:
        if isinstance(item, Corrupt):
            is_damaged = True
            reason = f"{item.reason} at byte {item.offset}"
            findings.wrong.append(f"{show(name)}: {reason}")
        elif isinstance(item, Gap):
            is_damaged = True
    if is_damaged or lengths.get(name, 0) is None:
        lengths[name] = None
    elif items and not isinstance(items[-1], Corrupt | Gap):
        lengths[name] = items[-1].n + 1


def _examine_ends(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    """Check that the run has a record of its start and of its end, or is still running."""
    if summary.run is None:
        findings.wrong.append("the record of its start is missing")
    findings.is_over = summary.is_over
    findings.state = summary.state
    if summary.is_over or presence(run_dir, summary) != "dead":
        return
    findings.state = RunState.LOST
    findings.wrong.append("the record of its end is missing: the run is lost")
    for name, count in held_back_records.left(run_dir).items():
        unwritten_records = f"{plural(count, 'record')} with values from a GPU"
        findings.wrong.append(f"{show(name)}: {unwritten_records} could not be written")


def _describe_changed_lengths(lengths: StreamLengths, summary: RunSummary) -> Iterator[str]:
    """Yield the streams that were removed, added, cut or continued after the end of the run.

    The last record of a run has the lengths of its streams.
    """
    if not summary.is_over or not summary.counted:
        return
    for name, count in summary.counted.items():
        length = lengths.get(name, 0)
        if name not in lengths:
            yield f"{show(name)}: the stream is missing; it had {plural(count, 'record')}"
        elif length is None:
            continue
        elif length < count:
            missing = plural(count - length, "record")
            yield f"{show(name)}: the last {missing} of {count} are missing"
        elif length > count and summary.state != RunState.UNKILLABLE:
            yield f"{show(name)}: {plural(length - count, 'record')} more than when the run ended"
    for name in lengths.keys() - summary.counted.keys() - {"supervisor"}:
        yield f"{show(name)}: the stream did not exist when the run ended"


# ---- the files


def _examine_source(run_dir: Path, summary: RunSummary, findings: Findings) -> None:
    """Compare the source with the one that ran.

    An archive may have left words out of it. It says how many.
    """
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
    """Check that each artifact is there and has the recorded digest; note and count them."""
    for artifact in summary.artifacts:
        findings.artifacts += 1
        path = run_dir / "artifacts" / artifact.name
        is_file_name = artifact.name == Path(artifact.name).name  # not a path to another folder
        if not is_file_name or _digest(path, artifact.bytes_total) != artifact.sha256:
            problem = "is missing, or differs from what was saved"
            findings.wrong.append(f"artifact {show(artifact.name)} {problem}")


def _digest(path: Path, max_bytes: int) -> str:
    """Return the SHA-256 of a file; empty if it is no regular file, unreadable or larger."""
    try:
        with open(open_regular(path), "rb") as file:
            if os.fstat(file.fileno()).st_size > max_bytes:
                return ""
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # ValueError: the name holds what no file name can
        return ""


# ---- the verdicts


def _describe_wrong_verdicts(findings: Findings, summary: RunSummary) -> Iterator[str]:
    """Yield the verdicts that do not follow from the measurements, or are by another rule.

    Only verdicts by the rule of this version are judged again.
    """
    run_rule = summary.run.rule if summary.run else ""
    other_rules = [rule for rule in findings.rules if rule != run_rule]
    if run_rule and other_rules:
        yield f"the run uses the rule {show(run_rule)}, but has verdicts by {join(other_rules)}"
    judged_again = {verdict.claim_id: judged_fields(verdict) for verdict in findings.again}
    for verdict in findings.recorded:
        fields = judged_fields(verdict)
        if verdict.rule == RULE and fields != judged_again.get(verdict.claim_id):
            yield f"the verdict on “{show(verdict.text)}” does not follow from the measurements"


def judged_fields(verdict: VerdictReached) -> tuple[str, ...]:
    """Return the verdict and its numbers as texts, in which NaN equals NaN.

    The sentence is left out: another version may word the same verdict differently.
    """
    numbers = (
        verdict.estimate,
        verdict.low,
        verdict.high,
        verdict.noise_floor,
        verdict.smallest_effect,
        verdict.more_repeats,
        verdict.units,
        verdict.confidence,
    )
    return verdict.verdict, verdict.measure, *map(repr, numbers)


def _has_to_have_verdicts(lengths: StreamLengths, summary: RunSummary) -> bool:
    """Return whether the judge of the run must have reached and recorded verdicts.

    It must have if the output was recorded, which happens after the verdicts. It is excused if the
    run says why there are none, or if records of the streams that matter are lost.
    """
    has_output = summary.is_over and bool(summary.outputs)
    if not has_output or "verdicts" in summary.unavailable:
        return False
    if lengths.get("judge", 0) is None or lengths.get("supervisor") is None:
        return False
    return any(claim.declared or claim.last or claim.needs for claim in summary.claims.values())


def _describe_missing_verdicts(findings: Findings) -> list[str]:
    """Return the claims that this version can judge, but that have no recorded verdict."""
    judged = {verdict.claim_id for verdict in findings.recorded}
    sentences = []
    for verdict in findings.again:
        if verdict.claim_id not in judged:
            sentences.append(f"the verdict on “{show(verdict.text)}” is missing")
    return sentences
