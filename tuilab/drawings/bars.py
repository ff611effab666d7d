"""Bars from zero, one a row, and histograms, one column of rows a bin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuilab.drawings.axis import x_axis
from tuilab.drawings.picture import ARMS, Canvas, Picture, cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, plain
from tuilab.text import show
from tuilab.words import number

_NAME_SHARE = 3  # names take at most a third of the width


@dataclass(frozen=True)
class Bar:
    """One bar; an unknown value is NaN and is called n/a."""

    label: str
    value: float
    look: int = 0


def draw_bars(
    bars: Sequence[Bar], width: int, height: int, symbols: Symbols = BRAILLE, *, unit: str = "", full: float | None = None
) -> Picture:
    """Draw bars from 0 to `full`, which is else the greatest of them."""
    canvas = Canvas(width, height)
    finite = [bar.value for bar in bars if math.isfinite(bar.value)]
    full = full or max([0.0, *finite])
    texts = [plain("n/a" if bar.value != bar.value else number(bar.value, unit), symbols) for bar in bars]
    names = put_names(canvas, [(bar.label, bar.look) for bar in bars], symbols)
    room = width - names - max(map(len, texts), default=0) - 1
    for y, (bar, text) in enumerate(zip(bars, texts, strict=True)):
        share = 0.0 if bar.value != bar.value or full <= 0 else min(max(bar.value / full, 0.0), 1.0)
        canvas.put(names, y, symbols.bar * round(share * max(room, 0)), ARMS[bar.look % len(ARMS)])
        canvas.put(width - len(text), y, text, "value")
    return canvas.picture()


def put_names(canvas: Canvas, named: Sequence[tuple[str, int]], symbols: Symbols, stride: int = 1) -> int:
    """Write names at the left, `stride` rows apart, and return the column after all of them."""
    limit = canvas.width // _NAME_SHARE
    names = [plain(fit(show(name, 80), max(limit - 1, 1)), symbols) for name, _ in named]
    for y, (name, (_, look)) in enumerate(zip(names, named, strict=True)):
        canvas.put(0, stride * y, name, ARMS[look % len(ARMS)])
    return max((len(cells(name)) for name in names), default=0) + 1


def draw_histogram(
    values: Sequence[float], width: int, height: int, symbols: Symbols = BRAILLE, *, unit: str = "", look: int = 0
) -> Picture:
    """Draw how often values fall into each column; what is no number is counted in words."""
    canvas = Canvas(width, height)
    every = np.array(values, np.float64)
    finite = every[np.isfinite(every)]
    rows = height - 2
    if len(finite) and rows > 0 and width > 0:
        axis = x_axis(float(finite.min()), float(finite.max()), unit or "value", max(width // 14, 2))
        columns = np.clip(axis.shares(finite) * width, 0, width - 1).astype(np.int64)
        _put_columns(canvas, np.bincount(columns, minlength=width), rows, symbols, ARMS[look % len(ARMS)])
        canvas.put(0, rows, symbols.horizontal * width, "axis")
        ends = [plain(number(end, unit), symbols) for end in (axis.low, axis.high)]
        canvas.put(0, rows + 1, ends[0], "label")
        canvas.put(width - len(ends[1]), rows + 1, ends[1], "label")
    else:
        canvas.put(0, 0, plain("no numbers yet", symbols), "muted")
    if bad := len(every) - len(finite):
        canvas.put(0, 0, plain(f"×{bad} NaN or Inf", symbols), "bad")
    return canvas.picture()


def _put_columns(
    canvas: Canvas, counts: np.ndarray[tuple[int], np.dtype[np.intp]], rows: int, symbols: Symbols, role: str
) -> None:
    steps = len(symbols.columns)
    for x, eighths in enumerate(np.ceil(counts / counts.max() * rows * steps).astype(int).tolist()):
        for row in range(rows):
            part = min(max(eighths - row * steps, 0), steps)
            if part:
                canvas.put(x, rows - 1 - row, symbols.columns[part - 1], role)
