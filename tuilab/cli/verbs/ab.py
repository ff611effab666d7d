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
from typing import Any

import click

from tuilab.cli import options
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
        ["--arm", "given_arms"],
        multiple=True,
        metavar="'NAME: ...'",
        help="Add an arm: NAME alone is the unchanged command; after 'NAME:' write variables, a prefix, "
        "or more arguments after --. May be repeated.",
    ),
    click.Option(
        ["--claim", "given_claims"],
        multiple=True,
        metavar="'ARM 1.3x OTHER'",
        help="Claim that ARM is at least 1.3 times faster than OTHER (default: each arm is faster than the first). "
        "May be repeated.",
    ),
    options.shared("--repeat", f"Run each arm in N fresh processes (default: {REPEATS})."),
    options.shared("--budget"),
    click.Option(
        ["--measure"],
        metavar="WHAT",
        help="Compare memory, or the last value of a curve such as acc (default: the time of a step).",
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
def command(**given: Any) -> int:
    run_order = _order(given)
    options.refuse_both_json(as_json=given["as_json"], as_jsonl=given["as_jsonl"])
    if not given["quiet"]:
        _tell(run_order)
    if given["detach"]:
        from tuilab.cli.verbs.run import detach

        options.check_detached(options.root(given["root"]), given)
        return detach([run_order], as_json=given["as_json"])
    options.check_report(given["report"])
    if not any(given[name] for name in ("headless", "as_json", "as_jsonl", "quiet", "report")):
        from tuilab import tui

        why = tui.why_not()
        if not why:
            return tui.start(options.root(given["root"]), (), [run_order], fps=given["fps"])
        print(f"tuilab: {why}; printing the result instead (same as --headless)", file=sys.stderr)
    from tuilab.cli.follow import Outcome, run_all

    outcome = Outcome(
        as_json=given["as_json"],
        as_jsonl=given["as_jsonl"],
        is_strict=given["strict"],
        is_quiet=given["quiet"],
        has_chart=options.has_chart(quiet=given["quiet"]),
        report=given["report"] or "",
    )
    return run_all([run_order], outcome)


def _order(given: dict[str, Any]) -> RunOrder:
    options.refuse_beside(given)
    make_order.check_named(given["command"])
    raced = arms.parse(given["given_arms"])
    return make_order.order(
        CommandOrder(
            words=list(given["command"]),
            arms=raced,
            claims=arms.parse_claims(given["given_claims"], raced, given["measure"] or ""),
            has_guard=not given["different_learning"],
            measure=given["measure"] or "",
            metrics=list(given["metrics"]),
            watch=given["watch"],
            step_of=given["step_of"] or "",
        ),
        root=options.root(given["root"]),
        name=given["name"] or "",
        timeout_s=given["timeout"],
        repeats=given["repeat"],
        budget_s=given["budget"],
        waits=given["detach"] and not given["beside"],
        argv=sys.argv[1:],
    )


def _tell(run_order: RunOrder) -> None:
    """Say before it starts what can be seen, and what the arms may spoil for each other."""
    assert run_order.command is not None
    lines = foresee(run_order)
    for option in arms.shared_outputs(run_order.command.arms, run_order.command.words):
        lines.append(
            f"every arm has {show(option, 80)}, so each arm overwrites the output of the others; give each arm its own value"
        )
    for line in lines:
        print(f"tuilab: {line}", file=sys.stderr)
