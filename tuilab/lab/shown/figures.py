"""Bars, tables and lanes as records: small enough to be taken in at a glance, or refused with what would be."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tuilab.lab.given import LEAST, bare_number, checked, is_array, number, told, whole, words
from tuilab.record.events import SPAN_LIMIT, AxesNamed, BarsShown, Cell, SpanShown, TableShown
from tuilab.words import number as in_words

Axis = Literal["", "x", "y", "xy"]

_MOST_BARS, _MOST_ROWS, _MOST_COLUMNS, _MOST_LANES = 40, 40, 8, 32
_NAME_LIMIT, _CELL_LIMIT, _UNIT_LIMIT = 100, 400, 20  # characters


def axes_named(metric: str, x: str, y: str, log: Axis | None) -> AxesNamed:
    """Return the record of what the axes of a chart are."""
    if log is not None and (not isinstance(log, str) or log not in ("", "x", "y", "xy")):
        raise ValueError(f"log takes x, y, xy or an empty text, not {told(log)}")
    x, y = words("x", x, _NAME_LIMIT), words("y", y, _NAME_LIMIT)
    return checked(AxesNamed(metric=words("metric", metric), x=x, y=y, log=log))


def bars_shown(title: str, values: Mapping[str, Any], unit: str) -> BarsShown:
    """Return the record of named values as bars."""
    if not isinstance(values, Mapping):
        raise TypeError(f"values takes a dict of names and numbers, not {told(values)}")
    _refuse_many("values", len(values), _MOST_BARS, "bars")
    names = [words("a name in values", name, _NAME_LIMIT) for name in values]
    found = [number(f"values[{name!r}]", value) for name, value in zip(names, values.values(), strict=True)]
    unit = words("unit", unit, _UNIT_LIMIT)
    return checked(BarsShown(title=words("title", title, _NAME_LIMIT), names=names, values=found, unit=unit))


def table_shown(title: str, rows: Sequence[Sequence[Any]], head: Sequence[str]) -> TableShown:
    """Return the record of a table; its rows are as long as each other, and as the head if there is one."""
    if not _is_row(rows) or not all(map(_is_row, rows)):
        raise TypeError(f"rows takes a list of rows, each a list of texts and numbers, not {told(rows)}")
    _refuse_many("rows", len(rows), _MOST_ROWS, "rows")
    if not _is_row(head):
        raise TypeError(f"head takes a list of texts, not {told(head)}")
    widths = {len(row) for row in rows} | ({len(head)} if head else set())
    if len(widths) > 1:
        raise ValueError(
            f"rows takes rows as long as each other and as head, not rows of {' and '.join(map(str, sorted(widths)))}"
        )
    _refuse_many("rows" if rows else "head", max(widths, default=0), _MOST_COLUMNS, "columns")
    heads = [words("head", name, _NAME_LIMIT) for name in head]
    cells = [[_cell(value) for value in row] for row in rows]
    return checked(TableShown(title=words("title", title, _NAME_LIMIT), rows=cells, head=heads))


class Lanes:
    """Makes the records of spans, and counts them: of one process so many in a picture, on so many lanes."""

    def __init__(self) -> None:
        self._spans: Counter[str] = Counter()  # by arm
        self._lanes: dict[str, dict[str, None]] = {}

    def span_shown(self, lane: str, began: Any, ended: Any, name: str, arm: str, unit: str) -> SpanShown:
        """Return the record of a span."""
        lane, name = words("lane", lane, _NAME_LIMIT), words("name", name, _NAME_LIMIT)
        start, end = (_finite(*given) for given in (("began", began), ("ended", ended)))
        if end < start:
            raise ValueError(f"ended takes a number of at least began, which is {told(start)}, not {told(end)}")
        unit = words("unit", unit, _UNIT_LIMIT)
        record = checked(SpanShown(lane=lane, began=start, ended=end, name=name, arm=arm, unit=unit))
        self._count(arm, lane)
        return record

    def _count(self, arm: str, lane: str) -> None:
        lanes = self._lanes.setdefault(arm, {})
        if lane not in lanes and len(lanes) >= _MOST_LANES:
            raise ValueError(f"a picture has at most {_MOST_LANES} lanes; show fewer lanes, or give some of them another arm")
        if self._spans[arm] >= SPAN_LIMIT:
            raise ValueError(f"a picture has at most {SPAN_LIMIT} spans; show fewer spans, or give some of them another arm")
        lanes[lane] = None
        self._spans[arm] += 1


def _refuse_many(name: str, count: int, most: int, what: str) -> None:
    if count > most:
        raise ValueError(
            f"{name} takes at most {most} {what}, not {count}; show the most important {what}, and keep all with lab.artifact"
        )


def _is_row(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _cell(value: Any) -> Cell:
    """Return what stands in a table: texts and numbers; yes or no; a number that is not finite as a word."""
    if isinstance(value, str):
        return words("a cell of rows", value, _CELL_LIMIT)
    bare = bare_number(value) if is_array(value) else value
    if isinstance(bare, bool):
        return "yes" if bare else "no"
    if isinstance(bare, int):
        return whole("a cell of rows", bare, LEAST)
    found = number("a cell of rows", bare)
    return found if math.isfinite(found) else in_words(found)


def _finite(name: str, value: Any) -> float:
    found = number(name, value)
    if not math.isfinite(found):
        raise ValueError(f"{name} takes a finite number, not {told(value)}")
    return found
