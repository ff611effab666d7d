"""The orders of the points of a sweep: a scenario with other values, or a command with other words."""

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

Given = Mapping[str, Any]


def of_scenario(given: Given, root: Path, argv: Sequence[str]) -> list[RunOrder]:
    """Return the order of each point of a sweep over the parameters of a scenario."""
    if not given["names"]:
        raise UsageError(
            "nothing to sweep; name a scenario (tuilab sweep NAME --set rows=100,1000), or a command behind --"
        )
    if given["metrics"]:
        raise UsageError(
            "--metric works only with a command, as a scenario logs its own metrics; drop --metric"
        )
    scenario = _scenario(given)
    known = {param.name: param for param in scenario.params}

    def value_of(name: str, text: str) -> Value:
        if name not in known:
            raise UsageError(
                f"{show(scenario.id)} has no parameter {show(name, 40)}{did_you_mean(name, known)}"
            )
        return params.parse(known[name], text)

    values = _values(given, value_of)

    def order(point: dict[str, Value]) -> RunOrder:
        return launch.order(
            scenario,
            point,
            root=root,
            repeats=given["repeat"],
            budget_s=given["budget"],
            is_quick=given["quick"],
            timeout_s=given["timeout"],
            argv=["run", given["names"][0], *_as_options(point)],
        )

    return _orders(values, order, argv)


def of_command(
    words: Sequence[str], given: Given, root: Path, argv: Sequence[str]
) -> list[RunOrder]:
    """Return the order of each point of a sweep over what stands in the words of a command."""
    for option, what in (("repeat", "--repeat"), ("budget", "--budget"), ("quick", "--quick")):
        if given[option]:
            raise UsageError(
                f"{what} works only with a scenario; drop it, or compare ways to run a command with `tuilab ab`"
            )

    def value_of(name: str, text: str) -> Value:
        if not any(f"{{{name}}}" in word for word in words):
            raise UsageError(
                f"the command does not contain {{{show(name, 40)}}}; put it where the value belongs"
            )
        return text

    values = _values(given, value_of)
    plain = _secrets([word for word in words if not any(f"{{{name}}}" in word for name in values)])
    if any(
        _secrets([_filled(word, point) for word in words]) > plain for point in grid.points(values)
    ):
        raise UsageError(
            "a value looks like a secret in this command, and values of a sweep are recorded; pass it in a file instead"
        )
    metrics = list(given["metrics"])

    def order(point: dict[str, Value]) -> RunOrder:
        filled = [_filled(word, point) for word in words]
        options = [word for metric in metrics for word in ("--metric", metric)]
        said = ["exec", *options, "--", *filled]
        wanted = CommandOrder(words=filled, metrics=metrics)
        return command_orders.order(wanted, root=root, timeout_s=given["timeout"], argv=said)

    return _orders(values, order, argv)


def _secrets(words: Sequence[str]) -> int:
    """Return how many words have what looks like a secret."""
    return sum(GONE in word for word in words_for_record(words))


def _scenario(given: Given) -> Scenario:
    """Return the one scenario that is named."""
    names = given["names"]
    found = [
        one
        for name in names
        for one in catalog.find(catalog.load(given["scenarios"]), name, given["scenarios"])
    ]
    if len(found) != 1:
        raise UsageError(
            f"a sweep takes one scenario, but {show(' '.join(names), 60)} means {len(found)}; name one of them"
        )
    return found[0]


def _values(given: Given, value_of: Callable[[str, str], Value]) -> grid.Grid:
    """Return the values to go through; none of them may be a secret, as they stand in every report."""
    values = grid.read(given["settings"], value_of)
    for name, listed in values.items():
        if any(isinstance(one, str) and is_secret_value(name, one) for one in listed):
            raise UsageError(
                f"{show(name, 40)} looks like a secret, and the values of a sweep are recorded; pass it in a file instead"
            )
    return values


def _orders(
    values: grid.Grid, order: Callable[[dict[str, Value]], RunOrder], argv: Sequence[str]
) -> list[RunOrder]:
    """Return an order a point, each of which waits for its turn."""
    here = command_orders.here()
    folder = here if here.isprintable() else ""
    sweep = Sweep(
        id=f"sweep-{token_hex(3)}", values=values, point={}, argv=list(argv), folder=folder
    )
    return [
        replace(order(point), sweep=replace(sweep, point=point), waits=True)
        for point in grid.points(values)
    ]


def _as_options(point: Mapping[str, Value]) -> list[str]:
    """Return a point as options of `tuilab run`."""
    spelled = (
        (name, value if isinstance(value, bool) else params.spell(value))
        for name, value in point.items()
    )
    return [word for name, value in spelled for word in option_words(name, value)]


def _filled(word: str, point: Mapping[str, Value]) -> str:
    """Return a word with the values where their names stand in braces; other braces stay as they are."""
    names = "|".join(map(re.escape, point))
    return re.sub(rf"\{{({names})\}}", lambda found: str(point[found[1]]), word)
