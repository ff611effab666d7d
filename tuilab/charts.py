"""Charts as plain text: the only file that uses plotext.

plotext gets what it can draw: finite numbers, at most two points a column, our own ticks and our own logarithm.
"""

import math
import threading
from collections.abc import Sequence

from tuilab.series import Series
from tuilab.text import show

_MARKERS = ("braille", "hd", "•", "×", "+", "o")
_PLAIN_MARKERS = ("*", "o", "+", "x", "#", "@")
_LOCK = threading.Lock()  # plotext draws on one global figure


def line_chart(lines: Sequence[Series], width: int, height: int, *, is_utf8: bool = True) -> str:
    """Return a chart of series that share a name, one marker an arm; empty when nothing can be drawn.

    The y axis is logarithmic when all values are positive and span more than a factor of 50.
    """
    drawable = [line for line in lines if line.lows]
    if not drawable:
        return ""
    low = min(line.low for line in drawable if line.low is not None)
    high = max(line.high for line in drawable if line.high is not None)
    is_log = low > 0 and high / low > 50
    if not is_log and high - low > 1e300:
        return ""  # the span itself overflows
    scale = math.log10 if is_log else float
    with _LOCK:
        import plotext

        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plotsize(width, height)
        markers = _MARKERS if is_utf8 else _PLAIN_MARKERS
        for number, line in enumerate(drawable[: len(markers)]):
            xs, ys = thin(line, max(width - 10, 10))
            plotext.plot(xs, [scale(y) for y in ys], marker=markers[number])
        ticks = _log_ticks(low, high) if is_log else _ticks(low, high)
        plotext.yticks([scale(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])
        _set_x_ticks(plotext, drawable)
        plotext.title(_legend(drawable, markers, is_log))
        text: str = plotext.uncolorize(plotext.build())
    lines_of_text = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines_of_text if is_utf8 else map(_to_ascii, lines_of_text))


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


def _legend(lines: Sequence[Series], markers: Sequence[str], is_log: bool) -> str:
    name = show(lines[0].name, 40) + (", log" if is_log else "")
    arms = [(show(line.arm, 20), marker) for line, marker in zip(lines, markers, strict=False) if line.arm]
    shown = {"braille": "⠒", "hd": "▚"}
    return name + "".join(f"  {shown.get(marker, marker)} {arm}" for arm, marker in arms)


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


def _set_x_ticks(plotext: object, lines: Sequence[Series]) -> None:
    low, high = min(line.steps[0] for line in lines), max(line.last_step for line in lines)
    ticks = [tick for tick in _ticks(low, high) if tick == int(tick)]
    plotext.xticks(ticks, [f"{int(tick)}" for tick in ticks])  # type: ignore[attr-defined]


_ASCII = str.maketrans(
    {"─": "-", "│": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+"}
)


def _to_ascii(line: str) -> str:
    return line.translate(_ASCII)
