"""Compare ways to run a command: which one is faster?

\b
    tuilab ab --arm base --arm 't8: OMP_NUM_THREADS=8' -- python train.py

Each variant (arm) is the command with environment variables, with a prefix (`numa: numactl -N0`) or
with more arguments (`bf16: -- --precision bf16`). Each repeat runs every arm in a fresh process, in
random order. It runs the first arm once more, as a control. The verdict is about the mean time of
the steady steps. All arms have to learn the same in their first steps; otherwise the verdict is
INVALID.
"""

import sys
from collections.abc import Mapping
from typing import Any

import click

from tuilab.cli import options
from tuilab.cli.verbs.commands.start import check_following, start
from tuilab.commands import arms, make_order
from tuilab.commands.ab.forecast import foresee
from tuilab.defaults import REPEATS
from tuilab.engine.messages import CommandOrder, RunOrder
from tuilab.text.display import show

_OPTIONS: list[click.Parameter] = [
    click.Argument(
        ["command"], nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED
    ),
    click.Option(
        ["--arm", "arms"],
        multiple=True,
        metavar="'NAME: ...'",
        help="Add an arm: NAME alone is the unchanged command; after 'NAME:' write variables, "
        "a prefix, or more arguments after --. May be repeated.",
    ),
    click.Option(
        ["--claim", "claims"],
        multiple=True,
        metavar="'ARM 1.3x OTHER'",
        help="Claim that ARM is at least 1.3 times faster than OTHER "
        "(default: each arm is faster than the first). May be repeated.",
    ),
    options.shared("--repeat", f"Run each arm in N fresh processes (default: {REPEATS})."),
    options.shared("--budget"),
    click.Option(
        ["--measure"],
        metavar="WHAT",
        help="Compare memory, or the last value of a curve such as acc "
        "(default: the time of a step).",
    ),
    options.shared("--metric"),
    click.Option(
        ["--different-learning"], is_flag=True, help="Do not check that all arms learn the same."
    ),
    options.shared("--name"),
    options.shared("--headless"),
    options.shared("--detach", "Queue the run, print its id and return at once."),
    options.shared("--beside"),
    click.Option(
        ["--watch"],
        type=click.Choice(("all", "steps")),
        default="all",
        show_default=True,
        help="Watch where the time of each step goes (all), or only the steps.",
    ),
    options.shared("--step-of"),
    options.shared("--timeout"),
    options.shared("--json"),
    options.shared("--jsonl"),
    options.shared("--strict"),
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
    if not arguments["quiet"]:
        _print_forecast(order)
    return start(
        order,
        root,
        arguments,
        is_strict=arguments["strict"],
        has_chart=options.has_chart(quiet=arguments["quiet"]),
    )


def _make_order(arguments: Mapping[str, Any]) -> RunOrder:
    """Return the order of the comparison; raise UsageError or CannotStart if it is not possible."""
    options.refuse_beside(arguments)
    make_order.check_named(arguments["command"])
    raced_arms = arms.parse(arguments["arms"])
    measure = arguments["measure"] or ""
    command_order = CommandOrder(
        words=list(arguments["command"]),
        arms=raced_arms,
        claims=arms.parse_claims(arguments["claims"], raced_arms, measure),
        has_guard=not arguments["different_learning"],
        measure=measure,
        metrics=list(arguments["metrics"]),
        watch=arguments["watch"],
        step_of=arguments["step_of"] or "",
    )
    return make_order.order(
        command_order,
        root=options.root_path(arguments["root"]),
        name=arguments["name"] or "",
        timeout_s=arguments["timeout"],
        repeats=arguments["repeat"],
        budget_s=arguments["budget"],
        waits=arguments["detach"] and not arguments["beside"],
        argv=sys.argv[1:],
    )


def _print_forecast(order: RunOrder) -> None:
    """Print the forecast of the run, and a warning for each output that the arms overwrite."""
    assert order.command is not None
    lines = foresee(order)
    for option in arms.shared_outputs(order.command.arms, order.command.words):
        lines.append(
            f"every arm has {show(option, 80)}, so each arm overwrites the output of the others; "
            "give each arm its own value"
        )
    for line in lines:
        print(f"tuilab: {line}", file=sys.stderr)
