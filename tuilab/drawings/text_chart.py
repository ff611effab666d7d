"""Charts as plain text: the only file that uses plotext.

plotext gets what it can draw: finite numbers, at most two points a column, our own ticks and our own logarithm.
"""

import math
import textwrap
import threading
from collections.abc import Sequence

from tuilab.drawings.units import labels
from tuilab.record.series import Series, ends_of, wants_log
from tuilab.text import show
from tuilab.words import number, scale_of, unit_of

_MARKERS = ("braille", "hd", "•", "×", "+", "o")
_PLAIN_MARKERS = ("*", "o", "+", "x", "#", "@")
_LOCK = threading.Lock()  # plotext draws on one global figure


def line_chart(lines: Sequence[Series], width: int, height: int, *, whole: Sequence[Series] = (), is_utf8: bool = True) -> str:
    """Return a chart of series that share a name, one marker an arm; empty when nothing can be drawn.

    `whole` is all that there is of the name, where `lines` are some of it: it tells whether the axis is logarithmic, as in the
    charts that draw all. Where a series has no number, a band below the chart has an n (NaN) or an i (Inf).
    """
    drawable = [line for line in lines if line.lows][: len(_MARKERS)]
    ends = ends_of(drawable)
    if not ends or max(ends) - min(ends) > 1e300:  # the span itself overflows
        return ""
    unit = unit_of(drawable[0].name)
    is_log = wants_log(ends_of(whole or lines), unit)
    steps = [step for line in lines for step in (*line.steps[:1], line.last_step, *(bad.step for bad in line.bad))]
    span = (min(steps), max(steps))
    markers = _MARKERS if is_utf8 else _PLAIN_MARKERS
    with _LOCK:
        text = _draw(drawable, (min(ends), max(ends)), unit, span, is_log, markers, (width, height))
    rows = [row.rstrip() for row in text.splitlines()]
    rows = [*_legend(drawable, markers, is_log, width), *rows, *_bands(lines, span, rows)]
    return "\n".join(rows if is_utf8 else (row.translate(_ASCII) for row in rows))


def _draw(
    lines: Sequence[Series],
    heights: tuple[float, float],
    unit: str,
    span: tuple[int, int],
    is_log: bool,
    markers: Sequence[str],
    size: tuple[int, int],
) -> str:
    import plotext

    scale = math.log10 if is_log else float
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(*size)
    for marker, line in zip(markers, lines, strict=False):
        xs, ys = thin(line, max(size[0] - 10, 10))
        plotext.plot(xs, [scale(y) for y in ys], marker=marker)
    ticks = _log_ticks(*heights) if is_log else _ticks_of(unit, *heights)
    words = [number(tick, unit) for tick in ticks] if is_log else labels(ticks, ticks[-1] - ticks[-2:][0], unit)
    plotext.yticks([scale(tick) for tick in ticks], words)
    steps = [tick for tick in _ticks(*span) if tick == int(tick)]
    plotext.xticks(steps, [f"{int(tick)}" for tick in steps])
    if span[0] < span[1]:
        plotext.xlim(*span)
    text: str = plotext.uncolorize(plotext.build())
    return text


def _bands(lines: Sequence[Series], span: tuple[int, int], rows: list[str]) -> list[str]:
    """Return a row under the chart for each series that has values which are no numbers, in the columns of the chart."""
    frame = next((row for row in rows if "┌" in row), "")
    left, columns = frame.find("┌") + 1, frame.rfind("┐") - frame.find("┌") - 1
    if columns < 10 or span[0] == span[1]:
        return []
    found = []
    for line in lines:
        if not line.bad:
            continue
        cells = [" "] * columns
        per_step = (columns - 1) / (span[1] - span[0])
        for bad in line.bad:
            first, after = (round((step - span[0]) * per_step) for step in (bad.step, bad.step + 1))
            for column in range(first, min(max(after, first + 1), columns)):
                cells[column] = "n" if math.isnan(bad.value) else "i"
        kinds = " and ".join(word for word, sign in (("NaN", "n"), ("Inf", "i")) if sign in cells)
        found.append(f"{' ' * left}{''.join(cells)}  {kinds} {show(line.arm, 20)}".rstrip())
    return found


def thin(line: Series, columns: int) -> tuple[list[int], list[float]]:
    """Return at most two points a column, the least and the greatest, so that no spike is lost."""
    per_column = max(1, math.ceil(len(line.steps) / columns))
    xs: list[int] = []
    ys: list[float] = []
    for start in range(0, len(line.steps), per_column):
        lows = line.lows[start : start + per_column]
        highs = line.highs[start : start + per_column]
        low, high = min(lows), max(highs)
        is_rising = highs.index(high) >= lows.index(low)
        for value in dict.fromkeys((low, high) if is_rising else (high, low)):
            xs.append(line.steps[start])
            ys.append(value)
    return xs, ys


def _legend(lines: Sequence[Series], markers: Sequence[str], is_log: bool, width: int) -> list[str]:
    """Return the name of the series and the marker of each arm, in as many rows as they need."""
    name = show(lines[0].name, 40) + (" (log)" if is_log else "")
    shown = {"braille": "⠒", "hd": "▚"}
    arms = [
        f"{shown.get(marker, marker)}\xa0{show(line.arm, 30)}" for line, marker in zip(lines, markers, strict=False) if line.arm
    ]
    return [row.replace("\xa0", " ") for row in textwrap.wrap("  ".join([name, *arms]), width)]


def _ticks_of(unit: str, low: float, high: float) -> list[float]:
    """Return ticks that are round numbers in the unit that their values are told in."""
    divisor, _ = scale_of(max(abs(low), abs(high)), unit)
    return [divisor * tick for tick in _ticks(low / divisor, high / divisor)]


def _ticks(low: float, high: float) -> list[float]:
    if high == low:
        return [low]
    raw = (high - low) / 4
    step = 10 ** math.floor(math.log10(raw))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if m * step >= raw)
    first = math.ceil(low / step)
    return [round(k * step, 12) for k in range(first, math.floor(high / step) + 1)] or [low, high]


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, (last - first) // 5)
    return [10.0**power for power in range(first, last + 1, stride) if low <= 10.0**power <= high] or [low, high]


_ASCII = str.maketrans(
    {"─": "-", "│": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+"}
)
