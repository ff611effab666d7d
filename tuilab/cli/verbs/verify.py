"""`tuilab verify RUN`: check that a run's record is whole, and that its verdicts follow from what was measured."""

import click

from tuilab.cli import options
from tuilab.errors import ExitCode
from tuilab.judging.integrity import examine
from tuilab.record.verdicts import RULE
from tuilab.runs import store
from tuilab.text import plural, show


@click.command(
    help=__doc__, params=[click.Argument(["run"], default="last", shell_complete=options.complete_run), options.ROOT]
)
def command(run: str, root: str | None) -> int:
    run_dir = store.find(run, options.root(root))
    found = examine(run_dir)
    counts = [plural(found.records, "record"), plural(found.streams, "stream"), plural(found.artifacts, "artifact")]
    rule = f" by rule {', '.join(found.rules)}" if found.rules else ""
    click.echo(f"{show(run_dir)}\n{', '.join(counts)}, {plural(len(found.recorded), 'verdict')}{rule}")
    for sentence in found.wrong:
        click.echo(f"wrong: {sentence}")
    if found.unknown:
        click.echo(f"passed over: {plural(found.unknown, 'record')} of kinds that this version does not know")
    if found.unchecked:
        click.echo(f"not checked: {plural(found.unchecked, 'verdict')} by a rule that is not {RULE}, the one of this tuilab")
    click.echo("whole" if not found.wrong else plural(len(found.wrong), "finding"))
    return ExitCode.REFUTED if found.wrong else ExitCode.DONE
