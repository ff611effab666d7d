"""Show the queued runs, and the running ones that they wait for.

A queued run starts when no other run uses its device. `tuilab run --detach` queues several runs;
`tuilab sweep` queues its points.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from tuilab.cli import completion, options
from tuilab.cli.subcommands import Subcommands
from tuilab.drawings.glyphs import Style, style_of
from tuilab.errors import UsageError
from tuilab.record.states import RunState
from tuilab.runs import queue, store
from tuilab.runs.command_line import hint
from tuilab.text.display import show

_RUN = click.Argument(["run"], shell_complete=completion.going_on)
_RUNS = click.Argument(["runs"], nargs=-1, required=True, shell_complete=completion.going_on)


def _with_root(act: Callable[..., None]) -> Callable[..., None]:
    """Give a command the folder of runs that is named behind it, else the one that is named before it."""

    @functools.wraps(act)
    def with_root(*, root: str | None, **given: Any) -> None:
        before: str | None = click.get_current_context().obj
        act(options.root(before if root is None else root), **given)

    return with_root


class _Queue(Subcommands):
    """A group that calls its members subcommands, as `tuilab --help` does."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Subcommands"):
            formatter.write_dl(
                [
                    (name, one.get_short_help_str(limit=60))
                    for name, one in sorted(self.commands.items())
                ]
            )


@click.group(
    cls=_Queue,
    help=__doc__,
    subcommand_metavar="[SUBCOMMAND] [ARGS]...",
    invoke_without_command=True,
    params=[options.AS_JSON, options.ROOT],
)
@click.pass_context
def command(ctx: click.Context, as_json: bool, root: str | None) -> None:
    ctx.obj = root
    if ctx.invoked_subcommand is None:
        _show(options.root(root), as_json=as_json)
    elif as_json:
        raise UsageError(
            f"--json belongs behind {ctx.invoked_subcommand}: tuilab queue {ctx.invoked_subcommand} --json"
        )


@command.command(params=[_RUN, click.Argument(["place"], type=int), options.AS_JSON, options.ROOT])
@_with_root
def move(root: Path, run: str, place: int, as_json: bool) -> None:
    """Move a queued run to another place; 1 is next."""
    run_dir = queue.find(run, root)
    queue.move(root, run_dir.name, place)
    _show(root, as_json=as_json)


@command.command(params=[_RUNS, options.AS_JSON, options.ROOT])
@_with_root
def cancel(root: Path, runs: Sequence[str], as_json: bool) -> None:
    """Remove runs from the queue.

    `tuilab stop` stops a run that has already started.
    """
    from tuilab.engine import launch

    _tell(root, map(launch.stop, [queue.find(run, root) for run in runs]), as_json=as_json)


@command.command(params=[options.AS_JSON, options.ROOT])
@_with_root
def pause(root: Path, as_json: bool) -> None:
    """Pause the queue: no queued run starts.

    Runs that have already started continue. `tuilab queue resume` resumes the queue.
    """
    queue.pause(root)
    _tell(
        root,
        [
            f"the queue is paused, {len(queue.waiting(root))} queued; resume it: {hint(root, 'queue', 'resume')}"
        ],
        as_json=as_json,
    )


@command.command(params=[options.AS_JSON, options.ROOT])
@_with_root
def resume(root: Path, as_json: bool) -> None:
    """Resume the queue: queued runs start again."""
    queue.resume(root)
    _tell(root, [f"the queue is resumed, {len(queue.waiting(root))} queued"], as_json=as_json)


@command.command(
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.over),
        options.AS_JSON,
        options.ROOT,
    ]
)
@_with_root
def again(root: Path, runs: Sequence[str], as_json: bool) -> None:
    """Queue lost runs again, for example after a reboot.

    Without RUNS: all runs that were still queued when they were killed or the machine rebooted.
    """
    from tuilab.engine.launch import check_outlived
    from tuilab.engine.requeue import queue_again

    check_outlived()
    chosen = {store.find_surely(run, [root]).name for run in runs}
    told = (
        f"{store.short_id(old)} is queued again as {store.short_id(new.name)}"
        for old, new in queue_again(root, chosen)
    )
    first = next(told, "no queued run was lost")
    _tell(root, chain([first], told), as_json=as_json)


def _tell(root: Path, done: Iterable[str], *, as_json: bool) -> None:
    """Tell what is done, one after the other; a program is told how the queue stands then."""
    for line in done:
        if not as_json:
            click.echo(line)
    if as_json:
        _show(root, as_json=True)


def _show(root: Path, *, as_json: bool) -> None:
    """Show how the queue stands."""
    if as_json:
        options.print_document("tuilab.queue/1", **_fields(root))
    else:
        click.echo(_page(root, style_of(sys.stdout)))


def _page(root: Path, style: Style) -> str:
    now = queue.read_queue(root)
    names = {RunState.RUNNING: "now"}
    lines = [
        _line(str(place or names.get(state, state)), one, style) for state, place, one in now.rows
    ]
    if not lines:
        lines = [f"the queue is empty; queue runs: {hint(root, 'run', 'TOPIC', '--detach')}"]
    if now.is_paused:
        lines.append(f"paused: no queued run starts; resume: {hint(root, 'queue', 'resume')}")
    if now.lost:
        again = hint(root, "queue", "again")
        lines.append(
            f"lost: still queued when they were killed or the machine rebooted; queue them again: {again}"
        )
    return style.fit("\n".join(lines))


def _line(place: str, one: queue.Ticket, style: Style) -> str:
    waited = f"{max(time.time_ns() - one.since_ns, 0) / 1e9:.0f} s" if one.since_ns else "n/a"
    devices = style.dim(show(", ".join(one.devices)))
    return f"{place:>4}  {store.short_id(one.run)}  {show(one.name):32} {waited:>8}  {devices}".rstrip()


def _fields(root: Path) -> dict[str, Any]:
    now = queue.read_queue(root)
    return {
        "is_paused": now.is_paused,
        "runs": [_run(root, state, place, one) for state, place, one in now.rows],
    }


def _run(root: Path, state: str, place: int | None, one: queue.Ticket) -> dict[str, Any]:
    topic, _, scenario = one.name.rpartition("/")
    about = {**store.fields(root / one.run), "scenario": scenario, "topic": topic or None}
    return {**about, "state": state, "place": place, "devices": one.devices}
