"""`tuilab runs`: the runs on this box, newest first."""

import json
import sys

import click

from tuilab import store
from tuilab.cli import options
from tuilab.errors import TuilabError
from tuilab.glyphs import style_of
from tuilab.summary import RunSummary
from tuilab.text import show
from tuilab.watch import Watch


@click.command(
    help=__doc__,
    params=[
        click.Option(["--limit"], type=click.IntRange(1), default=20, show_default=True, help="How many to show."),
        click.Option(["--json", "as_json"], is_flag=True, help="As one JSON document."),
        options.ROOT,
    ],
)
def command(limit: int, as_json: bool, root: str | None) -> None:
    folders = store.list_runs(options.root(root))
    rows = []
    for run_dir in folders[:limit]:
        try:
            watch = Watch(run_dir)
            while watch.refresh():
                pass
            rows.append((run_dir.name, watch.state(), watch.summary))
            watch.close()
        except TuilabError as problem:
            rows.append((run_dir.name, f"unreadable: {problem}", RunSummary()))
    if as_json:
        click.echo(json.dumps({"schema": "tuilab.runs/1", "runs": [_fields(*row) for row in rows]}, indent=2))
        return
    style = style_of(sys.stdout)
    for name, state, summary in rows:
        marks = "".join(style.mark(claim.verdict.verdict if claim.verdict else "") for claim in summary.claims.values())
        when = f"{name[:4]}-{name[4:6]}-{name[6:8]} {name[9:11]}:{name[11:13]}Z"
        scenario = show(f"{summary.run.topic}/{summary.run.scenario}") if summary.run else "?"
        click.echo(f"{store.short_id(name)}  {when}  {scenario:32} {state:10} {summary.elapsed_s:7.1f} s  {marks}")
    if not rows:
        click.echo("no runs yet; make one: tuilab run stability --headless")
    if len(folders) > limit:
        click.echo(f"… and {len(folders) - limit} more: --limit {len(folders)}")


def _fields(name: str, state: str, summary: RunSummary) -> dict[str, object]:
    return {
        "run": name,
        "scenario": summary.run.scenario if summary.run else None,
        "topic": summary.run.topic if summary.run else None,
        "params": summary.run.params if summary.run else {},
        "state": state,
        "elapsed_s": summary.elapsed_s,
        "verdicts": {claim.text: claim.verdict.verdict if claim.verdict else None for claim in summary.claims.values()},
    }
