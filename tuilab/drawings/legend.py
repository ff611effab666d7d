"""The head of a chart: its title, and an entry for each style of its lines.

An entry has a letter, a name, a value, and the NaN and Inf of its lines.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters
from typing import NamedTuple

from tuilab.arrays import np
from tuilab.drawings.lines import (
    Line,
    group_by_style,
    is_in_gap,
    last_values,
    reading_at,
    step_at,
)
from tuilab.drawings.picture import Canvas, Run, arm_role, count_cells, fit
from tuilab.drawings.symbols import Symbols, to_ascii
from tuilab.text.display import distinct_labels, show
from tuilab.text.words import clock, extent

# Rows that a long legend leaves: four of the plot, the axis, its labels, and the marks of Inf.
_LEAST_PLOT = 7
_TALL = 16  # rows, from which on a chart has room for a long legend
_GAP = 2  # columns between entries
_LEAST_CUT_IN_MIDDLE = 24  # columns of a name that is cut in the middle, so that its end shows


class _Form(NamedTuple):
    """How narrow entries are."""

    name_columns: int
    value_columns: int  # 0: a brief value takes the columns that it needs
    is_bad_brief: bool = False  # whether the place of the first NaN or Inf is left out
    has_unit_once: bool = False  # whether the unit is in the head instead of each entry
    is_full: bool = False  # whether values have more digits, or their owners


_FORMS = (  # the widest first
    _Form(24, 9),
    _Form(24, 7),
    _Form(12, 7, is_bad_brief=True),
    _Form(8, 0, is_bad_brief=True),
    _Form(6, 0, is_bad_brief=True),
    _Form(4, 0, is_bad_brief=True, has_unit_once=True),
)
_FULL_FORM = _Form(24, 9, is_full=True)


@dataclass(frozen=True)
class LegendEntry:
    """The entry of a line, or of the repeats that share its style."""

    letter: str
    label: str
    value: str
    brief: str  # the value with fewer digits
    bad: str
    role: str
    full: str = ""  # the value with more digits, for a cursor; for several lines, with their owners


# ---- the entries


def letter(style: int) -> str:
    """Return the letter that distinguishes a line without its colour: A to Z, then a to z."""
    return ascii_letters[(style + 26) % 52]


def make_entries(
    lines: Sequence[Line],
    cursor: float | None,
    unit: str,
    *,
    is_timed: bool,
    is_log_x: bool = False,
    gap_reason: str = "",
) -> list[LegendEntry]:
    """Return an entry for each style, with the value at the cursor, or else the last value.

    The value of several lines is their range. `gap_reason` is the reason why a value could not be
    read.
    """
    entries = []
    for style, group in group_by_style(lines).items():
        brief, value, full = _describe_values(group, cursor, unit, gap_reason)
        entry = LegendEntry(
            letter(style),
            group[0].label,
            value,
            brief,
            _describe_bad(group, is_timed=is_timed, is_log_x=is_log_x),
            arm_role(style),
            full,
        )
        entries.append(entry)
    return entries


def _describe_values(
    group: list[Line], cursor: float | None, unit: str, gap_reason: str
) -> tuple[str, str, str]:
    """Return a brief value, a usual one, and a full one; the last is empty if it adds nothing."""
    values = []
    owners = []
    for line in group:
        for value in _find_values(line, cursor):
            values.append(value)
            owners.append(line.owner)
    if not values and cursor is not None:
        full = ""
        if gap_reason and any(is_in_gap(line, cursor) for line in group):
            full = f"n/a: {gap_reason}"
        return "n/a", "n/a", full
    brief = extent(values, unit, 3)
    usual = extent(values, unit, 4)
    if len(set(owners)) < 2:
        owners = []  # a single owner needs no name
        if cursor is None:
            return brief, usual, ""
    digits = 4 if cursor is None else 6
    full = extent(values, unit, digits, owners)
    if full == usual:
        full = ""
    return brief, usual, full


def _find_values(line: Line, cursor: float | None) -> list[float]:
    """Return the least and the greatest value at the cursor; without one, the last value."""
    if cursor is None:
        return last_values([line])
    reading = reading_at(line, cursor)
    if reading is None:
        return []
    return [reading.low, reading.high]


def _describe_bad(group: list[Line], *, is_timed: bool, is_log_x: bool) -> str:
    """Return the kinds of NaN and Inf, their count, and their first x: `NaN ×3 from 12`.

    Empty if the lines have only numbers.
    """
    bad_lines = [line for line in group if len(line.bad_xs)]
    if not bad_lines:
        return ""
    values = np.concatenate([line.bad_values for line in bad_lines])
    kinds = []
    if np.isnan(values).any():
        kinds.append("NaN")
    if (values == math.inf).any():
        kinds.append("Inf")
    if (values == -math.inf).any():
        kinds.append("-Inf")
    count = sum(line.bad_count for line in bad_lines)
    first = min(float(line.bad_xs[0]) for line in bad_lines)
    if is_timed:
        place = clock(first, 0.1)
    else:
        place = f"{step_at(first, is_log_x=is_log_x):.10g}"
    return f"{'/'.join(kinds)} ×{count} from {place}"


# ---- the layout


class _PlacedEntry(NamedTuple):
    parts: list[Run]
    x: int
    y: int


class _LegendLayout(NamedTuple):
    """A legend as it would be written."""

    head: str
    entries: list[_PlacedEntry]  # those that have room
    rows: int
    is_complete: bool  # whether every entry has room, and no two names look alike


def put_legend(
    canvas: Canvas,
    title: str,
    entries: Sequence[LegendEntry],
    notes: Sequence[str],
    symbols: Symbols,
) -> int:
    """Write the head of a chart and return how many rows it took, 0 without a title and entries.

    It takes as many rows as it needs, at most a quarter of the height. Where that is too little,
    entries get narrower as long as their names differ. Where that is not enough, they may take a
    third, and at last all rows but a few of the plot. Entries without room are left out, and their
    number is written.
    """
    title_parts = [part for part in (show(title, 200), *notes) if part]
    layout = _choose_layout(entries, title_parts, canvas)
    canvas.put(0, 0, to_ascii(layout.head, symbols), "title")
    for parts, x, y in layout.entries:
        for text, role in parts:
            x = canvas.put(x, y, to_ascii(text, symbols), role)
    left_out = len(entries) - len(layout.entries)
    if left_out:
        canvas.put(canvas.width - 4, layout.rows - 1, f" +{left_out}".rjust(4), "muted")
    if not layout.head and not entries:
        return 0
    return layout.rows


def _choose_layout(
    entries: Sequence[LegendEntry], title_parts: Sequence[str], canvas: Canvas
) -> _LegendLayout:
    """Return the first complete layout; if there is none, the one that has most entries."""
    has_full_values = any(entry.full for entry in entries)
    layouts = []
    for rows, form in _list_attempts(canvas.height, has_full_values=has_full_values):
        layout = _lay_out(entries, title_parts, rows, form, canvas.width)
        if layout.is_complete:
            return layout
        layouts.append(layout)
    return max(layouts, key=lambda layout: len(layout.entries))


def _list_attempts(height: int, *, has_full_values: bool) -> list[tuple[int, _Form]]:
    """Return how many rows and which form to try, in order. A tall chart takes more rows early."""
    few = max(1, height // 4)
    many = max(1, height // 3)
    all_but_plot = max(many, height - _LEAST_PLOT)
    forms = _FORMS[:3] if height >= _TALL else _FORMS
    attempts = []
    if has_full_values:
        attempts.append((few, _FULL_FORM))
    for form in forms[:-1]:
        attempts.append((few, form))
    for form in forms:
        attempts.append((many, form))
    for form in _FORMS:
        attempts.append((all_but_plot, form))
    return attempts


def _lay_out(
    entries: Sequence[LegendEntry], title_parts: Sequence[str], rows: int, form: _Form, width: int
) -> _LegendLayout:
    """Return the layout of a legend in that many rows, with entries of that form.

    Entries without room are left out, and the last row then keeps columns for their number. The
    layout is complete if none is left out and all different names still look different.
    """
    head_parts = list(title_parts)
    unit = ""
    if form.has_unit_once:
        unit = _most_frequent_unit(entries)
    if unit:
        head_parts.append(unit)
    head = fit(", ".join(head_parts), width)
    names = _shorten_names(tuple(entry.label for entry in entries), form.name_columns)
    placed = []
    ends = []
    x = count_cells(head)
    y = 0
    for entry, name in zip(entries, names, strict=True):
        parts = _make_parts(entry, name, form, unit)
        columns = sum(count_cells(text) for text, _ in parts)
        if x:
            x += _GAP
            if x + columns > width:
                x = 0
                y += 1
        if y == rows:  # the remaining entries have no room, however many there are
            break
        placed.append(_PlacedEntry(parts, x, y))
        x += columns
        ends.append(x)
    is_cut = y == rows
    limit = width
    if is_cut:
        limit -= 5  # columns for how many entries are left out
    fitting = []
    for placed_entry, end in zip(placed, ends, strict=True):
        if placed_entry.y < rows - 1 or end <= limit:
            fitting.append(placed_entry)
    # An entry that is wider than the chart begins its row all the same.
    has_room = not is_cut and all(end <= width for end in ends)
    are_names_distinct = len(set(names)) == len({entry.label for entry in entries})
    is_complete = has_room and are_names_distinct
    return _LegendLayout(head, fitting, min(y + 1, rows), is_complete)


def _most_frequent_unit(entries: Sequence[LegendEntry]) -> str:
    """Return the unit that most values have. A range of two values keeps its own units."""
    units: Counter[str] = Counter()
    for entry in entries:
        if ".." not in entry.brief:
            _, _, unit = entry.brief.partition(" ")
            units[unit] += 1
    return max(units, key=lambda unit: units[unit], default="")


@lru_cache(32)
def _shorten_names(labels: tuple[str, ...], width: int) -> list[str]:
    """Return labels of at most that width, by the method that keeps most of them apart.

    Wide labels are cut in the middle if that keeps them apart. Otherwise they lose their first
    word, are cut at the end, or are cut in the middle.
    """
    distinct = distinct_labels(labels, width)
    cut_in_middle = [fit(distinct[label], width) for label in labels]
    if width >= _LEAST_CUT_IN_MIDDLE and len(set(cut_in_middle)) == len(set(labels)):
        return cut_in_middle
    cut_at_end = [fit(label, width) for label in labels]
    if cut_at_end == list(labels):
        return cut_at_end
    without_first_word = []
    for label in labels:
        _, _, rest = label.partition(" ")
        without_first_word.append(fit(rest or label, width))
    methods = [without_first_word, cut_at_end, cut_in_middle]
    return max(methods, key=lambda names: len(set(names)))


def _make_parts(entry: LegendEntry, name: str, form: _Form, unit: str) -> list[Run]:
    """Return the parts of an entry with their roles. `unit` is in the head and left out here."""
    if form.is_full and entry.full:
        value = entry.full
    elif form.value_columns:
        value = entry.value
    elif unit and ".." not in entry.brief:
        value = entry.brief.removesuffix(f" {unit}")
    else:
        value = entry.brief
    bad = entry.bad
    if form.is_bad_brief:
        bad, _, _ = bad.partition(" from")
    parts = [
        (f"{entry.letter} {name}".strip() + " ", entry.role),
        (value.ljust(form.value_columns), "value"),
        (f" {bad}", "bad"),
    ]
    return [(text, role) for text, role in parts if text.strip()]
