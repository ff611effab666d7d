"""Charts as plain text: the only file that uses plotext.

plotext gets input that it can draw: finite numbers, at most two points a column, and ticks and
logarithms that are computed here.
"""

import math
import sys
import textwrap
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuilab.drawings.units import labels, log_label
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series, ends_of, is_log_x, is_log_y
from tuilab.text.display import distinct_labels, shorten, show
from tuilab.text.words import scale_of, unit_of

_MARKERS = ("braille", "hd", "•", "×", "+", "o")
_ASCII_MARKERS = ("*", "o", "+", "x", "#", "@")
_LEGEND_MARKERS = {"braille": "⠒", "hd": "▚"}  # others are shown as they are
_LEAST_SPAN, _GREATEST_SPAN = 1e-307, 1e300  # outside of these, the arithmetic of ticks ends
_FRAME_COLUMNS = 10  # about as many as the frame and the labels take
_FRAME_ROWS = 3  # two of the frame, and one of labels
_LEAST_BAND = 10  # columns
_NO_BREAK = "\xa0"  # between a marker and its arm
_LOCK = threading.Lock()  # plotext draws on one global figure


@dataclass(frozen=True)
class _TextAxis:
    """An axis from one number to another."""

    low: float
    high: float
    is_log: bool
    unit: str = ""
    is_whole: bool = False

    def place(self, value: float) -> float:
        """Return where a number is on the axis."""
        if self.is_log:
            return math.log10(value)
        return float(value)

    def can_show(self, value: float) -> bool:
        return value > 0 or not self.is_log

    def cell(self, place: float, cells: int) -> int:
        """Return in which of so many rows or columns plotext draws a place."""
        low = self.place(self.low)
        high = self.place(self.high)
        if low == high:
            return 0
        share = (place - low) / (high - low)
        return math.floor(round(0.5 + (cells - 1) * share, 8))

    def ticks(self) -> tuple[list[float], list[str]]:
        """Return the places of ticks, and their labels."""
        if self.is_log:
            ticks = _log_ticks(self.low, self.high)
        else:
            ticks = _linear_ticks(self.low, self.high, self.unit)
        if self.is_whole:
            ticks = [tick for tick in ticks if tick == int(tick)]
            texts = [f"{int(tick)}" for tick in ticks]
        elif self.is_log:
            texts = [log_label(tick, self.unit) for tick in ticks]
        else:
            step = 0.0
            if len(ticks) > 1:
                step = ticks[-1] - ticks[-2]
            texts = labels(ticks, step, self.unit)
        return [self.place(tick) for tick in ticks], texts


def line_chart(
    lines: Sequence[Series],
    width: int,
    height: int,
    *,
    whole: Sequence[Series] = (),
    axes: AxesNamed | None = None,
    is_utf8: bool = True,
) -> str:
    """Return a chart of series that share a name, one marker an arm; empty if nothing can be drawn.

    If `lines` are some of the series of the name, `whole` are all of them. They decide whether an
    axis is logarithmic, as in the charts that draw all. `axes` is what the scenario declared. A
    band below the chart has an n (NaN) or an i (Inf) where a series has no number.
    """
    drawable = [line for line in lines if line.lows]
    drawable = drawable[: len(_MARKERS)]
    if not drawable:
        return ""
    axes = axes or AxesNamed(metric=drawable[0].name)
    steps: list[float] = []
    for line in lines:
        steps += line.steps
        steps.append(line.last_step)
        steps += [bad.step for bad in line.bad]
    is_whole = all(step == int(step) for step in steps)
    all_series = whole or lines
    x = _make_axis(steps, is_log=is_log_x(axes, all_series), is_whole=is_whole)
    unit = unit_of(drawable[0].name)
    y = _make_axis(ends_of(drawable), is_log=is_log_y(axes, all_series), unit=unit)
    if x is None or y is None:
        return ""
    markers = _MARKERS if is_utf8 else _ASCII_MARKERS
    with _LOCK:
        plot = _draw(drawable, x, y, markers, width, height)
    plot_rows = [row.rstrip() for row in plot.splitlines()]
    if not plot_rows:
        return ""  # plotext draws nothing where there are too few rows or columns
    rows = _make_legend(drawable, axes, markers, width, is_log=y.is_log)
    rows += plot_rows
    x_name = _make_x_name(axes, max(map(len, plot_rows)), is_log=x.is_log)
    if x_name:
        rows.append(x_name)
    rows += _make_bands(lines, x, rows)
    text = "\n".join(rows)
    if not is_utf8:
        text = text.translate(_ASCII_FRAME)
    return text


def _make_axis(
    values: Iterable[float], *, is_log: bool, unit: str = "", is_whole: bool = False
) -> _TextAxis | None:
    """Return the axis of values; None if it can show none of them, or not their span."""
    shown = [value for value in values if value > 0 or not is_log]
    if not shown:
        return None
    axis = _TextAxis(min(shown), max(shown), is_log, unit, is_whole)
    if is_log:
        can_be_drawn = True
    elif axis.low == axis.high:  # plotext draws it from half of the value to 1.5 times the value
        can_be_drawn = abs(axis.low) < _GREATEST_SPAN
    else:
        can_be_drawn = _LEAST_SPAN < axis.high - axis.low < _GREATEST_SPAN
    if not can_be_drawn:
        return None
    return axis


def _draw(
    lines: Sequence[Series],
    x: _TextAxis,
    y: _TextAxis,
    markers: Sequence[str],
    width: int,
    height: int,
) -> str:
    """Return the plot as plotext draws it, without legend and colours.

    Call it with `_LOCK` held, because plotext has one global figure. A plot that is larger than the
    terminal is made smaller.
    """
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(width, height)
    for marker, line in zip(markers, lines, strict=False):
        xs = []
        ys = []
        steps, values = thin(line, max(width - _FRAME_COLUMNS, 10))
        for step, value in zip(steps, values, strict=True):
            if x.can_show(step) and y.can_show(value):
                xs.append(x.place(step))
                ys.append(y.place(value))
        plotext.plot(xs, ys, marker=marker)
    # plotext makes a chart that is larger than the terminal smaller, and needs a line below it.
    rows = min(height, plotext.terminal_height() - 1) - _FRAME_ROWS
    y_places, y_texts = _choose_y_ticks(y, rows)
    plotext.yticks(y_places, y_texts)
    label_columns = max(map(len, y_texts), default=0)
    columns = min(width, plotext.terminal_width()) - label_columns - 2
    plotext.xticks(*_choose_x_ticks(x, columns))
    left = x.place(x.low)
    right = x.place(x.high)
    if left < right:
        plotext.xlim(left, right)
    bottom = y.place(y.low)
    top = y.place(y.high)
    if bottom < top:
        plotext.ylim(bottom, top)
    text: str = plotext.uncolorize(plotext.build())
    return text


def thin(line: Series, columns: int) -> tuple[list[float], list[float]]:
    """Return at most two points a column, the least and the greatest, so that no spike is lost."""
    per_column = max(1, math.ceil(len(line.steps) / columns))
    xs: list[float] = []
    ys: list[float] = []
    for start in range(0, len(line.steps), per_column):
        lows = line.lows[start : start + per_column]
        highs = line.highs[start : start + per_column]
        low = min(lows)
        high = max(highs)
        ends = [low]
        if low != high:
            ends.append(high)
        if highs.index(high) < lows.index(low):  # the values fall
            ends.reverse()
        for value in ends:
            xs.append(line.steps[start])
            ys.append(value)
    return xs, ys


# ---- the rows around the plot


def _make_legend(
    lines: Sequence[Series],
    axes: AxesNamed,
    markers: Sequence[str],
    width: int,
    *,
    is_log: bool,
) -> list[str]:
    """Return the name of y and the marker of each arm, in as many rows as they need."""
    name = shorten(axes.y or lines[0].name, 60)
    if is_log:
        name = f"{name} (log)"
    entries = [name]
    arms = distinct_labels([line.arm for line in lines], 30)
    for line, marker in zip(lines, markers, strict=False):
        if line.arm:
            shown_marker = _LEGEND_MARKERS.get(marker, marker)
            entries.append(f"{shown_marker}{_NO_BREAK}{arms[line.arm]}")
    rows = textwrap.wrap("  ".join(entries), width)
    return [row.replace(_NO_BREAK, " ") for row in rows]


def _make_x_name(axes: AxesNamed, width: int, *, is_log: bool) -> str:
    """Return the name of x, aligned with the right end of the axis; empty if it has none."""
    from tuilab.drawings.picture import count_cells, fit  # imported here because it loads numpy

    name = show(axes.x, 200)
    if is_log:
        name = f"{name or 'step'} (log)"
    name = fit(name, width)
    if not name:
        return ""
    return " " * (width - count_cells(name)) + name


def _make_bands(lines: Sequence[Series], x: _TextAxis, rows: list[str]) -> list[str]:
    """Return a row for each series with NaN or Inf, to be put below the columns of the chart.

    `rows` are those of the chart, whose frame tells the columns. There are no bands if the frame is
    too narrow or x has a single value.
    """
    frame = ""
    for row in rows:
        if "┌" in row:
            frame = row
            break
    left = frame.find("┌") + 1
    right = frame.rfind("┐")
    columns = right - left
    low = x.place(x.low)
    high = x.place(x.high)
    if columns < _LEAST_BAND or low == high:
        return []
    columns_per_unit = (columns - 1) / (high - low)
    bands = []
    for line in lines:
        bad_points = [bad for bad in line.bad if x.can_show(bad.step)]
        if not bad_points:
            continue
        band = [" "] * columns
        for bad in bad_points:
            end = bad.step
            if x.is_whole:
                end += 1  # a whole step reaches to the next one
            first = round((x.place(bad.step) - low) * columns_per_unit)
            after = round((x.place(end) - low) * columns_per_unit)
            for column in range(first, min(max(after, first + 1), columns)):
                band[column] = "n" if math.isnan(bad.value) else "i"
        kinds = []
        if "n" in band:
            kinds.append("NaN")
        if "i" in band:
            kinds.append("Inf")
        name = f"{' and '.join(kinds)} {shorten(line.arm, 30)}"
        bands.append(f"{' ' * left}{''.join(band)}  {name}".rstrip())
    return bands


# ---- ticks
#
# plotext keeps ticks in a set, whose order differs from process to process. If two labels wanted
# the same room, that order would decide which of them is drawn. So it gets no such ticks.


def _choose_y_ticks(axis: _TextAxis, rows: int) -> tuple[list[float], list[str]]:
    """Return the places and labels of ticks along y: of several in one row, the lowest."""
    places: list[float] = []
    texts: list[str] = []
    last_row = -1
    for place, text in zip(*axis.ticks(), strict=True):
        row = axis.cell(place, rows)
        if row > last_row:
            places.append(place)
            texts.append(text)
            last_row = row
    return places, texts


def _choose_x_ticks(axis: _TextAxis, columns: int) -> tuple[list[float], list[str]]:
    """Return the places and labels of ticks along x that have room, from the left.

    plotext moves a label away from labels and edges that are nearer than its length. So the ticks
    are so far apart that no label moves another one.
    """
    places: list[float] = []
    texts: list[str] = []
    free = 0
    for place, text in zip(*axis.ticks(), strict=True):
        column = axis.cell(place, columns)
        if not places or column - len(text) >= free:
            places.append(place)
            texts.append(text)
            free = column + len(text)
    return places, texts


def _linear_ticks(low: float, high: float, unit: str) -> list[float]:
    """Return ticks at numbers that are round in the unit in which they are shown."""
    divisor, _ = scale_of(max(abs(low), abs(high)), unit)
    return [divisor * tick for tick in _round_ticks(low / divisor, high / divisor)]


def _round_ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers from `low` to `high`, or else these two."""
    if high == low:
        return [low]
    least_step = (high - low) / 4
    power = 10 ** math.floor(math.log10(least_step))
    for factor in (1, 2, 2.5, 5, 10):
        step = factor * power
        if step >= least_step:
            break
    wholes = range(math.ceil(low / step), math.floor(high / step) + 1)
    ticks = [float(f"{whole * step:.12g}") for whole in wholes]
    return ticks or [low, high]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten from `low` to `high`, and 2 and 5 times those if there are few."""
    first = math.floor(math.log10(low))
    last = min(math.ceil(math.log10(high)), sys.float_info.max_10_exp)
    ticks = []
    if last - first <= 2:
        for power in range(first - 1, last + 1):
            ticks += [factor * 10.0**power for factor in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    if not ticks:
        stride = max(1, (last - first) // 5)
        ticks = [10.0**power for power in range(first, last + 1, stride)]
        ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks or [low, high]


_ASCII_FRAME = str.maketrans("─│┌┐└┘├┤┬┴┼", "-|+++++++++")
