"""The head of a chart: its title, and for each line its letter, name, value, and what of it is no number."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters
from typing import NamedTuple

from tuilab.arrays import np
from tuilab.drawings.lines import Line, group_by_style, is_in_gap, last_values, reading_at, step_at
from tuilab.drawings.picture import ARMS, Canvas, cell_codes, fit
from tuilab.drawings.symbols import Symbols, to_ascii
from tuilab.text.display import show, told_apart
from tuilab.text.words import clock, extent

_LEAST_PLOT = 7  # rows that a long legend leaves: four of the plot, the axis, its labels, and the marks of Inf
_HIGH = 16  # rows of a chart that has many
_SPACE = 2  # columns between entries
_LEAST_CUT = 24  # columns of a name that shows its end, too


class _Step(NamedTuple):
    """How narrow entries are."""

    label: int  # columns of a name
    value: int  # and of a value; 0: as few digits as tell enough
    is_brief: bool = False  # of what is bad its place is left out
    has_unit_once: bool = False
    is_full: bool = False  # values with more digits, or whose they are


_TIGHTER = (
    _Step(24, 9),
    _Step(24, 7),
    _Step(12, 7, True),
    _Step(8, 0, True),
    _Step(6, 0, True),
    _Step(4, 0, True, True),
)


@dataclass(frozen=True)
class LegendEntry:
    """What is said of one line, or of the repeats that share its look."""

    letter: str
    label: str
    value: str
    brief: str  # the value in fewer digits
    bad: str
    role: str
    full: str = ""  # the value in more digits, where somebody looks at it; of several lines, whose


def letter(look: int) -> str:
    """Return the letter that tells a line apart without its colour."""
    return ascii_letters[(look + 26) % 52]


def make_entries(
    lines: Sequence[Line],
    cursor: float | None,
    unit: str,
    *,
    is_timed: bool,
    is_log_x: bool = False,
    gap_reason: str = "",
) -> list[LegendEntry]:
    """Return an entry for each look, with the value at the cursor, else the last; of several lines the range.

    `gap_reason` is why nothing could be told where that was looked for.
    """
    found = []
    for look, group in group_by_style(lines).items():
        brief, value, full = _values(group, cursor, unit, gap_reason)
        bad = _bad(group, is_timed, is_log_x)
        found.append(
            LegendEntry(
                letter(look), group[0].label, value, brief, bad, ARMS[look % len(ARMS)], full
            )
        )
    return found


def _values(
    group: list[Line], cursor: float | None, unit: str, gap_reason: str
) -> tuple[str, str, str]:
    """Return a value in three widths, the widest only where it tells more."""
    ends = [(end, line.owner) for line in group for end in _ends(line, cursor)]
    if not ends and cursor is not None:
        is_told = gap_reason and any(is_in_gap(line, cursor) for line in group)
        return "n/a", "n/a", f"n/a: {gap_reason}" if is_told else ""
    values, owners = [end for end, _ in ends], [owner for _, owner in ends]
    brief, value = (extent(values, unit, digits) for digits in (3, 4))
    of = owners if len({*owners}) > 1 else ()
    if cursor is None and not of:
        return brief, value, ""
    full = extent(values, unit, 4 if cursor is None else 6, of)
    return brief, value, full if full != value else ""


def _ends(line: Line, cursor: float | None) -> list[float]:
    """Return what a line has at the cursor, the least and the greatest where points share a place; else its last value."""
    if cursor is None:
        return last_values([line])
    reading = reading_at(line, cursor)
    return [reading.low, reading.high] if reading else []


def _bad(group: list[Line], is_timed: bool, is_log_x: bool) -> str:
    """Return what is no number: kind, count, and the first x."""
    parts = [line for line in group if len(line.bad_xs)]
    if not parts:
        return ""
    values = np.concatenate([line.bad_values for line in parts])
    first = min(float(line.bad_xs[0]) for line in parts)
    kinds = [
        name
        for name, is_there in (
            ("NaN", np.isnan(values).any()),
            ("Inf", (values == math.inf).any()),
            ("-Inf", (values == -math.inf).any()),
        )
        if is_there
    ]
    count = sum(line.bad_count for line in parts)
    where = clock(first, 0.1) if is_timed else f"{step_at(first, is_log_x=is_log_x):.10g}"
    return f"{'/'.join(kinds)} ×{count} from {where}"


def put_legend(
    canvas: Canvas, title: str, found: Sequence[LegendEntry], notes: Sequence[str], symbols: Symbols
) -> int:
    """Write the head of a chart in as many rows as it needs, a quarter of the height at most; return how many it took.

    Where that is too little, entries get narrower as long as their names differ; where that is, too, they may take a third, and
    at last all rows but a few of the plot.
    """
    words = [part for part in (show(title, 200), *notes) if part]
    few, many = max(1, canvas.height // 4), max(1, canvas.height // 3)
    tall = max(many, canvas.height - _LEAST_PLOT)
    wide = (
        _TIGHTER[:3] if canvas.height >= _HIGH else _TIGHTER
    )  # where there is room, more rows before briefer names
    full = [(few, _Step(24, 9, is_full=True))] if any(entry.full for entry in found) else []
    tries = [
        *full,
        *((few, step) for step in wide[:-1]),
        *((many, step) for step in wide),
        *((tall, step) for step in _TIGHTER),
    ]
    laid: list[_Laid] = []
    for rows, step in tries:
        laid.append(_lay(found, words, rows, step, canvas.width))
        if laid[-1].tells_all:
            break
    best = laid[-1] if laid[-1].tells_all else max(laid, key=lambda one: len(one.entries))
    canvas.put(0, 0, to_ascii(best.head, symbols), "title")
    for parts, (x, y) in best.entries:
        for text, role in parts:
            x = canvas.put(x, y, to_ascii(text, symbols), role)
    if left_out := len(found) - len(best.entries):
        canvas.put(canvas.width - 4, best.rows - 1, f" +{left_out}".rjust(4), "muted")
    return best.rows if best.head or found else 0


class _Laid(NamedTuple):
    """A legend as it would be."""

    head: str
    entries: list[
        tuple[list[tuple[str, str]], tuple[int, int]]
    ]  # the parts of each that there is room for, and where
    rows: int
    tells_all: bool  # whether each entry is there, and known from the others


def _lay(
    found: Sequence[LegendEntry], words: Sequence[str], rows: int, step: _Step, width: int
) -> _Laid:
    """Return how a legend comes out in so many rows, its entries as narrow as a step has them."""
    unit = _unit(found) if step.has_unit_once else ""
    head = fit(", ".join(filter(None, [*words, unit])), width)
    names = _names(tuple(entry.label for entry in found), step.label)
    entries: list[tuple[list[tuple[str, str]], tuple[int, int], int]] = []
    x, y = len(cell_codes(head)), 0
    for entry, name in zip(found, names, strict=True):
        parts = _parts(entry, name, step, unit)
        wide = sum(len(cell_codes(text)) for text, _ in parts)
        x += _SPACE if x else 0
        if x > _SPACE and x + wide > width:
            x, y = 0, y + 1
        if y == rows:  # no more of them are seen, however many there are
            break
        entries.append((parts, (x, y), wide))
        x += wide
    is_cut = y == rows
    end = (rows - 1, width - 5 if is_cut else width)
    there = [(parts, (x, y)) for parts, (x, y), wide in entries if (y, x + wide) <= end]
    is_known = len(set(names)) == len({entry.label for entry in found})
    return _Laid(head, there, min(y + 1, rows), tells_all=not is_cut and is_known)


def _unit(found: Sequence[LegendEntry]) -> str:
    """Return the unit that most values have, to be told once; a range of two values keeps its own."""
    units = Counter(entry.brief.partition(" ")[2] for entry in found if ".." not in entry.brief)
    return max(units, key=lambda unit: units[unit], default="")


@lru_cache(32)
def _names(labels: tuple[str, ...], width: int) -> list[str]:
    """Return labels of that width; where some would be cut, without the first words if that tells them apart as well.

    Where there is room for it they are cut in the middle, as where both look alike.
    """
    apart = told_apart(labels, width)
    middle = [fit(apart[label], width) for label in labels]
    if width >= _LEAST_CUT and len(set(middle)) == len(set(labels)):
        return middle
    names = [fit(label, width) for label in labels]
    briefer = [fit(label.partition(" ")[2] or label, width) for label in labels]
    tries = [briefer, names, middle] if names != list(labels) else [names]
    return max(tries, key=lambda found: len(set(found)))


def _parts(entry: LegendEntry, label: str, step: _Step, unit: str) -> list[tuple[str, str]]:
    name = f"{entry.letter} {label}".strip()
    bad = entry.bad.partition(" from")[0] if step.is_brief else entry.bad
    brief = entry.brief if ".." in entry.brief or not unit else entry.brief.removesuffix(f" {unit}")
    value = entry.full if step.is_full and entry.full else entry.value if step.value else brief
    parts = [
        (f"{name} ", entry.role),
        (value.ljust(step.value), "value"),
        (f" {bad}" if bad else "", "bad"),
    ]
    return [(text, role) for text, role in parts if text.strip()]
