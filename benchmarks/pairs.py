"""Ways to do a thing take turns in rounds; what is compared is two of one round, so that a busy box slows both."""

import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import median, median_low
from typing import Any

Way = Callable[[], dict[str, float]]  # measures once: a value for each unit


class Missing(Exception):
    """What would be measured is not here; says why, and how to get it."""


@dataclass(frozen=True)
class Row:
    """What was measured of one thing, a value for each round, and of what it stands beside."""

    what: str
    unit: str = ""
    values: list[float] = field(default_factory=list)
    beside: str = ""
    beside_values: list[float] = field(default_factory=list)
    goal: str = ""
    missing: str = ""

    @property
    def ratios(self) -> list[float]:
        return (
            [value / other for value, other in zip(self.values, self.beside_values, strict=True)]
            if self.beside
            else []
        )


def in_rounds(
    ways: Mapping[str, Way],
    rounds: int,
    goals: Mapping[tuple[str, str], str] | None = None,
    *,
    beside: str = "",
    is_warmed: bool = True,
) -> Iterator[Row]:
    """Measure all ways in turns, in an order that the next round mirrors; a first round that fills caches does not count.

    `goals` are of a way and a unit. A way that is missing has a row that says why.
    """
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    missing: dict[str, str] = {}
    ignored = int(is_warmed and rounds > 1)
    for number in range(rounds + ignored):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            if name not in missing:
                try:
                    taken[name].append(ways[name]())
                except Missing as why:
                    missing[name] = str(why)
    for name, found in taken.items():
        if name in missing:
            yield Row(name, missing=missing[name])
        else:
            yield from _rows(
                name, found[ignored:], beside, taken.get(beside, [])[ignored:], goals or {}
            )


def _rows(
    name: str,
    found: list[dict[str, float]],
    beside: str,
    others: list[dict[str, float]],
    goals: Mapping[tuple[str, str], str],
) -> Iterator[Row]:
    for unit in found[0]:
        goal = goals.get((name, unit), "")
        values = [one[unit] for one in found]
        if name != beside and others and all(other.get(unit) for other in others):
            yield Row(name, unit, values, beside, [other[unit] for other in others], goal)
        else:
            yield Row(name, unit, values, goal=goal)


def line(row: Row) -> str:
    """Return a row of the table."""
    if row.missing:
        return f"{row.what:40} n/a: {row.missing}"
    ratio = f"{_spread(row.ratios)} × {row.beside}" if row.beside else ""
    goal = f"goal {row.goal}" if row.goal else ""
    return f"{row.what:40} {_spread(row.values) + ' ' + row.unit:42} {ratio:44} {goal}".rstrip()


def _spread(values: Sequence[float]) -> str:
    """Return the median, and the least and the most where there are several."""
    ends = f" [{number(min(values))}, {number(max(values))}]" if len(values) > 1 else ""
    middle = median_low if all(isinstance(value, int) for value in values) else median
    return number(middle(values)) + ends


def number(value: float) -> str:
    """Return a number in three digits, or all of one that has more; counts are whole."""
    if isinstance(value, int):
        return f"{value:,}"
    if not value or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def document(
    found: Mapping[str, list[Row]],
    sizes: Mapping[str, Mapping[str, float]],
    began: Mapping[str, Any],
    *,
    is_tiny: bool,
) -> dict[str, Any]:
    """Return all that was measured, as JSON has it."""
    return {
        "tuilab.benchmarks": 2,
        "is_tiny": is_tiny,
        "began": began,
        "ended": moment(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": version("torch"),
        "benchmarks": {
            name: {"sizes": sizes[name], "rows": [_record(row) for row in rows]}
            for name, rows in found.items()
        },
    }


def moment() -> dict[str, Any]:
    """Return the time, and the load of the box in the last minute."""
    return {"at": time.strftime("%Y-%m-%d %H:%M:%S %z"), "load": round(os.getloadavg()[0], 1)}


def _record(row: Row) -> dict[str, Any]:
    if row.missing:
        return {"what": row.what, "n/a": row.missing}
    found: dict[str, Any] = {
        "what": row.what,
        "unit": row.unit,
        "values": row.values,
        "median": median(row.values),
    }
    if row.beside:
        found |= {"beside": row.beside, "beside_values": row.beside_values}
        found |= {"ratios": row.ratios, "ratio": median(row.ratios)}
    return found | ({"goal": row.goal} if row.goal else {})
