"""A series in one row of a table, as columns of different height."""

import math
from collections.abc import Sequence
from itertools import pairwise

from tuilab.drawings.symbols import BRAILLE, Symbols
from tuilab.record.series import Series


def sparkline_of(series: Series, width: int, symbols: Symbols = BRAILLE) -> str:
    """Return the greatest value of each part of a series; a part with a NaN or Inf has a mark instead."""
    points = [(step, high) for step, high in zip(series.steps, series.highs, strict=True)]
    points += [(bad.step, bad.value) for bad in series.bad]
    return sparkline([value for _, value in sorted(points, key=lambda point: point[0])], width, symbols)


def sparkline(values: Sequence[float], width: int, symbols: Symbols = BRAILLE) -> str:
    """Return at most `width` characters, each the greatest of its values, between the least and the greatest of all."""
    count = min(len(values), max(width, 0))
    edges = [len(values) * column // max(count, 1) for column in range(count + 1)]
    parts = [_greatest(values[start:end]) for start, end in pairwise(edges)]
    finite = [part for part in parts if math.isfinite(part)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return "".join(_column(part, low, high, symbols) for part in parts)


def _greatest(values: Sequence[float]) -> float:
    return next((value for value in values if not math.isfinite(value)), max(values))


def _column(value: float, low: float, high: float, symbols: Symbols) -> str:
    if not math.isfinite(value):
        return symbols.nan if value != value else symbols.inf_up if value > 0 else symbols.inf_down
    span = high / 2 - low / 2
    share = (value / 2 - low / 2) / span if span > 0 else 0.5
    return symbols.columns[min(int(share * len(symbols.columns)), len(symbols.columns) - 1)]
