"""Run scenarios one after another and print the results.

NAME is a scenario, a topic, `all`, or a scenario file such as ./my-idea.py. With --detach,
runs wait in the queue of their device and run one after another; `tuilab queue` shows them.
"""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuilab.catalogue import catalog, params
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.cli import completion, options
from tuilab.errors import ExitCode, UsageError
from tuilab.text.display import show

if TYPE_CHECKING:
    from tuilab.engine.engines import Engine
    from tuilab.engine.messages import RunOrder
    from tuilab.engine.spare import Spare
    from tuilab.record.events import Scalar

_OPTIONS: list[click.Parameter] = [
    click.Argument(
        ["names"], nargs=-1, required=True, metavar="NAME...", shell_complete=completion.scenarios
    ),
    options.shared("--headless"),
    options.shared("--detach", "Queue the runs, print their ids and return at once."),
    options.shared(
        "--beside", "With --detach: start the runs immediately instead of queueing them."
    ),
    options.shared("--json"),
    options.shared("--jsonl"),
    options.shared("--quick"),
    options.shared("--repeat"),
    options.shared("--budget"),
    options.shared("--timeout"),
    click.Option(
        ["--predict"],
        type=options.PredictionType(),
        help="Your answer to the lesson's question; the result shows how close it was.",
    ),
    options.shared("--strict"),
    options.shared("--report"),
    click.Option(
        ["--verbose"],
        is_flag=True,
        help="Print the whole result of each of several runs (default: a summary). "
        "Implies --headless.",
    ),
    click.Option(
        ["--plot"],
        is_flag=True,
        help="Print the chart even if stdout is not a terminal. Implies --headless.",
    ),
    options.shared(
        "--quiet", "Print no progress, and no chart without --plot. Implies --headless."
    ),
    options.FPS,
    *options.engine_options(),
    *options.FOLDERS,
]

# Options that leave no result to print as text, so that --plot has no effect.
_CHARTLESS = {"--json": "as_json", "--jsonl": "as_jsonl", "--detach": "detach"}
_IMPLY_HEADLESS = ("headless", "as_json", "as_jsonl", "quiet", "plot", "report", "verbose")
_SWITCH_VALUES = ("true", "false", "yes", "no", "on", "off", "1", "0")  # mistaken for names


# ---- options of the scenario


class _ScenarioOption(click.Option):
    """A parameter of a scenario as an option. An empty text is a value like any other."""

    def __init__(self, param: Param) -> None:
        self.param = param
        flag = params.option_of(param.name)
        metavar: str | None = param.type.upper()
        if param.type == "bool":
            flag = f"{flag}/--no-{flag[2:]}"
            metavar = None
        elif param.choices:
            metavar = f"[{'|'.join(show(choice) for choice in param.choices)}]"
        super().__init__(
            [flag, f"param_{param.name}"],
            default=None,
            type=_choose_type(param),
            metavar=metavar,
            help=f"{show(param.label or param.name)}; {show(params.describe(param))}.",
            shell_complete=self._complete if params.has_gpus(param) else None,
        )

    def _complete(self, ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
        from tuilab.probes.gpu.is_present import gpu_names

        words = [str(choice) for choice in self.param.choices]
        words += gpu_names()
        return [word for word in words if word.startswith(typed)]

    def parse(self, value: Any) -> "Scalar":
        """Return the value of the parameter, checked by the same rules as on the screens."""
        if self.param.type == "bool":
            return bool(value)
        return params.parse(self.param, str(value))


def _choose_type(param: Param) -> Any:
    if param.type == "bool":
        return bool
    if param.choices and not params.has_gpus(param):
        return click.Choice([str(choice) for choice in param.choices])
    return str


class _RunCommand(click.Command):
    """Takes the options of the named scenario as well, in any order on the line."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        scenario_options: list[click.Parameter] = ctx.meta.get("tuilab.options", [])
        return super().get_params(ctx) + scenario_options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the scenarios on the line first, then parse it with their options as well.

        Raises UsageError if click takes other words for names than that search.
        """
        names, chosen = _find_scenarios(ctx, args)
        scenario_options = [_ScenarioOption(param) for param in _shared_params(chosen)]
        ctx.meta["tuilab.chosen"] = chosen
        ctx.meta["tuilab.options"] = scenario_options
        rest = super().parse_args(ctx, list(args))  # a copy, because click empties the list
        if names and set(ctx.params["names"]) != set(names):
            _refuse_values_of_switches(args, scenario_options)
            raise UsageError(
                "cannot tell scenario names from option values; "
                "put the names first: tuilab run NAME NAME --option VALUE"
            )
        return rest


def _refuse_values_of_switches(args: list[str], scenario_options: Sequence[click.Option]) -> None:
    """Refuse a value behind a switch, such as `--flag true`, in words that name the opposite."""
    opposites: dict[str, str] = {}
    for option in scenario_options:
        if option.is_flag:
            for on, off in zip(option.opts, option.secondary_opts, strict=False):
                opposites |= {on: off, off: on}
    for flag, word in pairwise(args):
        if flag in opposites and word.lower() in _SWITCH_VALUES:
            raise UsageError(
                f"{flag} takes no value, and {show(word)} is not a scenario; "
                f"for the opposite, use {opposites[flag]}"
            )


def _shared_params(scenarios: Sequence[Scenario]) -> list[Param]:
    """Return the parameters that all these scenarios take, as the first one describes them."""
    usable = [scenario for scenario in scenarios if not scenario.error]
    if not usable:
        return []
    shared = {_key_of(param) for param in usable[0].params}
    for scenario in usable[1:]:
        shared &= {_key_of(param) for param in scenario.params}
    return [param for param in usable[0].params if _key_of(param) in shared]


def _key_of(param: Param) -> tuple[object, ...]:
    return param.name, param.type, param.choices


def values_of(ctx: click.Context, arguments: Mapping[str, Any]) -> "dict[str, Scalar]":
    """Return the values for parameters of the scenarios that are on the line, by parameter."""
    values = {}
    scenario_options: list[_ScenarioOption] = ctx.meta["tuilab.options"]
    for option in scenario_options:
        assert option.name is not None
        if arguments[option.name] is not None:
            values[option.param.name] = option.parse(arguments[option.name])
    return values


# ---- names on the line, which have to be known before click can parse the options of a scenario


def _find_scenarios(ctx: click.Context, args: list[str]) -> tuple[list[str], list[Scenario]]:
    """Return the names on the line, and the scenarios that they mean.

    Raises UsageError if a name means none. While a shell completes the line, unknown names are
    ignored, and no names are returned.
    """
    names, possible_names = _split_words(args)
    folders = _find_values(args, "--scenarios")
    for folder in folders:
        options.refuse_empty("--scenarios", folder)  # click checks it only later
    listed = catalog.load(folders)
    if ctx.resilient_parsing:  # a shell completes the line, which may be wrong
        matches: list[Scenario] = []
        for name in names:
            if _is_known(listed, name):
                matches += catalog.find(listed, name, folders)
        return [], matches
    if not names:
        known_names = [word for word in possible_names if _is_known(listed, word)]
        names = known_names[:1] or possible_names[:1]
    scenarios: dict[str, Scenario] = {}
    for name in names:
        for scenario in catalog.find(listed, name, folders):
            scenarios[scenario.path] = scenario
    return names, list(scenarios.values())


def _is_known(listed: list[Scenario], word: str) -> bool:
    """Return whether a word on the line names a scenario, a topic or all of them."""
    with contextlib.suppress(UsageError):
        return bool(catalog.named(listed, word))
    return False


def _find_values(args: list[str], flag: str) -> list[str]:
    """Return the values that an option has on the line."""
    if "--" in args:
        args = args[: args.index("--")]
    values = [word for option, word in pairwise(args) if option == flag]
    values += [word.partition("=")[2] for word in args if word.startswith(f"{flag}=")]
    return values


def _split_words(args: list[str]) -> tuple[list[str], list[str]]:
    """Return the words that are names, and those that may be a name or the value of an option.

    A word behind an option that `tuilab run` does not have may be its value: the scenario decides.
    """
    flags, options_with_value = _list_flags()
    names: list[str] = []
    possible_names: list[str] = []
    if "--" in args:
        end = args.index("--")
        names = args[end + 1 :]
        args = args[:end]
    previous = ""
    for word in args:
        if not word.startswith("-") and previous not in options_with_value:
            is_unknown = previous.startswith("--") and "=" not in previous and previous not in flags
            if is_unknown:
                possible_names.append(word)
            else:
                names.append(word)
        previous = word
    return names, possible_names


def _list_flags() -> tuple[set[str], set[str]]:
    """Return the options of every run that take no value, and those that take one."""
    without_value: set[str] = set()
    with_value: set[str] = set()
    for option in _OPTIONS:
        if isinstance(option, click.Option):
            flags = without_value if option.is_flag else with_value
            flags.update(option.opts)
    return without_value, with_value


# ---- running


@click.command(cls=_RunCommand, params=_OPTIONS, help=__doc__)
@click.pass_context
def command(ctx: click.Context, /, **arguments: Any) -> int:
    chosen: list[Scenario] = ctx.meta["tuilab.chosen"]
    if arguments["plot"]:
        chartless = {flag: arguments[name] for flag, name in _CHARTLESS.items()}
        options.refuse_without_effect("--plot", chartless)
    engine = options.remote_engine(arguments)
    if engine is None:
        options.refuse_beside(arguments)
    is_headless = any(arguments[name] for name in _IMPLY_HEADLESS)
    spare = None
    if is_headless and not arguments["detach"] and engine is None:
        spare = _load_torch_ahead(chosen[0], arguments)

    # From here on, modules are loaded that take longer than a shell may wait for completions.
    orders = _make_orders(chosen, values_of(ctx, arguments), arguments)
    if engine:
        return _run_remotely(engine, orders, arguments)
    root = options.root_path(arguments["root"])
    if arguments["detach"]:
        options.check_detached(root, arguments)
        return detach(orders, as_json=arguments["as_json"])
    options.check_report(arguments["report"])
    from tuilab.cli.follow import ResultPrinter, run_all

    printer = ResultPrinter(
        as_json=arguments["as_json"],
        as_jsonl=arguments["as_jsonl"],
        is_strict=arguments["strict"],
        is_quiet=arguments["quiet"],
        is_verbose=arguments["verbose"] or arguments["plot"],
        has_chart=options.has_chart(plot=arguments["plot"], quiet=arguments["quiet"]),
        report=arguments["report"] or "",
    )
    if not is_headless and options.can_open_screens():
        from tuilab import tui

        return tui.start(root, arguments["scenarios"], orders, fps=arguments["fps"])
    return run_all(orders, printer, spare)


def _load_torch_ahead(scenario: Scenario, arguments: Mapping[str, Any]) -> "Spare | None":
    """Return a process that loads torch while the rest of the order is made.

    It is None for a scenario that does not import torch, and for several processes: those load it
    side by side.
    """
    has_repeats = (arguments["repeat"] or 1) > 1
    has_usual_repeats = scenario.is_timed and not (arguments["repeat"] or arguments["quick"])
    is_single_process = not (arguments["budget"] or has_repeats or has_usual_repeats)
    if scenario.error or not scenario.imports or not is_single_process:
        return None
    from tuilab.engine.spare import prepare

    return prepare(is_timed=scenario.wants_quiet)


def _make_orders(
    chosen: Sequence[Scenario], values: "dict[str, Scalar]", arguments: Mapping[str, Any]
) -> "list[RunOrder]":
    """Return an order for each scenario; of several scenarios, those with an error are skipped.

    What is skipped is printed. Raises UsageError if a value or the only scenario is wrong.
    """
    from tuilab.engine import launch

    if arguments["predict"] is not None and len(chosen) > 1:
        raise UsageError("--predict answers the question of one lesson; name only one scenario")
    if arguments["predict"] is not None and "Predict" not in chosen[0].sections:
        raise UsageError(f"{show(chosen[0].id)} has no question to predict; drop --predict")
    orders = []
    skipped = []
    for scenario in chosen:
        if scenario.error and len(chosen) > 1:
            skipped.append(scenario)
            continue
        order = launch.order(
            scenario,
            values,
            root=options.root_path(arguments["root"]),
            repeats=arguments["repeat"],
            budget_s=arguments["budget"],
            is_quick=arguments["quick"],
            timeout_s=arguments["timeout"],
            prediction=arguments["predict"],
            waits=arguments["detach"] and not arguments["beside"],
            argv=sys.argv[1:],
        )
        orders.append(order)
    for scenario in skipped:  # only now: a wrong value is an error before anything is printed
        print(f"tuilab: skipped {scenario.id}: {scenario.error}", file=sys.stderr)
    return orders


def _run_remotely(engine: "Engine", orders: "list[RunOrder]", arguments: Mapping[str, Any]) -> int:
    """Run the orders on other machines, print their results, and return the exit code.

    Raises UsageError with options that work only on this machine.
    """
    from tuilab.cli import remote
    from tuilab.cli.follow import ResultPrinter

    for name in ("detach", "beside", "as_jsonl", "predict"):
        if arguments[name]:
            raise UsageError(
                f"--{name.removeprefix('as_')} works only on this machine; "
                f"drop it, or drop --engine {arguments['engine']}"
            )
    has_several_machines = engine.has_several(arguments)
    printer = ResultPrinter(
        as_json=arguments["as_json"],
        is_strict=arguments["strict"],
        is_quiet=arguments["quiet"],
        is_silent=len(orders) > 1 or has_several_machines,
        has_chart=options.has_chart(plot=arguments["plot"], quiet=arguments["quiet"]),
        report=arguments["report"] or "",
    )
    options.check_report(printer.report)
    remote.run_remotely(engine, orders, arguments, printer)
    if printer.is_silent and len(printer.finished) == 1:
        # Only one of several runs has a result, so that is printed whole, not as a summary.
        printer.is_silent = False
        printer.add(*printer.finished.pop())
    code = printer.finish()
    if not printer.as_json and has_several_machines:
        remote.print_boxes(printer)
    return code


def detach(orders: "list[RunOrder]", *, as_json: bool, sweep: str = "") -> int:
    """Start the runs and print their ids; several runs wait for their turn in the queue.

    If a run cannot be started, the ids of those before it are printed all the same, and those runs
    continue. Raises UsageError where a detached run would end at once.
    """
    from tuilab.engine import launch
    from tuilab.runs import queue, store
    from tuilab.runs.command_line import hint

    launch.check_outlived()
    started: list[dict[str, str]] = []
    try:
        for order in orders:
            run_dir, _ = launch.start(order)
            started.append(store.fields(run_dir))
            if not as_json:
                print(store.short_id(run_dir.name), flush=True)
    finally:
        if as_json and started:
            fields = {"sweep": sweep} if sweep else {}
            options.print_document("tuilab.started/1", runs=started, **fields)
    for root in dict.fromkeys(Path(order.root) for order in orders if order.waits):
        if queue.is_paused(root):
            step = hint(root, "queue", "resume")
            print(
                "tuilab: the queue is paused: runs that time something do not start; "
                f"resume it: {step}",
                file=sys.stderr,
            )
    return ExitCode.DONE
