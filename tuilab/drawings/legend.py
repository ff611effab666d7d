"""The head of a chart: its title, and for each line its letter, name, value, and what of it is no number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuilab.drawings.lines import Line, step_at, values_at
from tuilab.drawings.picture import ARMS, Canvas, cells, fit
from tuilab.drawings.symbols import Symbols, plain
from tuilab.text import show
from tuilab.words import clock, number

_SPACE = 2  # columns between entries
_TIGHTER = ((24, 9, False), (24, 7, False), (12, 7, True), (6, 0, True))  # width of names and of values, is what is bad brief


@dataclass(frozen=True)
class Entry:
    """What is said of one line, or of the repeats that share its look."""

    letter: str
    label: str
    value: str
    bad: str
    role: str


def letter(look: int) -> str:
    """Return the letter that tells a line apart without its colour."""
    return chr(ord("A") + look % 26)


def entries(lines: Sequence[Line], cursor: float | None, unit: str, *, is_timed: bool, is_log_x: bool = False) -> list[Entry]:
    """Return an entry for each look, with the value at the cursor or else the last one."""
    looks: dict[int, list[Line]] = {}
    for line in lines:
        looks.setdefault(line.look, []).append(line)
    return [
        Entry(
            letter(look), group[0].label, _value(group, cursor, unit), _bad(group, is_timed, is_log_x), ARMS[look % len(ARMS)]
        )
        for look, group in looks.items()
    ]


def _value(group: list[Line], cursor: float | None, unit: str) -> str:
    if cursor is None:
        newest = max(group, key=lambda line: line.last_x)
        return "" if newest.is_empty else number(newest.last, unit)
    readings = values_at(group, cursor)
    if not readings:
        return "n/a"
    low, high = min(reading.low for reading in readings), max(reading.high for reading in readings)
    if any(reading.low != reading.low for reading in readings):
        return "NaN"
    return number(low, unit) if low == high else f"{number(low, unit, 3)}..{number(high, unit, 3)}"


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


def put_legend(canvas: Canvas, title: str, found: Sequence[Entry], notes: Sequence[str], symbols: Symbols) -> int:
    """Write the head of a chart in as many rows as it needs, a quarter of the height at most; return how many it took.

    Where that is too little, entries get narrower.
    """
    head = fit(", ".join(part for part in (show(title, 60), *notes) if part), canvas.width)
    rows = max(1, canvas.height // 4)
    for label_width, value_width, is_brief in _TIGHTER:
        names = _names([entry.label for entry in found], label_width)
        entries = [_parts(entry, name, value_width, is_brief) for entry, name in zip(found, names, strict=True)]
        places, last = _places(
            [sum(len(cells(text)) for text, _ in parts) for parts in entries], len(cells(head)), canvas.width
        )
        if last < rows:
            break
    canvas.put(0, 0, plain(head, symbols), "title")
    for parts, (x, y) in zip(entries, places, strict=True):
        for text, role in parts if y < rows else ():
            x = canvas.put(x, y, plain(text, symbols), role)
    if hidden := sum(y >= rows for _, y in places):
        canvas.put(canvas.width - 4, rows - 1, f" +{hidden}".rjust(4), "muted")
    return min(last + 1, rows) if head or found else 0


def _places(widths: Sequence[int], x: int, room: int) -> tuple[list[tuple[int, int]], int]:
    """Return the column and row of each entry after a head that ends at x, and the last row."""
    places, y = [], 0
    for width in widths:
        x += _SPACE if x else 0
        if x > _SPACE and x + width > room:
            x, y = 0, y + 1
        places.append((x, y))
        x += width
    return places, y


def _names(labels: Sequence[str], width: int) -> list[str]:
    """Return labels of that width; where they would be the same, as those of one GPU, without the first words if that helps."""
    names = [fit(label, width) for label in labels]
    briefer = [fit(label.partition(" ")[2] or label, width) for label in labels]
    return briefer if len(set(briefer)) > len(set(names)) else names


def _parts(entry: Entry, label: str, value_width: int, is_brief: bool) -> list[tuple[str, str]]:
    name = f"{entry.letter} {label}".strip()
    bad = entry.bad.partition(" from")[0] if is_brief else entry.bad
    parts = [(f"{name} ", entry.role), (entry.value.ljust(value_width), "value"), (f" {bad}" if bad else "", "bad")]
    return [(text, role) for text, role in parts if text.strip()]
