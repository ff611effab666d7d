"""`tuilab ab --arm base --arm 'threads8: OMP_NUM_THREADS=8' -- python train.py`: which way to run a command is faster.

Each arm is the command with variables, words before it (`numa: numactl -N0`) or behind it (`bf16: -- --precision bf16`). Every
repeat runs each in a fresh process, in a drawn order, and the first once more as its control; the verdict is on the mean time
of the steady steps. The arms have to learn the same in their first steps, or the verdict is INVALID.
"""

import sys
from typing import Any

import click

from tuilab.cli import completion, options
from tuilab.commands import arms, order
from tuilab.commands.ab.foresight import foresee
from tuilab.engine.messages import CommandOrder, RunOrder
from tuilab.text import show

_OPTIONS: list[click.Parameter] = [
    click.Argument(["command"], nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED),
    click.Option(
        ["--arm", "given_arms"],
        multiple=True,
        metavar="'NAME: ...'",
        help="A way to run it: NAME alone as it is, else variables, a prefix, and words behind --; may be repeated.",
    ),
    click.Option(
        ["--claim", "given_claims"],
        multiple=True,
        metavar="'ARM 1.3x OTHER'",
        help="That ARM takes 1.3 times less than OTHER (else that each is faster than the first); may be repeated.",
    ),
    click.Option(["--repeat"], type=click.IntRange(1, 1000), help="Processes an arm (else 6)."),
    click.Option(["--budget"], type=options.Duration(), help="Repeat until the claims are decided, or this time is spent."),
    click.Option(
        ["--measure"], metavar="WHAT", help="Instead of the time of a step: memory, or the last value of a curve, as acc."
    ),
    click.Option(
        ["--metric", "metrics"],
        multiple=True,
        metavar="NAME=PATTERN",
        help="A number that it prints, as in 'acc=acc ([0-9.]+)'.",
    ),
    click.Option(["--different-learning"], is_flag=True, help="The arms learn different things on purpose."),
    click.Option(["--name"], metavar="NAME", help="What the run is called (else by the script)."),
    click.Option(["--headless"], is_flag=True, help="Do not open the screens; print the result."),
    click.Option(["--detach"], is_flag=True, help="Queue it, print the run's id and return at once."),
    click.Option(["--beside"], is_flag=True, help="With --detach: do not queue, start beside whatever runs."),
    click.Option(
        ["--watch"], type=click.Choice(("all", "steps")), default="all", show_default=True, help="What is watched inside."
    ),
    click.Option(
        ["--step-of"], metavar="OPTIMIZER", help="Whose step ends a training step (else the one that steps least often)."
    ),
    click.Option(["--timeout"], type=options.Duration(), help="Stop it after so long: 90s, 2m, 1.5h; 90 is seconds."),
    click.Option(["--json", "as_json"], is_flag=True, help="The result as one JSON document."),
    click.Option(["--jsonl", "as_jsonl"], is_flag=True, help="Every record as one line of JSON, as it comes."),
    click.Option(["--strict"], is_flag=True, help="Exit 1 for an inconclusive claim, too."),
    click.Option(
        ["--report"],
        metavar="FILE",
        shell_complete=completion.files,
        help="Write a report at the end, also when it failed; its ending says the format. No screens.",
    ),
    click.Option(["--quiet"], is_flag=True, help="No talk on stderr, no chart."),
    options.FPS,
    options.ROOT,
]


@click.command(params=_OPTIONS, help=__doc__, context_settings={"allow_interspersed_args": False})
def command(**given: Any) -> int:
    run_order = _order(given)
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
        print(f"tuilab: {why}; running as with --headless", file=sys.stderr)
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
    order.check_named(given["command"])
    raced = arms.parse(given["given_arms"])
    return order.order(
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
        lines.append(f"every arm has {show(option, 80)}: each writes over what the others wrote; give each its own")
    for line in lines:
        print(f"tuilab: {line}", file=sys.stderr)
