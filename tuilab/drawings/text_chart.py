"""Charts as plain text: the only file that uses plotext.

plotext gets what it can draw: finite numbers, at most two points a column, our own ticks and our own logarithm.
"""

import math
import sys
import textwrap
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.units import labels, log_label
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series, ends_of, is_log_x, is_log_y
from tuilab.text.display import distinct_labels, shorten, show
from tuilab.text.words import scale_of, unit_of

_MARKERS = ("braille", "hd", "•", "×", "+", "o")
_PLAIN_MARKERS = ("*", "o", "+", "x", "#", "@")
_LEAST_SPAN, _GREATEST_SPAN = 1e-307, 1e300
_LOCK = threading.Lock()  # plotext draws on one global figure


@dataclass(frozen=True)
class _Scale:
    """From a number to where it stands on an axis, and the ticks there."""

    is_log: bool
    unit: str = ""
    is_whole: bool = False

    def __call__(self, value: float) -> float:
        return math.log10(value) if self.is_log else float(value)

    def can_show(self, value: float) -> bool:
        return value > 0 or not self.is_log

    def can_span(self, low: float, high: float) -> bool:
        """Say whether an axis can reach from one number to another: the arithmetic of ticks ends before numbers do."""
        return self.is_log or low == high or _LEAST_SPAN < high - low < _GREATEST_SPAN

    def ticks(self, low: float, high: float) -> tuple[list[float], list[str]]:
        """Return where ticks stand, and what they say."""
        ticks = _log_ticks(low, high) if self.is_log else _ticks_of(self.unit, low, high)
        if self.is_whole:
            ticks = [tick for tick in ticks if tick == int(tick)]
            return [*map(self, ticks)], [f"{int(tick)}" for tick in ticks]
        if self.is_log:
            return [*map(self, ticks)], [log_label(tick, self.unit) for tick in ticks]
        return [*map(self, ticks)], labels(ticks, ticks[-1] - ticks[-2:][0], self.unit)


def line_chart(
    lines: Sequence[Series], width: int, height: int, *, whole: Sequence[Series] = (), axes: AxesNamed | None = None,
    is_utf8: bool = True,
) -> str:  # fmt: skip
    """Return a chart of series that share a name, one marker an arm; empty when nothing can be drawn.

    `whole` is all that there is of the name, where `lines` are some of it: it tells whether an axis is logarithmic, as in the
    charts that draw all; `axes` is what the scenario said of them. Where a series has no number, a band below the chart has an
    n (NaN) or an i (Inf).
    """
    drawable = [line for line in lines if line.lows][: len(_MARKERS)]
    if not drawable:
        return ""
    axes = axes or AxesNamed(metric=drawable[0].name)
    steps = [
        step
        for line in lines
        for step in (*line.steps, line.last_step, *(bad.step for bad in line.bad))
    ]
    is_whole = all(step == int(step) for step in steps)
    x = _Scale(is_log_x(axes, whole or lines), is_whole=is_whole)
    y = _Scale(is_log_y(axes, whole or lines), unit_of(drawable[0].name))
    span = [step for step in steps if x.can_show(step)]
    ends = [end for end in ends_of(drawable) if y.can_show(end)]
    if (
        not ends
        or not span
        or not (y.can_span(min(ends), max(ends)) and x.can_span(min(span), max(span)))
    ):
        return ""
    reach = (min(span), max(span))
    markers = _MARKERS if is_utf8 else _PLAIN_MARKERS
    with _LOCK:
        text = _draw(drawable, (min(ends), max(ends)), reach, (x, y), markers, (width, height))
    rows = [row.rstrip() for row in text.splitlines()]
    if not rows:
        return ""  # plotext draws nothing where there are too few rows or columns
    rows = [
        *_legend(drawable, axes, markers, y.is_log, width),
        *rows,
        *_x_name(axes, x.is_log, max(map(len, rows))),
    ]
    rows += _bands(lines, reach, x, rows)
    return "\n".join(rows if is_utf8 else (row.translate(_ASCII) for row in rows))


def _draw(
    lines: Sequence[Series],
    heights: tuple[float, float],
    span: tuple[float, float],
    scales: tuple[_Scale, _Scale],
    markers: Sequence[str],
    size: tuple[int, int],
) -> str:
    import plotext

    x, y = scales
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(*size)
    for marker, line in zip(markers, lines, strict=False):
        points = [
            (px, py)
            for px, py in zip(*thin(line, max(size[0] - 10, 10)), strict=True)
            if x.can_show(px) and y.can_show(py)
        ]
        plotext.plot([x(px) for px, _ in points], [y(py) for _, py in points], marker=marker)
    plotext.yticks(*y.ticks(*heights))
    plotext.xticks(*x.ticks(*span))
    if x(span[0]) < x(span[1]):
        plotext.xlim(x(span[0]), x(span[1]))
    if y(heights[0]) < y(heights[1]):
        plotext.ylim(y(heights[0]), y(heights[1]))
    text: str = plotext.uncolorize(plotext.build())
    return text


def _bands(
    lines: Sequence[Series], span: tuple[float, float], x: _Scale, rows: list[str]
) -> list[str]:
    """Return a row under the chart for each series that has values which are no numbers, in the columns of the chart."""
    frame = next((row for row in rows if "┌" in row), "")
    left, columns = frame.find("┌") + 1, frame.rfind("┐") - frame.find("┌") - 1
    low, high = map(x, span)
    if columns < 10 or low == high:
        return []
    found = []
    per_unit = (columns - 1) / (high - low)
    for line in lines:
        shown = [bad for bad in line.bad if x.can_show(bad.step)]
        if not shown:
            continue
        row = [" "] * columns
        for bad in shown:
            end = bad.step + 1 if x.is_whole else bad.step  # a step reaches to the next
            first, after = (round((x(step) - low) * per_unit) for step in (bad.step, end))
            for column in range(first, min(max(after, first + 1), columns)):
                row[column] = "n" if math.isnan(bad.value) else "i"
        kinds = " and ".join(word for word, sign in (("NaN", "n"), ("Inf", "i")) if sign in row)
        found.append(f"{' ' * left}{''.join(row)}  {kinds} {shorten(line.arm, 30)}".rstrip())
    return found


def _x_name(axes: AxesNamed, is_log: bool, width: int) -> list[str]:
    """Return what is along x, below the right end of the axis."""
    from tuilab.drawings.picture import cell_codes, fit  # which loads numpy

    name = fit(f"{show(axes.x, 200) or 'step'} (log)" if is_log else show(axes.x, 200), width)
    return [f"{' ' * (width - len(cell_codes(name)))}{name}"] if name else []


def thin(line: Series, columns: int) -> tuple[list[float], list[float]]:
    """Return at most two points a column, the least and the greatest, so that no spike is lost."""
    per_column = max(1, math.ceil(len(line.steps) / columns))
    xs: list[float] = []
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


def _legend(
    lines: Sequence[Series], axes: AxesNamed, markers: Sequence[str], is_log: bool, width: int
) -> list[str]:
    """Return what is along y, or the name of the series and the marker of each arm, in as many rows as they need."""
    name = shorten(axes.y or lines[0].name, 60) + (" (log)" if is_log else "")
    shown = {"braille": "⠒", "hd": "▚"}
    names = distinct_labels([line.arm for line in lines], 30)
    arms = [
        f"{shown.get(marker, marker)}\xa0{names[line.arm]}"
        for line, marker in zip(lines, markers, strict=False)
        if line.arm
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
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step) + 1)] or [
        low,
        high,
    ]


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = (
        math.floor(math.log10(low)),
        min(math.ceil(math.log10(high)), sys.float_info.max_10_exp),
    )
    stride = max(1, (last - first) // 5)
    fine = (
        [m * 10.0**power for power in range(first - 1, last + 1) for m in (1, 2, 5)]
        if last - first <= 2
        else []
    )
    if shown := [tick for tick in fine if low <= tick <= high]:
        return shown
    return [
        10.0**power for power in range(first, last + 1, stride) if low <= 10.0**power <= high
    ] or [low, high]


_ASCII = str.maketrans(
    {
        "─": "-",
        "│": "|",
        "┌": "+",
        "┐": "+",
        "└": "+",
        "┘": "+",
        "├": "+",
        "┤": "+",
        "┬": "+",
        "┴": "+",
        "┼": "+",
    }
)
