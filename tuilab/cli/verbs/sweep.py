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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from tuilab.cli import completion, options
from tuilab.defaults import REPEATS
from tuilab.errors import UsageError
from tuilab.text.display import plural, show

if TYPE_CHECKING:
    from tuilab.cli.follow import ResultPrinter
    from tuilab.engine.messages import RunOrder

_MOST_DETACHED = 100  # points
_MOST_BYTES = 6000  # of the command line, which is in the first record of each run

_OPTIONS: list[click.Parameter] = [
    click.Argument(["names"], nargs=-1, metavar="[NAME]", shell_complete=completion.scenarios),
    click.Option(
        ["--set", "settings"],
        multiple=True,
        metavar="NAME=VALUE,VALUE",
        help="Values of a parameter; in a command, the values that replace {NAME}. "
        "May be repeated.",
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
        f"Run each point in N fresh processes (default: {REPEATS} for claims about time, "
        "1 otherwise and with --quick).",
    ),
    options.shared(
        "--budget",
        "For each point: repeat until its claims are decided or this time is over, "
        "for example 10m.",
    ),
    options.shared(
        "--timeout",
        "Stop a point after this time: 90s, 2m, 1.5h; a number alone is seconds "
        "(default: no limit).",
    ),
    options.shared(
        "--metric",
        "Read a metric from the output of a command, for example 'acc=acc ([0-9.]+)'; "
        "may be repeated.",
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
    """Keeps the words behind `--` as the user's command, even if they look like options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before `--`, and keep those behind it in `ctx.meta` as the command.

        Raises UsageError for an unknown option, or if nothing follows `--`.
        """
        has_dashes = "--" in args
        end = args.index("--") if has_dashes else len(args)
        command_words = args[end + 1 :]
        ctx.meta["tuilab.command"] = command_words
        ctx.meta["tuilab.words"] = list(args)
        try:
            rest = super().parse_args(ctx, args[:end])
        except click.NoSuchOption as problem:
            if has_dashes:
                raise
            raise UsageError(
                f"no option {problem.option_name}; for an option of your own command, "
                "write -- before the command; see `tuilab sweep --help`"
            ) from problem
        if has_dashes and not command_words:
            raise UsageError(
                "no command after --; add one, for example "
                "tuilab sweep --set lr=0.1,0.01 -- python train.py --lr {lr}"
            )
        return rest


@click.command(cls=_SweepCommand, params=_OPTIONS, help=__doc__)
@click.pass_context
def command(ctx: click.Context, /, **arguments: Any) -> int:
    # Absolute, because a resumed sweep continues in the folder that it was started in.
    root = options.root_path(arguments["root"]).absolute()
    if _has_nothing_to_sweep(ctx, arguments):
        from tuilab.cli import sweep_list

        sweep_list.print_sweeps(root, as_json=arguments["as_json"])
        return 0
    options.check_report(arguments["report"])
    if arguments["resume"] is None:
        orders = _make_orders(ctx, arguments, root)
    else:
        orders = _make_missing_orders(arguments, root)
    if not orders:
        from tuilab.cli.sweeping import print_sweep_result

        return print_sweep_result(arguments["resume"], root, _make_printer(arguments))
    engine = options.remote_engine(arguments)
    if arguments["detach"] and engine:
        raise UsageError(
            f"--detach works only on this machine; drop it, or drop --engine {arguments['engine']}"
        )
    if arguments["detach"]:
        return _detach(orders, arguments, root)
    from tuilab.cli.sweeping import run_points

    printer = _make_printer(arguments)
    if engine is None:
        return run_points(orders, root, printer)
    from tuilab.cli.remote import run_remotely

    return run_points(
        orders, root, printer, lambda points: run_remotely(engine, points, arguments, printer)
    )


def _has_nothing_to_sweep(ctx: click.Context, arguments: Mapping[str, Any]) -> bool:
    """Return whether the line asks only for the list of sweeps."""
    typed = set()
    for name in arguments:
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            typed.add(name)
    return typed <= {"as_json", "root"} and not ctx.meta["tuilab.command"]


def _make_printer(arguments: Mapping[str, Any]) -> "ResultPrinter":
    """Return a printer of the result of all points together."""
    from tuilab.cli.follow import ResultPrinter

    return ResultPrinter(
        as_json=arguments["as_json"],
        is_strict=arguments["strict"],
        is_quiet=arguments["quiet"],
        is_silent=True,  # points have no result of their own
        has_chart=options.has_chart(quiet=arguments["quiet"]),
        report=arguments["report"] or "",
    )


def _detach(orders: "list[RunOrder]", arguments: Mapping[str, Any], root: Path) -> int:
    """Queue all points, print their ids, and return the exit code.

    Raises UsageError if there are too many, or with options that need the end of the runs.
    """
    from tuilab.cli.verbs.run import detach

    options.check_detached(root, arguments, "sweep-last")
    if len(orders) > _MOST_DETACHED:
        raise UsageError(
            f"--detach takes up to {_MOST_DETACHED} points, not {len(orders)}; "
            "drop --detach or use fewer values"
        )
    sweep_id = orders[0].sweep.id if orders[0].sweep else ""
    if sweep_id:
        print(f"{sweep_id}: {plural(len(orders), 'point')}", file=sys.stderr)
    return detach(orders, as_json=arguments["as_json"], sweep=sweep_id)


def _make_orders(ctx: click.Context, arguments: Mapping[str, Any], root: Path) -> "list[RunOrder]":
    """Return the order of each point; raise UsageError for a mistake in any of them.

    So no point starts before all of them are known to be valid.
    """
    from tuilab.cli import sweep_orders

    command_words = ctx.meta["tuilab.command"]
    argv = ["sweep", *ctx.meta["tuilab.words"]]
    byte_count = len("\0".join(argv).encode(errors="replace"))
    if byte_count > _MOST_BYTES:
        raise UsageError(
            f"the command line of the sweep has {byte_count} bytes, at most {_MOST_BYTES} are "
            "possible; move a part into a script"
        )
    if arguments["names"] and command_words:
        name = show(arguments["names"][0], 40)
        raise UsageError(
            f"sweep either a scenario or a command, not both; drop {name}, or -- and what follows"
        )
    if command_words:
        return sweep_orders.orders_of_command(command_words, arguments, root, argv)
    return sweep_orders.orders_of_scenario(arguments, root, argv)


def _make_missing_orders(arguments: dict[str, Any], root: Path) -> "list[RunOrder]":
    """Return the orders of the points of `--resume` that have no result yet and are not running.

    The engine of the sweep and its options are set in `arguments`. Raises UsageError if another
    process still starts points of the sweep, or with a scenario or values.
    """
    from tuilab.runs import sweeps
    from tuilab.runs.command_line import hint

    if arguments["names"] or arguments["settings"]:
        raise UsageError(
            "--resume continues a sweep with its own scenario and values; drop the name and --set"
        )
    begun = sweeps.find(arguments["resume"], root)
    if begun.client:
        attach = hint(root, "attach", begun.sweep.id)
        stop = hint(root, "stop", begun.sweep.id)
        raise UsageError(
            f"{begun.sweep.id} is still running: another `tuilab sweep` starts its points; "
            f"{attach} or {stop}"
        )
    with sweeps.in_start_folder(begun):
        original_ctx = command.make_context("sweep", begun.sweep.argv[1:])
        orders = _make_orders(original_ctx, original_ctx.params, root)
    options.continue_on_engine(arguments, original_ctx.params)
    points = [order.sweep for order in orders if order.sweep]
    missing_orders = []
    for position in sweeps.missing_points(begun, points):
        sweep = replace(points[position], id=begun.sweep.id)
        missing_orders.append(replace(orders[position], sweep=sweep))
    return missing_orders
