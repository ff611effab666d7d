"""Run scenarios one after another and print the results.

NAME is a scenario, a topic, `all`, or a scenario file such as ./my-idea.py. With --detach,
runs wait in the queue of their device and run one after another; `tuilab queue` shows them.
"""

import contextlib
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuilab.catalogue import catalog, params
from tuilab.catalogue.params import describe, has_gpus, parse
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.cli import completion, options
from tuilab.errors import ExitCode, UsageError
from tuilab.text.display import show

if TYPE_CHECKING:
    from tuilab.engine.engines import Engine
    from tuilab.engine.messages import RunOrder
    from tuilab.engine.spare import Spare
    from tuilab.record.events import Scalar

_BASE: list[click.Parameter] = [
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
        help="Print the whole result of each of several runs (default: a summary). Implies --headless.",
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

_CHARTLESS = {
    "--json": "as_json",
    "--jsonl": "as_jsonl",
    "--detach": "detach",
}  # no result is printed as text


class _ScenarioOption(click.Option):
    """A scenario's parameter as an option, checked by the same rules as everywhere: an empty text is a text."""

    def __init__(self, param: Param) -> None:
        self.param = param
        flag = params.option_of(param.name)
        names = [f"{flag}/--no-{flag[2:]}" if param.type == "bool" else flag, f"param_{param.name}"]
        words = (
            f"[{'|'.join(show(choice) for choice in param.choices)}]"
            if param.choices
            else param.type.upper()
        )
        super().__init__(
            names,
            default=None,
            type=_type(param),
            metavar=None if param.type == "bool" else words,
            help=f"{show(param.label or param.name)}; {show(describe(param))}.",
            shell_complete=self._complete if has_gpus(param) else None,
        )

    def _complete(self, ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
        from tuilab.probes.gpu.is_present import gpu_names

        return [
            word for word in (*map(str, self.param.choices), *gpu_names()) if word.startswith(typed)
        ]

    def value(self, given: Any) -> "Scalar":
        return bool(given) if self.param.type == "bool" else parse(self.param, str(given))


def _type(param: Param) -> Any:
    if param.type == "bool":
        return bool
    return (
        click.Choice([str(choice) for choice in param.choices])
        if param.choices and not has_gpus(param)
        else str
    )


class _RunCommand(click.Command):
    """Options of the named scenario stand beside those of every run, whatever their order on the line."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        extra: list[click.Parameter] = ctx.meta.get("tuilab.options", [])
        return super().get_params(ctx) + extra

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names, chosen = _find_scenarios(ctx, args)
        ctx.meta["tuilab.chosen"] = chosen
        ctx.meta["tuilab.options"] = [_ScenarioOption(param) for param in shared_params(chosen)]
        rest = super().parse_args(ctx, [*args])  # which it empties
        if names and set(ctx.params["names"]) != set(names):
            _refuse_values_of_switches(args, ctx.meta["tuilab.options"])
            raise UsageError(
                "cannot tell scenario names from option values; put the names first: tuilab run NAME NAME --option VALUE"
            )
        return rest


def _refuse_values_of_switches(args: list[str], chosen: list[click.Option]) -> None:
    both_ways = [
        (yes, no)
        for option in chosen
        if option.is_flag
        for yes, no in zip(option.opts, option.secondary_opts, strict=False)
    ]
    other = dict(both_ways) | {no: yes for yes, no in both_ways}
    for before, word in pairwise(args):
        if before in other and word.lower() in (
            "true",
            "false",
            "yes",
            "no",
            "on",
            "off",
            "1",
            "0",
        ):
            raise UsageError(
                f"{before} takes no value, and {show(word)} is not a scenario; for the opposite, use {other[before]}"
            )


def shared_params(scenarios: list[Scenario]) -> list[Param]:
    """Return the parameters that every scenario of a topic takes, described as the first one has them."""
    whole = [scenario for scenario in scenarios if not scenario.error]
    if not whole:
        return []
    known = [
        {(param.name, param.type, param.choices) for param in scenario.params} for scenario in whole
    ]
    return [
        param
        for param in whole[0].params
        if all((param.name, param.type, param.choices) in names for names in known)
    ]


def _find_scenarios(ctx: click.Context, args: list[str]) -> tuple[list[str], list[Scenario]]:
    """Return the names on the line and what they mean: words that no option takes, or the first that may be a name."""
    (sure, doubtful), folders = _words(args), _values(args, "--scenarios")
    for folder in folders:
        options.refuse_empty("--scenarios", folder)  # it is read before the options are
    known = catalog.load(folders)
    if ctx.resilient_parsing:
        return [], [
            one
            for word in sure
            if _is_known(known, word)
            for one in catalog.find(known, word, folders)
        ]
    names = sure or [word for word in doubtful if _is_known(known, word)][:1] or doubtful[:1]
    found = [
        one for name in names for one in catalog.find(known, name, folders)
    ]  # which says what is wrong
    return names, list({scenario.path: scenario for scenario in found}.values())


def _is_known(known: list[Scenario], word: str) -> bool:
    with contextlib.suppress(UsageError):
        return bool(catalog.named(known, word))
    return False


def _values(args: list[str], option: str) -> list[str]:
    """Return what an option is given on the line, which is looked at before click reads it."""
    args = args[: args.index("--")] if "--" in args else args
    after = [word for before, word in pairwise(args) if before == option]
    return after + [arg.partition("=")[2] for arg in args if arg.startswith(f"{option}=")]


def _words(args: list[str]) -> tuple[list[str], list[str]]:
    """Return the words that are names, and those that may be one or an option's value."""
    takes_value = {
        o
        for option in _BASE
        if isinstance(option, click.Option) and not option.is_flag
        for o in option.opts
    }
    sure: list[str] = []
    doubtful: list[str] = []
    before = ""
    if "--" in args:
        at = args.index("--")
        args, sure = args[:at], args[at + 1 :]
    for arg in args:
        if not arg.startswith("-") and before not in takes_value:
            is_after_unknown = (
                before.startswith("--") and "=" not in before and before not in _flags()
            )
            (doubtful if is_after_unknown else sure).append(arg)
        before = arg
    return sure, doubtful


def _flags() -> set[str]:
    return {
        o
        for option in _BASE
        if isinstance(option, click.Option) and option.is_flag
        for o in option.opts
    }


@click.command(cls=_RunCommand, params=_BASE, help=__doc__)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    chosen: list[Scenario] = ctx.meta["tuilab.chosen"]
    if given["plot"]:
        options.refuse_without_effect(
            "--plot", {name: given[key] for name, key in _CHARTLESS.items()}
        )
    engine = options.remote_engine(given)
    if engine is None:
        options.refuse_beside(given)
    is_headless = any(
        given[name]
        for name in ("headless", "as_json", "as_jsonl", "quiet", "plot", "report", "verbose")
    )
    spare = (
        _prepare(chosen[0], given)
        if is_headless and not given["detach"] and engine is None
        else None
    )
    from tuilab.engine import (
        launch,
    )  # this and what follows takes longer to load than a shell may wait for its words

    values = values_of(ctx, given)
    if given["predict"] is not None and len(chosen) > 1:
        raise UsageError("--predict answers the question of one lesson; name only one scenario")
    if given["predict"] is not None and "Predict" not in chosen[0].sections:
        raise UsageError(f"{show(chosen[0].id)} has no question to predict; drop --predict")
    runnable = (
        [scenario for scenario in chosen if not scenario.error] if len(chosen) > 1 else chosen
    )
    orders = [
        launch.order(
            scenario,
            values,
            root=options.root(given["root"]),
            repeats=given["repeat"],
            budget_s=given["budget"],
            is_quick=given["quick"],
            timeout_s=given["timeout"],
            prediction=given["predict"],
            waits=given["detach"] and not given["beside"],
            argv=sys.argv[1:],
        )
        for scenario in runnable
    ]
    for scenario in chosen:
        if scenario not in runnable:
            print(f"tuilab: skipped {scenario.id}: {scenario.error}", file=sys.stderr)
    if engine:
        return _run_remotely(engine, orders, given)
    if given["detach"]:
        options.check_detached(options.root(given["root"]), given)
        return detach(orders, as_json=given["as_json"])
    options.check_report(given["report"])
    from tuilab.cli.follow import Outcome, run_all

    outcome = Outcome(
        as_json=given["as_json"],
        as_jsonl=given["as_jsonl"],
        is_strict=given["strict"],
        is_quiet=given["quiet"],
        is_verbose=given["verbose"] or given["plot"],
        has_chart=options.has_chart(plot=given["plot"], quiet=given["quiet"]),
        report=given["report"] or "",
    )
    if not is_headless:
        from tuilab import tui

        why = tui.why_not()
        if not why:
            return tui.start(
                options.root(given["root"]), given["scenarios"], orders, fps=given["fps"]
            )
        print(f"tuilab: {why}; printing the result instead (same as --headless)", file=sys.stderr)
    return run_all(orders, outcome, spare)


def _prepare(scenario: Scenario, given: Mapping[str, Any]) -> "Spare | None":
    """Have torch loaded meanwhile for a run that begins with that, if it is one process: several load side by side."""
    has_repeats = (
        given["budget"]
        or (given["repeat"] or 1) > 1
        or (scenario.is_timed and not (given["repeat"] or given["quick"]))
    )
    if scenario.error or not scenario.imports or has_repeats:
        return None
    from tuilab.engine.spare import prepare

    return prepare(is_timed=scenario.wants_quiet)


def _run_remotely(engine: "Engine", orders: "list[RunOrder]", given: Mapping[str, Any]) -> int:
    """Run the orders on other machines, and print their results."""
    from tuilab.cli import remote
    from tuilab.cli.follow import Outcome

    for name in ("detach", "beside", "as_jsonl", "predict"):
        if given[name]:
            flag = f"--{name.removeprefix('as_')}"
            raise UsageError(
                f"{flag} works only on this machine; drop it, or drop --engine {given['engine']}"
            )
    has_several = engine.has_several(given)
    outcome = Outcome(
        as_json=given["as_json"],
        is_strict=given["strict"],
        is_quiet=given["quiet"],
        is_silent=len(orders) > 1 or has_several,
        has_chart=options.has_chart(plot=given["plot"], quiet=given["quiet"]),
        report=given["report"] or "",
    )
    options.check_report(outcome.report)
    remote.run_remotely(engine, orders, given, outcome)
    if (
        outcome.is_silent and len(outcome.watched) == 1
    ):  # of several that were wanted: it is told like one
        outcome.is_silent = False
        outcome.take(*outcome.watched.pop())
    code = outcome.finish()
    if not outcome.as_json and has_several:
        remote.print_boxes(outcome)
    return code


def values_of(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were given for parameters of the scenarios, by the names of these."""
    return {
        o.param.name: o.value(given[o.name])
        for o in ctx.meta["tuilab.options"]
        if given[o.name] is not None
    }


def detach(orders: "list[RunOrder]", *, as_json: bool, sweep: str = "") -> int:
    """Start the runs and print their ids, also where a later one cannot be started; of several each waits for its turn."""
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
            options.print_document(
                "tuilab.started/1", runs=started, **({"sweep": sweep} if sweep else {})
            )
    for root in dict.fromkeys(
        Path(order.root) for order in orders if order.waits and queue.is_paused(Path(order.root))
    ):
        step = hint(root, "queue", "resume")
        print(
            f"tuilab: the queue is paused: runs that time something do not start; resume it: {step}",
            file=sys.stderr,
        )
    return ExitCode.DONE
