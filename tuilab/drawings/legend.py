"""The head of a chart: its title, and for each line its letter, name, value, and what of it is no number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuilab.drawings.lines import Line, values_at
from tuilab.drawings.picture import ARMS, Canvas, cells, fit
from tuilab.drawings.symbols import Symbols, plain
from tuilab.drawings.units import clock, number
from tuilab.text import show

_VALUE_WIDTH = 9  # kept free, so that what follows does not move


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


def entries(lines: Sequence[Line], cursor: float | None, unit: str, *, is_timed: bool) -> list[Entry]:
    """Return an entry for each look, with the value at the cursor or else the last one."""
    looks: dict[int, list[Line]] = {}
    for line in lines:
        looks.setdefault(line.look, []).append(line)
    return [
        Entry(letter(look), group[0].label, _value(group, cursor, unit), _bad(group, is_timed), ARMS[look % len(ARMS)])
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


def _bad(group: list[Line], is_timed: bool) -> str:
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
    where = clock(first, 0.1) if is_timed else f"{first:.10g}"
    return f"{'/'.join(kinds)} ×{count} from {where}"


def put_legend(canvas: Canvas, title: str, found: Sequence[Entry], notes: Sequence[str], symbols: Symbols) -> int:
    """Write the head of a chart in as many rows as it needs, a quarter of the height at most; return how many it took."""
    rows = max(1, canvas.height // 4)
    x = y = 0
    head = ", ".join([part for part in (show(title, 60), *notes) if part])
    if head:
        x = canvas.put(0, 0, plain(fit(head, canvas.width), symbols), "title") + 3
    for count, entry in enumerate(found):
        parts = _parts(entry, symbols)
        width = sum(len(cells(text)) for text, _ in parts)
        if x and x + width > canvas.width:
            if y + 1 == rows:
                canvas.put(canvas.width - 4, y, f" +{len(found) - count}", "muted")
                break
            x, y = 0, y + 1
        for text, role in parts:
            x = canvas.put(x, y, text, role)
        x += 2
    return y + 1 if x else 0


def _parts(entry: Entry, symbols: Symbols) -> list[tuple[str, str]]:
    name = f"{entry.letter} {fit(entry.label, 24)}".strip()
    parts = [(f"{name} " if name else "", entry.role), (entry.value.ljust(_VALUE_WIDTH), "value")]
    if entry.bad:
        parts.append((f" {entry.bad}", "bad"))
    return [(plain(text, symbols), role) for text, role in parts if text]
