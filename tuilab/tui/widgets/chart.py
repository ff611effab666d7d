"""The line chart widget: draws curves in a view, and finds the spot of a key or a click."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from textual import events
from textual.message import Message

from tuilab.drawings.linechart import Guide, LineChart, draw, x_at, x_range
from tuilab.drawings.lines import ArrayCache, Line, lines_of, next_bad, next_point, smooth, step_at
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series, can_be_log_x, is_log_x, is_log_y, wants_log_y
from tuilab.tui.state.other_runs.overlays import OverlaidCurve
from tuilab.tui.state.view import Spot, View, Window
from tuilab.tui.widgets.drawing import Drawing

_MIN_SHARE = 1e-4  # of the x axis: a zoom shows no less
_AXIS_COLUMNS = 10  # columns that the labels of the y axis take, about


class _KeyedPoints(NamedTuple):
    """The points of a series, once as keys and once as the values that belong to them.

    The keys are steps and the values times, or the other way round. `bad` are the pairs of points
    with NaN or Inf.
    """

    keys: Sequence[float]
    values: Sequence[float]
    bad: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """The data of a chart: series, their names, and facts about the axes.

    Series of one name look alike. The place of a name in `order` chooses its style.
    """

    series: tuple[Series, ...] = ()
    names: tuple[str, ...] = ()  # of each series; without names, the arms are used
    order: tuple[str, ...] = ()
    title: str = ""
    unit: str = ""
    axes: AxesNamed | None = None  # the axes as the scenario named them
    starts: tuple[int, ...] = ()  # the moment at which the seconds of each series begin, or 0
    has_steps: bool = True  # without steps, the x axis is always time
    x_end: float | None = None  # the last step that is expected
    is_over: bool = False
    guides: tuple[Guide, ...] = ()
    empty: str = "no points yet"  # the reason why there are no points
    owners: tuple[str, ...] = ()  # of each series, to tell series of one name apart
    gap_reason: str = ""  # the reason why lines are broken
    overlays: tuple[OverlaidCurve, ...] = ()  # dimmed curves behind; the legend has their labels

    def t_at(self, x: float, *, is_timed: bool, is_log_x: bool) -> int | None:
        """Return the moment of a place on the x axis, in nanoseconds as in the records.

        On an axis of steps, return that of the nearest point, or None without points.
        """
        if is_timed:
            return round(x * 1e9) + self._start_t
        points = []
        for series in self.series:
            bad = [(point.step, point.t) for point in series.bad]
            points.append(_KeyedPoints(series.steps, series.times, bad))
        # Steps may not be sorted: a training may count them from 0 again.
        t = _value_near(step_at(x, is_log_x=is_log_x), points, is_sorted=False)
        if t is None:
            return None
        return int(t)

    def x_at(self, t: int, *, is_timed: bool, is_log_x: bool) -> float | None:
        """Return the place of a moment on the x axis; None if it has no place there."""
        if is_timed:
            return (t - self._start_t) / 1e9
        points = []
        for series in self.series:
            bad = [(point.t, point.step) for point in series.bad]
            points.append(_KeyedPoints(series.times, series.steps, bad))
        step = _value_near(t, points)
        if step is None or not is_log_x:
            return step
        if step > 0:
            return math.log10(step)
        return None

    @property
    def _start_t(self) -> int:
        return self.starts[0] if self.starts else 0


class Chart(Drawing):
    """A line chart. It is drawn again only if its data, its view or its size changed."""

    class Clicked(Message):
        """The user clicked a spot, where the cursor should go."""

        def __init__(self, chart: "Chart", spot: Spot) -> None:
            super().__init__()
            self.chart = chart
            self.spot = spot

    def __init__(
        self, *, name: str = "", id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._curves = Curves()
        self._view = View()
        # The lines in front, and the raw lines behind them if they are smoothed.
        self._lines: tuple[tuple[Line, ...], tuple[Line, ...]] = (), ()
        self._lines_key: object = None
        self._array_cache: ArrayCache = {}  # of the lines; they are extended as series grow
        self._overlaid: tuple[Line, ...] = ()  # the lines of other runs
        self._overlaid_key: object = None

    def show_curves(self, curves: Curves, view: View) -> None:
        """Show curves as a view shows them."""
        self._curves = curves
        self._view = view
        # The fields of a view that do not change this chart are left out of its version.
        own_view = replace(view, is_timed=self.is_timed, windows={}, words="", page=0)
        version = (
            self._series_key(),
            self._overlays_key(),
            replace(curves, series=(), overlays=()),
            own_view,
            self._window,
        )
        self.show(self._paint_chart, version)

    # ---- axes

    @property
    def key(self) -> str:
        """The name of the chart among the charts of a screen."""
        return self.name or ""

    @property
    def has_steps(self) -> bool:
        """Whether the x axis can be steps."""
        return self._curves.has_steps

    @property
    def is_timed(self) -> bool:
        """Whether the x axis is seconds instead of steps."""
        return self._view.is_timed or not self._curves.has_steps

    @property
    def is_log(self) -> bool:
        """Whether the y axis is logarithmic: as the user chose, or as the data suggests."""
        if self._view.is_log is not None:
            return self._view.is_log
        curves = self._curves
        if curves.axes:
            return is_log_y(curves.axes, curves.series)
        return wants_log_y(curves.series, curves.unit)

    @property
    def is_log_x(self) -> bool:
        """Whether the x axis is logarithmic: as the user chose, or as the scenario says."""
        if self.is_timed:
            return False
        curves = self._curves
        if self._view.is_log_x is not None:
            return self._view.is_log_x and can_be_log_x(curves.series)
        return curves.axes is not None and is_log_x(curves.axes, curves.series)

    # ---- cursor and zoom

    @property
    def cursor(self) -> float | None:
        """The place of the cursor on the x axis; None without a cursor."""
        t = self._view.cursor_t
        if t is None:
            return None
        return self._x_at(t)

    def zoomed(self, factor: float) -> Window | None:
        """Return the window with `factor` times as much of the x axis.

        The cursor keeps its place in it; without a cursor, the middle does.
        """
        low, high = self._x_range()
        least, most = self._whole_range()
        whole_span = most - least
        span = min(max((high - low) * factor, whole_span * _MIN_SHARE), whole_span)
        fixed_x = self.cursor  # the place that stays where it is
        if fixed_x is None:
            fixed_x = (low + high) / 2
        share = 0.5
        if high > low:
            share = min(max((fixed_x - low) / (high - low), 0.0), 1.0)
        return self._make_window(fixed_x - share * span, span)

    def spot_beside(self, columns: int) -> Spot | None:
        """Return the nearest point some columns from the cursor; without a cursor, the last."""
        low, high = self._x_range()
        cursor = self.cursor
        if cursor is None:
            return self._spot(next_point(self._raw_lines, None, high))
        chart_columns = max(self.content_size.width - _AXIS_COLUMNS, 10)
        column_width = (high - low) / chart_columns  # on the x axis
        target = cursor + columns * column_width
        return self._spot(next_point(self._raw_lines, cursor, target))

    def window_with(self, t: int) -> Window | None:
        """Return a window that shows a moment: the current one, or one of its width around it."""
        x = self._x_at(t)
        if x is None:
            return self._window
        return self._window_with(x)

    def next_bad_spot(self) -> Spot | None:
        """Return the next NaN or Inf; after the last, the first. None if there is none."""
        start = self.cursor
        if start is None:
            start = -math.inf
        return self._spot(next_bad(self._raw_lines, start))

    def on_click(self, event: events.Click) -> None:
        """Post the spot of the point nearest to the click; nothing without a point."""
        place = event.get_content_offset(self)
        if place is None:
            return
        width, height = self.content_size
        x = x_at(self._line_chart(), width, height, place.x, self.symbols)
        if x is None:
            return
        spot = self._spot(next_point(self._raw_lines, None, x))
        if spot:
            self.post_message(self.Clicked(self, spot))

    def _x_at(self, t: int) -> float | None:
        return self._curves.x_at(t, is_timed=self.is_timed, is_log_x=self.is_log_x)

    def _spot(self, x: float | None) -> Spot | None:
        """Return the spot of a place on the x axis; None if no moment belongs to it."""
        if x is None:
            return None
        t = self._curves.t_at(x, is_timed=self.is_timed, is_log_x=self.is_log_x)
        if t is None:
            return None
        return Spot(t, self._window_with(x))

    def _window_with(self, x: float) -> Window | None:
        """Return the current window if it shows a place, else one of the same width around it."""
        low, high = self._x_range()
        if self._window is None or low <= x <= high:
            return self._window
        return self._make_window(x - (high - low) / 2, high - low)

    def _make_window(self, low: float, span: float) -> Window | None:
        """Return a window that lies within the x axis; None if it is the whole axis."""
        least, most = self._whole_range()
        if not 0 < span < most - least or not math.isfinite(low):
            return None
        low = min(max(low, least), most - span)
        return low, low + span

    @property
    def _window(self) -> Window | None:
        return self._view.windows.get(self.key)

    def _x_range(self) -> Window:
        return x_range(self._line_chart())

    def _whole_range(self) -> Window:
        return x_range(replace(self._line_chart(), window=None))

    # ---- lines

    @property
    def _raw_lines(self) -> tuple[Line, ...]:
        """The lines without smoothing."""
        lines, raw_lines = self._current_lines()
        return raw_lines or lines

    def _series_key(self) -> tuple[tuple[int, int], ...]:
        return tuple((id(series), series.count) for series in self._curves.series)

    def _overlays_key(self) -> tuple[tuple[str, int, int], ...]:
        """Return what identifies the overlaid curves and how much of them was read."""
        key = []
        for curve in self._curves.overlays:
            key.append((curve.label, id(curve.series), curve.series.count))
        return tuple(key)

    def _current_lines(self) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
        """Return the lines in front, and the raw lines behind them if they are smoothed."""
        curves = self._curves
        view = self._view
        key = (
            self._series_key(),
            curves.names,
            curves.order,
            curves.starts,
            self.is_timed,
            self.is_log_x,
            view.is_smooth,
            view.is_smoother,
        )
        if key == self._lines_key:
            return self._lines
        lines = lines_of(
            curves.series,
            curves.names,
            is_timed=self.is_timed,
            is_log_x=self.is_log_x,
            starts=curves.starts,
            order=curves.order,
            owners=curves.owners,
            array_cache=self._array_cache,
        )
        if view.is_smooth:
            weight = _smoothing_weight(view)
            smoothed_lines = tuple(smooth(line, weight) for line in lines)
            self._lines = smoothed_lines, lines
        else:
            self._lines = lines, ()
        self._lines_key = key
        return self._lines

    def overlaid_lines(self) -> tuple[Line, ...]:
        """Return the lines of other runs, each in the style of its arm, smoothed as the others."""
        curves = self._curves
        if not curves.overlays:
            return ()
        view = self._view
        key = (
            self._overlays_key(),
            curves.order,
            self.is_timed,
            self.is_log_x,
            view.is_smooth,
            view.is_smoother,
        )
        if key == self._overlaid_key:
            return self._overlaid
        # The place of an arm in this list chooses its style.
        arms = list(curves.order)
        if not arms:
            arms = list(dict.fromkeys(series.arm for series in curves.series))
        for curve in curves.overlays:
            if curve.series.arm not in arms:
                arms.append(curve.series.arm)
        lines = []
        for curve in curves.overlays:
            [line] = lines_of(
                [curve.series],
                [curve.label],
                starts=[curve.start_t],
                is_timed=self.is_timed,
                is_log_x=self.is_log_x,
            )
            line = replace(line, style=arms.index(curve.series.arm))
            if view.is_smooth:
                line = smooth(line, _smoothing_weight(view))
            lines.append(line)
        self._overlaid = tuple(lines)
        self._overlaid_key = key
        return self._overlaid

    # ---- drawing

    def _line_chart(self) -> LineChart:
        """Return what is drawn: the current lines with the axes, the window and the cursor."""
        curves = self._curves
        lines, raw_lines = self._current_lines()
        return LineChart(
            lines,
            raw_lines,
            title=curves.title,
            unit=curves.unit,
            is_timed=self.is_timed,
            is_log=self.is_log,
            is_log_x=self.is_log_x,
            x_name=self._x_name,
            is_over=curves.is_over,
            x_end=self._x_end,
            window=self._window,
            cursor=self.cursor,
            guides=curves.guides,
            empty=curves.empty,
            gap_reason=curves.gap_reason,
            overlays=self.overlaid_lines(),
        )

    @property
    def _x_name(self) -> str:
        """The name of the x axis: `time`, the name that the scenario gave it, or `step`."""
        if self.is_timed:
            return "time"
        axes = self._curves.axes
        if axes is not None and axes.x:
            return axes.x
        return "step"

    @property
    def _x_end(self) -> float | None:
        """The place of the last step that is expected; None if it has no place on the x axis."""
        end = self._curves.x_end
        if end is None or self.is_timed:
            return None
        if not self.is_log_x:
            return end
        if end > 0:
            return math.log10(end)
        return None

    def _paint_chart(self, width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
        return draw(self._line_chart(), width, height, symbols)


def _smoothing_weight(view: View) -> float:
    """Return how much of the average a smoothed point takes over from the point before it."""
    return 0.98 if view.is_smoother else 0.9


def _value_near(
    key: float, points: Sequence[_KeyedPoints], *, is_sorted: bool = True
) -> float | None:
    """Return the value of the key nearest to `key`; None without points.

    If the keys are not sorted, the bisection may miss the nearest one. Unless it finds `key`
    itself, all keys are compared then.
    """
    candidates: list[tuple[float, float]] = []  # the distance of a key, and its value
    for keys, values, bad in points:
        after = bisect_right(keys, key)
        for i in (after - 1, after):
            if 0 <= i < len(keys):
                candidates.append((abs(keys[i] - key), values[i]))
        for bad_key, value in bad:
            candidates.append((abs(bad_key - key), value))
    if not candidates:
        return None
    distance, value = min(candidates)
    if is_sorted or not distance:
        return value
    for keys, values, _ in points:
        for any_key, any_value in zip(keys, values, strict=True):
            candidates.append((abs(any_key - key), any_value))
    _, value = min(candidates)
    return value
