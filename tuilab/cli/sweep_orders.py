"""Make the orders of a sweep: a scenario with other values, or a command with other words.

A point is one combination of values. A function that refuses something raises UsageError.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from msgspec.structs import replace

from tuilab.catalogue import catalog, grid, params
from tuilab.catalogue.scenario import Scenario, Value
from tuilab.commands import make_order as command_orders
from tuilab.engine import launch
from tuilab.engine.messages import CommandOrder, RunOrder
from tuilab.errors import UsageError
from tuilab.record.events import Sweep
from tuilab.runs.command_line import option_words
from tuilab.scrub import is_secret_value, words_for_record
from tuilab.text.display import GONE, did_you_mean, show

Arguments = Mapping[str, Any]  # of `tuilab sweep`, by the names that click gives them
_Point = dict[str, Value]  # the value of each setting


def orders_of_scenario(arguments: Arguments, root: Path, argv: Sequence[str]) -> list[RunOrder]:
    """Return the order of each point of a sweep over the parameters of a scenario.

    Raises UsageError without a scenario, with an unknown parameter, or with a wrong value.
    """
    if not arguments["names"]:
        raise UsageError(
            "nothing to sweep; name a scenario (tuilab sweep NAME --set rows=100,1000), "
            "or a command behind --"
        )
    if arguments["metrics"]:
        raise UsageError(
            "--metric works only with a command, as a scenario logs its own metrics; drop --metric"
        )
    scenario = _find_scenario(arguments)
    param_by_name = {param.name: param for param in scenario.params}

    def parse_value(name: str, text: str) -> Value:
        if name not in param_by_name:
            suggestion = did_you_mean(name, param_by_name)
            raise UsageError(f"{show(scenario.id)} has no parameter {show(name, 40)}{suggestion}")
        return params.parse(param_by_name[name], text)

    values = _read_values(arguments, parse_value)

    def make_order(point: _Point) -> RunOrder:
        return launch.order(
            scenario,
            point,
            root=root,
            repeats=arguments["repeat"],
            budget_s=arguments["budget"],
            is_quick=arguments["quick"],
            timeout_s=arguments["timeout"],
            argv=["run", arguments["names"][0], *_option_words_of(point)],
        )

    return _make_orders(values, make_order, argv)


def orders_of_command(
    words: Sequence[str], arguments: Arguments, root: Path, argv: Sequence[str]
) -> list[RunOrder]:
    """Return the order of each point of a sweep over placeholders in the words of a command.

    Raises UsageError if a value has no placeholder or is a secret, or with options for scenarios.
    """
    for name in ("repeat", "budget", "quick"):
        if arguments[name]:
            raise UsageError(
                f"--{name} works only with a scenario; drop it, "
                "or compare ways to run a command with `tuilab ab`"
            )

    def parse_value(name: str, text: str) -> Value:
        if not any(f"{{{name}}}" in word for word in words):
            raise UsageError(
                f"the command does not contain {{{show(name, 40)}}}; put it where the value belongs"
            )
        return text

    values = _read_values(arguments, parse_value)
    _refuse_secrets_in_command(words, values)
    metrics = list(arguments["metrics"])
    metric_words = []
    for metric in metrics:
        metric_words += ["--metric", metric]

    def make_order(point: _Point) -> RunOrder:
        filled = [_fill(word, point) for word in words]
        return command_orders.order(
            CommandOrder(words=filled, metrics=metrics),
            root=root,
            timeout_s=arguments["timeout"],
            argv=["exec", *metric_words, "--", *filled],
        )

    return _make_orders(values, make_order, argv)


def _find_scenario(arguments: Arguments) -> Scenario:
    """Return the one scenario that is named; raise UsageError if the names mean several."""
    names = arguments["names"]
    listed = catalog.load(arguments["scenarios"])
    scenarios: list[Scenario] = []
    for name in names:
        scenarios += catalog.find(listed, name, arguments["scenarios"])
    if len(scenarios) != 1:
        named = show(" ".join(names), 60)
        raise UsageError(
            f"a sweep takes one scenario, but {named} means {len(scenarios)}; name one of them"
        )
    return scenarios[0]


def _read_values(arguments: Arguments, parse_value: Callable[[str, str], Value]) -> grid.Grid:
    """Return the values of each setting; refuse secrets, because every report shows the values."""
    values = grid.read(arguments["settings"], parse_value)
    for name, listed in values.items():
        if any(isinstance(value, str) and is_secret_value(name, value) for value in listed):
            raise UsageError(
                f"{show(name, 40)} looks like a secret, and the values of a sweep are recorded; "
                "pass it in a file instead"
            )
    return values


def _make_orders(
    values: grid.Grid, make_order: Callable[[_Point], RunOrder], argv: Sequence[str]
) -> list[RunOrder]:
    """Return one order for each point, all with the id of a new sweep; each waits for its turn."""
    here = command_orders.here()
    sweep = Sweep(
        id=f"sweep-{token_hex(3)}",
        values=values,
        point={},
        argv=list(argv),
        folder=here if here.isprintable() else "",
    )
    orders = []
    for point in grid.points(values):
        order = make_order(point)
        orders.append(replace(order, sweep=replace(sweep, point=point), waits=True))
    return orders


def _option_words_of(point: Mapping[str, Value]) -> list[str]:
    """Return a point as options of `tuilab run`."""
    words: list[str] = []
    for name, value in point.items():
        if isinstance(value, bool):
            words += option_words(name, value)
        else:
            words += option_words(name, params.spell(value))
    return words


# ---- the words of a command


def _fill(word: str, point: Mapping[str, Value]) -> str:
    """Return a word with the values in place of their names in braces; other braces stay."""
    names = "|".join(re.escape(name) for name in point)

    def value_of(match: re.Match[str]) -> str:
        return str(point[match[1]])

    return re.sub(rf"\{{({names})\}}", value_of, word)


def _refuse_secrets_in_command(words: Sequence[str], values: grid.Grid) -> None:
    """Refuse values that only in their place in the command look like a secret."""
    fixed_words = []
    for word in words:
        if not any(f"{{{name}}}" in word for name in values):
            fixed_words.append(word)
    fixed_secrets = _count_secrets(fixed_words)
    for point in grid.points(values):
        if _count_secrets([_fill(word, point) for word in words]) > fixed_secrets:
            raise UsageError(
                "a value looks like a secret in this command, and values of a sweep are recorded; "
                "pass it in a file instead"
            )


def _count_secrets(words: Sequence[str]) -> int:
    """Return how many words have a part that looks like a secret."""
    return sum(GONE in word for word in words_for_record(words))
