"""Show the queued runs, and the running ones that they wait for.

A queued run starts when no other run uses its device. `tuilab run --detach` queues several runs;
`tuilab sweep` queues its points.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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

_RUN = click.Argument(["run"], shell_complete=completion.unfinished_runs)
_RUNS = click.Argument(["runs"], nargs=-1, required=True, shell_complete=completion.unfinished_runs)


class _QueueGroup(Subcommands):
    """A group that calls its members subcommands, as `tuilab --help` does."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name, subcommand in sorted(self.commands.items()):
            rows.append((name, subcommand.get_short_help_str(limit=60)))
        with formatter.section("Subcommands"):
            formatter.write_dl(rows)


@click.group(
    cls=_QueueGroup,
    help=__doc__,
    subcommand_metavar="[SUBCOMMAND] [ARGS]...",
    invoke_without_command=True,
    params=[options.AS_JSON, options.ROOT],
)
@click.pass_context
def command(ctx: click.Context, as_json: bool, root: str | None) -> None:
    ctx.obj = root
    if ctx.invoked_subcommand is None:
        _print_queue(options.root_path(root), as_json=as_json)
    elif as_json:
        name = ctx.invoked_subcommand
        raise UsageError(f"--json belongs behind {name}: tuilab queue {name} --json")


def _with_root(function: Callable[..., None]) -> Callable[..., None]:
    """Pass a subcommand the folder of runs as a path.

    `--root` may be behind the subcommand or before it: `tuilab queue --root DIR pause`.
    """

    @functools.wraps(function)
    def with_root(*, root: str | None, **arguments: Any) -> None:
        root_before: str | None = click.get_current_context().obj
        function(options.root_path(root_before if root is None else root), **arguments)

    return with_root


# ---- subcommands


@command.command(params=[_RUN, click.Argument(["place"], type=int), options.AS_JSON, options.ROOT])
@_with_root
def move(root: Path, run: str, place: int, as_json: bool) -> None:
    """Move a queued run to another place; 1 is next."""
    run_dir = queue.find(run, root)
    queue.move(root, run_dir.name, place)
    _print_queue(root, as_json=as_json)


@command.command(params=[_RUNS, options.AS_JSON, options.ROOT])
@_with_root
def cancel(root: Path, runs: Sequence[str], as_json: bool) -> None:
    """Remove runs from the queue.

    `tuilab stop` stops a run that has already started.
    """
    from tuilab.engine import launch

    run_dirs = [queue.find(run, root) for run in runs]
    sentences = (launch.stop(run_dir) for run_dir in run_dirs)
    _print_actions(root, sentences, as_json=as_json)


@command.command(params=[options.AS_JSON, options.ROOT])
@_with_root
def pause(root: Path, as_json: bool) -> None:
    """Pause the queue: no queued run starts.

    Runs that have already started continue. `tuilab queue resume` resumes the queue.
    """
    queue.pause(root)
    queued = len(queue.waiting(root))
    step = hint(root, "queue", "resume")
    sentence = f"the queue is paused, {queued} queued; resume it: {step}"
    _print_actions(root, [sentence], as_json=as_json)


@command.command(params=[options.AS_JSON, options.ROOT])
@_with_root
def resume(root: Path, as_json: bool) -> None:
    """Resume the queue: queued runs start again."""
    queue.resume(root)
    queued = len(queue.waiting(root))
    _print_actions(root, [f"the queue is resumed, {queued} queued"], as_json=as_json)


@command.command(
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.finished_runs),
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

    check_outlived()
    chosen = {store.find_surely(run, [root]).name for run in runs}
    _print_actions(root, _queue_again(root, chosen), as_json=as_json)


def _queue_again(root: Path, chosen: set[str]) -> Iterator[str]:
    """Queue lost runs again; yield a sentence for each, or one that there was none.

    A run is queued when its sentence is taken. Raises UsageError as `queue_again` of the engine
    does.
    """
    from tuilab.engine.requeue import queue_again

    has_run = False
    for old_run, new_run_dir in queue_again(root, chosen):
        has_run = True
        new_id = store.short_id(new_run_dir.name)
        yield f"{store.short_id(old_run)} is queued again as {new_id}"
    if not has_run:
        yield "no queued run was lost"


# ---- printing


def _print_actions(root: Path, sentences: Iterable[str], *, as_json: bool) -> None:
    """Do the actions one after another, and print a sentence for each; for a program, the queue.

    An action is done when its sentence is taken from `sentences`.
    """
    for sentence in sentences:
        if not as_json:
            click.echo(sentence)
    if as_json:
        _print_queue(root, as_json=True)


def _print_queue(root: Path, *, as_json: bool) -> None:
    """Print the queue as lines, or as one JSON document."""
    state = queue.read_queue(root)
    if not as_json:
        click.echo(_queue_text(root, state, style_of(sys.stdout)))
        return
    runs = []
    for run_state, place, ticket in state.rows:
        topic, _, scenario = ticket.name.rpartition("/")
        fields = {
            **store.fields(root / ticket.run),
            "scenario": scenario,
            "topic": topic or None,
            "state": run_state,
            "place": place,
            "devices": ticket.devices,
        }
        runs.append(fields)
    options.print_document("tuilab.queue/1", is_paused=state.is_paused, runs=runs)


def _queue_text(root: Path, state: queue.QueueState, style: Style) -> str:
    """Return the queue as lines; if it is empty, paused, or lost runs, also what to do."""
    lines = []
    for run_state, place, ticket in state.rows:
        first_column = str(place or run_state)
        if run_state == RunState.RUNNING:
            first_column = "now"
        lines.append(_queue_line(first_column, ticket, style))
    if not lines:
        step = hint(root, "run", "TOPIC", "--detach")
        lines.append(f"the queue is empty; queue runs: {step}")
    if state.is_paused:
        step = hint(root, "queue", "resume")
        lines.append(f"paused: no queued run starts; resume: {step}")
    if state.lost:
        step = hint(root, "queue", "again")
        lines.append(
            "lost: still queued when they were killed or the machine rebooted; "
            f"queue them again: {step}"
        )
    return style.fit("\n".join(lines))


def _queue_line(first_column: str, ticket: queue.Ticket, style: Style) -> str:
    """Return a run of the queue as a line, with the time since it was queued (n/a: unknown)."""
    waited = "n/a"
    if ticket.since_ns:
        waited_s = max(time.time_ns() - ticket.since_ns, 0) / 1e9
        waited = f"{waited_s:.0f} s"
    run = f"{store.short_id(ticket.run)}  {show(ticket.name):32}"
    devices = style.dim(show(", ".join(ticket.devices)))
    return f"{first_column:>4}  {run} {waited:>8}  {devices}".rstrip()
