"""The values of a chart as a table, for whoever does not see the drawing: each line at some places along x."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuilab.arrays import np
from tuilab.drawings.lines import Line, step_at, values_at
from tuilab.reports.charts.frame import letter
from tuilab.text.display import plural
from tuilab.text.words import format_number


@dataclass(frozen=True)
class ValueRow:
    """What a line has at each place."""

    letter: str
    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Values:
    along: str  # what the places are of
    places: tuple[str, ...]
    rows: tuple[ValueRow, ...]
    is_whole: bool  # whether these are all the points


def values_of(lines: Sequence[Line], along: str, unit: str, most: int, *, is_log_x: bool) -> Values:
    """Return the values of lines at `most` places, evenly among those where any line has a point."""
    found = np.unique(np.concatenate([part for line in lines for part in (line.xs, line.bad_xs)]))
    chosen = found[
        np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(np.int64))
    ]
    rows = [
        ValueRow(letter(line.style), line.label, _cells(line, chosen.tolist(), unit))
        for line in lines
    ]
    places = [f"{step_at(place, is_log_x=is_log_x):.6g}" for place in chosen.tolist()]
    return Values(along, tuple(places), tuple(rows), len(found) <= most)


def _cells(line: Line, places: Sequence[float], unit: str) -> tuple[str, ...]:
    least = format_number(float(line.lows.min()), unit) if len(line.lows) else "n/a"
    greatest = format_number(float(line.highs.max()), unit) if len(line.highs) else "n/a"
    return least, greatest, *(_cell(line, place, unit) for place in places)


def _cell(line: Line, place: float, unit: str) -> str:
    """Return the value of a line at a place, its least and greatest where points share it; nothing beyond its ends."""
    found = values_at([line], place) if place <= line.last_x else []
    if not found:
        return ""
    low, high = format_number(found[0].low, unit), format_number(found[0].high, unit)
    return low if low == high else f"{low} to {high}"


def summary(lines: Sequence[Line], labels: Mapping[str, str], unit: str, most: int = 6) -> str:
    """Return in words how each line goes: a chart for whoever does not see it."""
    told = [f"{labels[line.label] or 'the line'} {_course(line, unit)}" for line in lines[:most]]
    more = len(lines) - len(told)
    return "; ".join(told) + (f"; {plural(more, 'line')} more" if more > 0 else "")


def _course(line: Line, unit: str) -> str:
    if not len(line.xs):
        return "has no finite value"
    low, high, last = float(line.lows.min()), float(line.highs.max()), line.last
    first = float(line.lows[0]) / 2 + float(line.highs[0]) / 2
    bad = f", {line.bad_count} not finite" if line.bad_count else ""
    return f"from {format_number(first, unit)} to {format_number(last, unit)}, between {format_number(low, unit)} and {format_number(high, unit)}{bad}"
