"""Check that the recorded data of a run is complete and unchanged, and that its verdicts follow
from the data.

Verdicts by the rule of an older tuilab are kept; --rejudge shows the verdicts of this version next
to them, and writes nothing. The digest is the checksum over the recorded data. Results and reports
show it as well: keep it, and you can check later that nobody edited the run. The exit code is 0, or
1 if something is wrong.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from tuilab.cli import completion, options
from tuilab.errors import ExitCode
from tuilab.judging.integrity import Findings, examine, judged_fields
from tuilab.record.digest import digest_of
from tuilab.record.events import VerdictReached
from tuilab.record.timing.clocks import CPU
from tuilab.record.verdicts import NOT_JUDGED, RULE
from tuilab.reports.result import verdict_of
from tuilab.runs import store
from tuilab.text.display import interval_words, join, plural, show


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], default="last", shell_complete=completion.runs),
        click.Option(
            ["--rejudge"],
            is_flag=True,
            help=f"Show the verdicts by the current rule ({RULE}) next to the recorded ones.",
        ),
        options.AS_JSON,
        options.ROOT,
    ],
)
def command(run: str, rejudge: bool, as_json: bool, root: str | None) -> int:
    run_dir = store.find(run, options.root_path(root))
    findings = examine(run_dir)
    code = ExitCode.REFUTED if findings.wrong else ExitCode.DONE
    if as_json:
        fields = _describe(findings, run_dir)
        options.print_document("tuilab.verify/1", exit_code=int(code), **fields)
        return code
    for line in _list_lines(findings, run_dir, has_new_verdicts=rejudge):
        click.echo(line)
    return code


def _list_lines(findings: Findings, run_dir: Path, *, has_new_verdicts: bool) -> Iterator[str]:
    """Yield the findings as lines of text."""
    records = plural(findings.records, "record")
    streams = plural(findings.streams, "stream")
    artifacts = plural(findings.artifacts, "artifact")
    verdicts = plural(len(findings.recorded), "verdict")
    rule = f" by rule {join(findings.rules)}" if findings.rules else ""
    yield show(run_dir)
    yield f"{records}, {streams}, {artifacts}, {verdicts}{rule}"
    yield f"digest {digest_of(run_dir, findings.state)}"
    for sentence in findings.wrong:
        yield f"problem: {sentence}"
    if findings.taken_out is not None:
        yield _describe_removed_words(findings.taken_out)
    if findings.unknown:
        unknown = plural(findings.unknown, "record")
        yield f"not checked: {unknown} of a kind that this version of tuilab does not know"
    older_rules = [rule for rule in findings.rules if rule != RULE]
    if older_rules:
        step = "" if has_new_verdicts else f"; --rejudge shows the verdicts by {RULE}"
        yield f"verdicts by the older rule {join(older_rules)}: not checked{step}"
    if has_new_verdicts:
        yield from _list_both_verdicts(findings)
    yield _describe_conclusion(findings)


def _describe_removed_words(count: int) -> str:
    """Return how the source of an imported run was changed when the run was exported."""
    if not count:
        return "the home folder in scenario.py was replaced by ~ when the run was exported"
    were = "was" if count == 1 else "were"
    removal = f"{plural(count, 'word')} of scenario.py {were} removed when the run was exported"
    return f"{removal}, so the source cannot be compared with the one that ran"


def _describe_conclusion(findings: Findings) -> str:
    """Return the last line: whether the recorded data is complete."""
    if findings.wrong:
        return plural(len(findings.wrong), "problem")
    if findings.is_over:
        return "complete and unchanged"
    return "complete so far: the run has no recorded end"


# ---- verdicts


def _list_both_verdicts(findings: Findings) -> Iterator[str]:
    """Yield each claim with its recorded verdict and the one of this version."""
    recorded = {verdict.claim_id: verdict for verdict in findings.recorded}
    rejudged = {verdict.claim_id: verdict for verdict in findings.again}
    verdicts = recorded | rejudged
    changes = 0
    for claim_id, verdict in verdicts.items():
        old = recorded.get(claim_id)
        new = rejudged.get(claim_id)
        if old is None or new is None or old.verdict != new.verdict:
            changes += 1
        new_words = _describe_verdict(new)
        if old is not None and new is not None and judged_fields(old) == judged_fields(new):
            new_words = "the same"
        yield show(verdict.text)
        yield f"    recorded  {_describe_verdict(old)}"
        yield f"    {RULE}  {new_words}"
    total = plural(len(verdicts), "verdict")
    yield f"judged again, without writing: {changes} of {total} would change"


def _describe_verdict(verdict: VerdictReached | None) -> str:
    """Return a verdict with its numbers."""
    if verdict is None:
        return NOT_JUDGED
    interval = ""
    if verdict.estimate is not None and verdict.low is not None and verdict.high is not None:
        clock = " in CPU time" if verdict.measure == CPU else ""
        interval = f"{interval_words(verdict.estimate, verdict.low, verdict.high)}{clock}; "
    return f"{verdict.verdict}  {interval}{show(verdict.why)}".rstrip()


# ---- the document of --json


def _describe(findings: Findings, run_dir: Path) -> dict[str, object]:
    """Return the findings, with the recorded verdicts and those of this version."""
    return {
        **store.fields(run_dir),
        "digest": digest_of(run_dir, findings.state),
        "records": findings.records,
        "streams": findings.streams,
        "artifacts": findings.artifacts,
        "unknown": findings.unknown,
        "state": findings.state,
        "is_over": findings.is_over,
        "wrong": findings.wrong,
        "taken_out": findings.taken_out,
        "rules": findings.rules,
        "rule": RULE,
        "recorded": [verdict_of(verdict) for verdict in findings.recorded],
        "again": [verdict_of(verdict) for verdict in findings.again],
    }
