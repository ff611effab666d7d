"""Try training advice on your own script, unchanged, and measure what makes it faster.

\b
    tuilab tune --budget 15m -- python train.py

First the script is watched for some steps. Then each change that may help is applied from outside:
more DataLoader workers, a fused optimizer, bfloat16, torch.compile and others. The promising ones
are compared with the unchanged script in fresh processes, in random order, and then combined. The
script starts up to about forty times. Each process ends after some steps, without its last
checkpoint.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tuilab.cli import options
from tuilab.cli.verbs.commands.start import check_following, start
from tuilab.commands import make_order
from tuilab.commands.tune.forecast import describe_copy, describe_start
from tuilab.commands.tune.planning.plan import check_names
from tuilab.engine.messages import CommandOrder, RunOrder, TuneOrder
from tuilab.errors import UsageError
from tuilab.text.wrapping import terminal_width, wrap

_BUDGET_S = 15 * 60.0
_LEAST_BUDGET_S = 30.0
_ANY_WIDTH = 10_000  # cells, where no terminal breaks a line

_OPTIONS: list[click.Parameter] = [
    click.Argument(
        ["command"], nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED
    ),
    options.shared("--budget", "Stop after this time, for example 15m (default: 15m)."),
    click.Option(
        ["--only"],
        metavar="NAME,...",
        help="Try only these treatments, for example workers,bf16 (default: all that apply).",
    ),
    click.Option(
        ["--steps"],
        type=click.IntRange(8, 100_000),
        metavar="N",
        help="End each process after N steps (default: as many as take three seconds, "
        "usually at least 30).",
    ),
    click.Option(
        ["--in-copy"],
        is_flag=True,
        help="Run in a copy of the current folder, which is deleted at the end.",
    ),
    click.Option(
        ["--yes"], is_flag=True, help="Start without asking, also if the script changes files."
    ),
    options.shared("--name"),
    options.shared("--headless"),
    options.shared("--detach", "Queue the run, print its id and return at once."),
    options.shared("--beside"),
    options.shared("--step-of"),
    options.shared("--timeout"),
    options.shared("--json"),
    options.shared("--jsonl"),
    options.shared("--report"),
    options.shared("--quiet"),
    options.FPS,
    options.ROOT,
]


@click.command(params=_OPTIONS, help=__doc__, context_settings={"allow_interspersed_args": False})
def command(**arguments: Any) -> int:
    order = _make_order(arguments)
    root = options.root_path(arguments["root"])
    check_following(root, arguments)
    _announce(order, root, arguments)
    return start(order, root, arguments)


def _make_order(arguments: Mapping[str, Any]) -> RunOrder:
    """Return the order of the tuning; raise UsageError or CannotStart if it is not possible."""
    options.refuse_beside(arguments)
    make_order.check_named(arguments["command"])
    budget_s = arguments["budget"] or _BUDGET_S
    if budget_s < _LEAST_BUDGET_S:
        raise UsageError(
            f"--budget {budget_s:g}s is too short to compare anything; give at least "
            f"{_LEAST_BUDGET_S:g}s"
        )
    tune_order = TuneOrder(
        budget_s=budget_s,
        only=_read_names(arguments["only"]),
        steps=arguments["steps"] or 0,
        may_change_files=arguments["yes"],
        is_in_copy=arguments["in_copy"],
    )
    command_order = CommandOrder(
        words=list(arguments["command"]), tune=tune_order, step_of=arguments["step_of"] or ""
    )
    return make_order.order(
        command_order,
        root=options.root_path(arguments["root"]),
        name=arguments["name"] or "",
        timeout_s=arguments["timeout"],
        waits=arguments["detach"] and not arguments["beside"],
        argv=sys.argv[1:],
    )


def _read_names(text: str | None) -> list[str]:
    """Return the names of treatments in the value of --only; raise UsageError for others."""
    if not text:
        return []
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    check_names(chosen)
    return chosen


def _announce(order: RunOrder, root: Path, arguments: Mapping[str, Any]) -> None:
    """Say what will happen, and ask whether to start unless the user has agreed already.

    Raise UsageError if nobody can be asked.
    """
    assert order.command is not None and order.command.tune is not None
    lines = describe_start(order.command)
    if order.command.tune.is_in_copy:
        lines += describe_copy(order.command, root)
    if not arguments["quiet"]:
        width = terminal_width() if sys.stderr.isatty() else _ANY_WIDTH
        for line in lines:
            for part in wrap(f"tuilab: {line}", width, hang="  "):
                print(part, file=sys.stderr)
    if arguments["yes"] or arguments["in_copy"]:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "a tuning starts the script again and again in this folder; add --yes to agree, or "
            "--in-copy to run it in a copy"
        )
    if not click.confirm("Start?", default=True, err=True):
        raise click.exceptions.Exit(0)
