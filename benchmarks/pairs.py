"""Measure several ways to do a thing, in rounds.

A ratio compares two values of the same round, so that a busy machine slows both of them.
"""

import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import median, median_low
from typing import Any

Measurement = Callable[[], dict[str, float]]  # measures once: returns a value for each unit
Goals = Mapping[tuple[str, str], str]  # by the name of a measurement and a unit


class Missing(Exception):
    """The subject of a measurement is not installed here.

    The message says why, and how to install it.
    """


@dataclass(frozen=True)
class Row:
    """The values of one subject, one for each round, and those of its reference."""

    what: str
    unit: str = ""
    values: list[float] = field(default_factory=list)
    beside: str = ""  # the name of the reference
    beside_values: list[float] = field(default_factory=list)
    goal: str = ""
    missing: str = ""  # why there are no values

    @property
    def ratios(self) -> list[float]:
        """Return the ratio to the reference in each round; no ratios without a reference."""
        if not self.beside:
            return []
        rounds = zip(self.values, self.beside_values, strict=True)
        return [value / reference for value, reference in rounds]


def in_rounds(
    measurements: Mapping[str, Measurement],
    rounds: int,
    goals: Goals | None = None,
    *,
    beside: str = "",
    is_warmed: bool = True,
) -> Iterator[Row]:
    """Take all measurements in turns, and yield the rows of each.

    Each round has the reverse order of the round before. If `is_warmed`, and if there are several
    rounds, one more round comes first: it fills caches and does not count. `beside` names the
    measurement that the others are compared with. If a measurement is missing, its row says why.
    """
    results: dict[str, list[dict[str, float]]] = {name: [] for name in measurements}
    missing: dict[str, str] = {}
    ignored_rounds = 1 if is_warmed and rounds > 1 else 0
    for round_number in range(rounds + ignored_rounds):
        names = list(measurements)
        if round_number % 2 == 1:
            names.reverse()
        for name in names:
            if name in missing:
                continue
            try:
                result = measurements[name]()
            except Missing as reason:
                missing[name] = str(reason)
            else:
                results[name].append(result)
    references = results.get(beside, [])[ignored_rounds:]
    for name, all_results in results.items():
        if name in missing:
            yield Row(name, missing=missing[name])
        else:
            yield from _rows(name, all_results[ignored_rounds:], beside, references, goals or {})


def _rows(
    name: str,
    results: list[dict[str, float]],
    beside: str,
    references: list[dict[str, float]],
    goals: Goals,
) -> Iterator[Row]:
    """Yield a row for each unit.

    A row has no reference if the reference lacks the unit, or was 0 in a round.
    """
    for unit in results[0]:
        values = [result[unit] for result in results]
        goal = goals.get((name, unit), "")
        has_reference = name != beside and bool(references)
        if has_reference and all(reference.get(unit) for reference in references):
            reference_values = [reference[unit] for reference in references]
            yield Row(name, unit, values, beside, reference_values, goal)
        else:
            yield Row(name, unit, values, goal=goal)


def line(row: Row) -> str:
    """Return a row of the printed table."""
    if row.missing:
        return f"{row.what:40} n/a: {row.missing}"
    values = f"{_describe_spread(row.values)} {row.unit}"
    ratio = ""
    if row.beside:
        ratio = f"{_describe_spread(row.ratios)} × {row.beside}"
    goal = ""
    if row.goal:
        goal = f"goal {row.goal}"
    return f"{row.what:40} {values:42} {ratio:44} {goal}".rstrip()


def _describe_spread(values: Sequence[float]) -> str:
    """Return the median and, if there are several values, the least and the greatest one."""
    if all(isinstance(value, int) for value in values):
        middle = median_low(values)
    else:
        middle = median(values)
    if len(values) == 1:
        return number(middle)
    return f"{number(middle)} [{number(min(values))}, {number(max(values))}]"


def number(value: float) -> str:
    """Return a number with three digits, or with all digits before the point if it has more.

    A count is printed whole.
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not value or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def document(
    results: Mapping[str, list[Row]],
    sizes: Mapping[str, Mapping[str, float]],
    began: Mapping[str, Any],
    *,
    is_tiny: bool,
) -> dict[str, Any]:
    """Return all results in the form of the JSON file."""
    benchmarks = {}
    for name, rows in results.items():
        records = [_record(row) for row in rows]
        benchmarks[name] = {"sizes": sizes[name], "rows": records}
    return {
        "tuilab.benchmarks": 2,
        "is_tiny": is_tiny,
        "began": began,
        "ended": moment(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": version("torch"),
        "benchmarks": benchmarks,
    }


def moment() -> dict[str, Any]:
    """Return the time, and the load of the machine in the last minute."""
    return {"at": time.strftime("%Y-%m-%d %H:%M:%S %z"), "load": round(os.getloadavg()[0], 1)}


def _record(row: Row) -> dict[str, Any]:
    """Return a row in the form of the JSON file."""
    if row.missing:
        return {"what": row.what, "n/a": row.missing}
    record: dict[str, Any] = {
        "what": row.what,
        "unit": row.unit,
        "values": row.values,
        "median": median(row.values),
    }
    if row.beside:
        record["beside"] = row.beside
        record["beside_values"] = row.beside_values
        record["ratios"] = row.ratios
        record["ratio"] = median(row.ratios)
    if row.goal:
        record["goal"] = row.goal
    return record
