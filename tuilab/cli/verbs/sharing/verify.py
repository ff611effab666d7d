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
    run_dir = store.find(run, options.root(root))
    found = examine(run_dir)
    code = ExitCode.REFUTED if found.wrong else ExitCode.DONE
    if as_json:
        options.print_document("tuilab.verify/1", exit_code=int(code), **_fields(found, run_dir))
        return code
    counts = [
        plural(found.records, "record"),
        plural(found.streams, "stream"),
        plural(found.artifacts, "artifact"),
    ]
    rule = f" by rule {join(found.rules)}" if found.rules else ""
    click.echo(
        f"{show(run_dir)}\n{', '.join(counts)}, {plural(len(found.recorded), 'verdict')}{rule}"
    )
    click.echo(f"digest {digest_of(run_dir, found.state)}")
    for sentence in found.wrong:
        click.echo(f"problem: {sentence}")
    if found.taken_out is not None:
        click.echo(_taken_out(found.taken_out))
    if found.unknown:
        click.echo(
            f"not checked: {plural(found.unknown, 'record')} of a kind that this version of tuilab does not know"
        )
    if others := [name for name in found.rules if name != RULE]:
        hint = "" if rejudge else f"; --rejudge shows the verdicts by {RULE}"
        click.echo(f"verdicts by the older rule {join(others)}: not checked{hint}")
    for line in _side_by_side(found) if rejudge else ():
        click.echo(line)
    click.echo(_conclusion(found))
    return code


def _conclusion(found: Findings) -> str:
    """Return the last line: whether the recorded data is complete."""
    if found.wrong:
        return plural(len(found.wrong), "problem")
    if found.is_over:
        return "complete and unchanged"
    return "complete so far: the run has no recorded end"


def _taken_out(count: int) -> str:
    """Return what the archive of a run says of its source, in a sentence."""
    if not count:
        return "the home folder in scenario.py was replaced by ~ when the run was exported"
    words = f"{plural(count, 'word')} of scenario.py {'was' if count == 1 else 'were'} removed"
    return (
        f"{words} when the run was exported, so the source cannot be compared with the one that ran"
    )


def _fields(found: Findings, run_dir: Path) -> dict[str, object]:
    """Return what was found, with the verdicts as they stand and as this version reaches them."""
    about = {**store.fields(run_dir), "digest": digest_of(run_dir, found.state)}
    names = (
        "records",
        "streams",
        "artifacts",
        "unknown",
        "state",
        "is_over",
        "wrong",
        "taken_out",
        "rules",
    )
    judged = {
        name: [verdict_of(one) for one in getattr(found, name)] for name in ("recorded", "again")
    }
    return {**about, **{name: getattr(found, name) for name in names}, "rule": RULE, **judged}


def _side_by_side(found: Findings) -> Iterator[str]:
    """Yield each claim with its recorded verdict and the one of this version."""
    recorded = {verdict.claim_id: verdict for verdict in found.recorded}
    again = {verdict.claim_id: verdict for verdict in found.again}
    verdicts = recorded | again
    changes = 0
    for claim, verdict in verdicts.items():
        old, new = recorded.get(claim), again.get(claim)
        is_same = old is not None and new is not None and judged_fields(old) == judged_fields(new)
        if old is None or new is None or old.verdict != new.verdict:
            changes += 1
        yield show(verdict.text)
        yield f"    recorded  {_words(old)}"
        yield f"    {RULE}  {'the same' if is_same else _words(new)}"
    yield f"judged again, without writing: {changes} of {plural(len(verdicts), 'verdict')} would change"


def _words(verdict: VerdictReached | None) -> str:
    """Return a verdict with its numbers."""
    if verdict is None:
        return NOT_JUDGED
    interval = ""
    if verdict.estimate is not None and verdict.low is not None and verdict.high is not None:
        on_clock = " in CPU time" if verdict.measure == CPU else ""
        interval = f"{interval_words(verdict.estimate, verdict.low, verdict.high)}{on_clock}; "
    return f"{verdict.verdict}  {interval}{show(verdict.why)}".rstrip()
