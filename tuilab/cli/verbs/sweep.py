"""Run a scenario or a command with every combination of values.

Each combination (point) is one run. The points run one after another, in the queue of their device.
The result shows at which values each claim holds. For a command, it shows the last values of the
curves. Ctrl-C stops the sweep; --resume continues it.

\b
    tuilab sweep row-reduce --set rows=20,200,2000 --set cols=10,100
    tuilab sweep --set lr=0.1,0.01 -- python train.py --lr {lr}
    tuilab sweep --resume last
    tuilab sweep                    # list the sweeps and their progress
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from tuilab.cli import completion, options
from tuilab.defaults import REPEATS
from tuilab.errors import UsageError
from tuilab.text.display import plural, show

if TYPE_CHECKING:
    from tuilab.cli.follow import Outcome
    from tuilab.engine.messages import RunOrder

_MOST_DETACHED = 100  # points
_MOST_BYTES = 6000  # of its command line, which stands in the first record of each run


_OPTIONS: list[click.Parameter] = [
    click.Argument(["names"], nargs=-1, metavar="[NAME]", shell_complete=completion.scenarios),
    click.Option(
        ["--set", "settings"],
        multiple=True,
        metavar="NAME=VALUE,VALUE",
        help="Values of a parameter; in a command, the values that replace {NAME}. May be repeated.",
    ),
    click.Option(
        ["--resume"],
        metavar="SWEEP",
        shell_complete=completion.sweeps,
        help="Run the points of SWEEP that have no result yet; `last` is the newest sweep.",
    ),
    options.shared("--quick"),
    options.shared(
        "--repeat",
        f"Run each point in N fresh processes (default: {REPEATS} for claims about time, 1 otherwise and with --quick).",
    ),
    options.shared(
        "--budget",
        "For each point: repeat until its claims are decided or this time is over, for example 10m.",
    ),
    options.shared(
        "--timeout",
        "Stop a point after this time: 90s, 2m, 1.5h; a number alone is seconds (default: no limit).",
    ),
    options.shared(
        "--metric",
        "Read a metric from the output of a command, for example 'acc=acc ([0-9.]+)'; may be repeated.",
    ),
    options.shared("--detach", "Queue all points, print the ids of their runs and return at once."),
    options.AS_JSON,
    options.shared("--strict"),
    options.shared("--report", "Write a report at the end; the extension of FILE sets the format."),
    options.shared("--quiet", "Print no progress and no chart."),
    *options.engine_options(has_several=False),
    *options.FOLDERS,
]


class _SweepCommand(click.Command):
    """What stands behind -- is a command of the user's, whatever its words look like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["tuilab.command"] = args[at + 1 :]
        ctx.meta["tuilab.words"] = list(args)
        try:
            rest = super().parse_args(ctx, args[:at])
        except click.NoSuchOption as problem:
            if "--" in args:
                raise
            step = "for an option of your own command, write -- before the command; see `tuilab sweep --help`"
            raise UsageError(f"no option {problem.option_name}; {step}") from problem
        if at < len(args) and not args[at + 1 :]:
            raise UsageError(
                "no command after --; add one, for example tuilab sweep --set lr=0.1,0.01 -- python train.py --lr {lr}"
            )
        return rest


@click.command(cls=_SweepCommand, params=_OPTIONS, help=__doc__)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    root = options.root(
        given["root"]
    ).absolute()  # one that is resumed goes on in the folder where it began
    typed = {
        name
        for name in given
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
    }
    if typed <= {"as_json", "root"} and not ctx.meta["tuilab.command"]:
        from tuilab.cli import sweep_list

        sweep_list.print_sweeps(root, as_json=given["as_json"])
        return 0
    options.check_report(given["report"])
    orders = _resumed(given, root) if given["resume"] is not None else _orders(ctx, given, root)
    if not orders:
        from tuilab.cli.sweeping import tell_result

        return tell_result(given["resume"], root, _outcome(given))
    engine = options.remote_engine(given)
    if given["detach"] and engine:
        raise UsageError(
            f"--detach works only on this machine; drop it, or drop --engine {given['engine']}"
        )
    if given["detach"]:
        from tuilab.cli.verbs.run import detach

        options.check_detached(root, given, "sweep-last")
        if len(orders) > _MOST_DETACHED:
            raise UsageError(
                f"--detach takes up to {_MOST_DETACHED} points, not {len(orders)}; drop --detach or use fewer values"
            )
        if orders[0].sweep:
            print(f"{orders[0].sweep.id}: {plural(len(orders), 'point')}", file=sys.stderr)
        return detach(
            orders, as_json=given["as_json"], sweep=orders[0].sweep.id if orders[0].sweep else ""
        )
    from tuilab.cli.sweeping import go_through

    outcome = _outcome(given)
    if engine:
        from tuilab.cli.remote import run_remotely

        return go_through(
            orders, root, outcome, lambda orders: run_remotely(engine, orders, given, outcome)
        )
    return go_through(orders, root, outcome)


def _outcome(given: dict[str, Any]) -> "Outcome":
    """Return how the result is wanted: that of all points together, and of none by itself."""
    from tuilab.cli.follow import Outcome

    return Outcome(
        as_json=given["as_json"],
        is_strict=given["strict"],
        is_quiet=given["quiet"],
        is_silent=True,
        has_chart=options.has_chart(quiet=given["quiet"]),
        report=given["report"] or "",
    )


def _orders(ctx: click.Context, given: dict[str, Any], root: Path) -> "list[RunOrder]":
    """Return the order of each point; what is wrong with any is told before there is a run."""
    from tuilab.cli import sweep_orders

    words, argv = ctx.meta["tuilab.command"], ["sweep", *ctx.meta["tuilab.words"]]
    if (size := len("\0".join(argv).encode(errors="replace"))) > _MOST_BYTES:
        raise UsageError(
            f"the command line of the sweep has {size} bytes, at most {_MOST_BYTES} are possible; move a part into a script"
        )
    if given["names"] and words:
        raise UsageError(
            f"sweep either a scenario or a command, not both; drop {show(given['names'][0], 40)}, or -- and what follows"
        )
    return (
        sweep_orders.of_command(words, given, root, argv)
        if words
        else sweep_orders.of_scenario(given, root, argv)
    )


def _resumed(given: dict[str, Any], root: Path) -> "list[RunOrder]":
    """Return the orders of the points of a sweep that have no result yet and do not go on."""
    from tuilab.runs import sweeps
    from tuilab.runs.command_line import hint

    if given["names"] or given["settings"]:
        raise UsageError(
            "--resume continues a sweep with its own scenario and values; drop the name and --set"
        )
    found = sweeps.find(given["resume"], root)
    if found.client:
        steps = " or ".join(hint(root, verb, found.sweep.id) for verb in ("attach", "stop"))
        raise UsageError(
            f"{found.sweep.id} is still running: another `tuilab sweep` starts its points; {steps}"
        )
    with sweeps.in_start_folder(found):
        ctx = command.make_context("sweep", found.sweep.argv[1:])
        orders = _orders(ctx, ctx.params, root)
    options.continue_on_engine(given, ctx.params)
    sweep_orders = [order.sweep for order in orders if order.sweep]
    return [
        replace(orders[at], sweep=replace(sweep_orders[at], id=found.sweep.id))
        for at in sweeps.missing_points(found, sweep_orders)
    ]
