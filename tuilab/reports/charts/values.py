"""Show the values of a chart as a table and in words, for readers who do not see the drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuilab.arrays import np
from tuilab.drawings.lines import Line, step_at, values_at
from tuilab.reports.charts.frame import letter
from tuilab.text.display import plural
from tuilab.text.words import format_number

_MAX_DESCRIBED = 6  # lines


@dataclass(frozen=True)
class ValueRow:
    """The least and the greatest value of a line, then its value at each place."""

    letter: str
    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ValueTable:
    x_unit: str  # of the places
    places: tuple[str, ...]
    rows: tuple[ValueRow, ...]
    is_whole: bool  # whether these are all points


def make_value_table(
    lines: Sequence[Line], x_unit: str, unit: str, max_places: int, *, is_log_x: bool
) -> ValueTable:
    """Return the values of lines at some of the places where any of them has a point."""
    parts = []
    for line in lines:
        parts += [line.xs, line.bad_xs]
    xs = np.unique(np.concatenate(parts))
    evenly = np.linspace(0, len(xs) - 1, min(max_places, len(xs)))
    indices = np.unique(evenly.round().astype(np.int64))
    chosen = xs[indices].tolist()
    rows = []
    for line in lines:
        cells = tuple(_make_cells(line, chosen, unit))
        rows.append(ValueRow(letter(line.style), line.label, cells))
    places = [f"{step_at(x, is_log_x=is_log_x):.6g}" for x in chosen]
    return ValueTable(x_unit, tuple(places), tuple(rows), is_whole=len(xs) <= max_places)


def _make_cells(line: Line, xs: Sequence[float], unit: str) -> list[str]:
    """Return the least and the greatest value of a line, then its value at each of the places.

    The value of a place is empty where the line has none.
    """
    least = "n/a"
    greatest = "n/a"
    if len(line.lows):
        least = format_number(float(line.lows.min()), unit)
        greatest = format_number(float(line.highs.max()), unit)
    cells = [least, greatest]
    for x in xs:
        cells.append(_describe_value(line, x, unit))
    return cells


def _describe_value(line: Line, x: float, unit: str) -> str:
    """Return the value of a line at a place; a range if points share it, nothing after its end."""
    if not x <= line.last_x:
        return ""
    readings = values_at([line], x)
    if not readings:
        return ""
    low = format_number(readings[0].low, unit)
    high = format_number(readings[0].high, unit)
    return low if low == high else f"{low} to {high}"


def describe_lines(lines: Sequence[Line], labels: Mapping[str, str], unit: str) -> str:
    """Return the course of each line in words."""
    parts = []
    for line in lines[:_MAX_DESCRIBED]:
        name = labels[line.label] or "the line"
        parts.append(f"{name} {_describe_course(line, unit)}")
    left_out = len(lines) - len(parts)
    if left_out:
        parts.append(f"{plural(left_out, 'line')} more")
    return "; ".join(parts)


def _describe_course(line: Line, unit: str) -> str:
    """Return where a line begins and ends, and between which values it stays."""
    if not len(line.xs):
        return "has no finite value"
    first = format_number(float(line.lows[0]) / 2 + float(line.highs[0]) / 2, unit)
    last = format_number(line.last, unit)
    low = format_number(float(line.lows.min()), unit)
    high = format_number(float(line.highs.max()), unit)
    course = f"from {first} to {last}, between {low} and {high}"
    if line.bad_count:
        course += f", {line.bad_count} not finite"
    return course
