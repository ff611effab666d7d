"""The line chart of a run: it is told what to show and how the user looks at it; what a key or a click means, it answers."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual import events
from textual.message import Message

from tuilab.drawings.linechart import Guide, LineChart, draw, x_at, x_range
from tuilab.drawings.lines import ArrayCache, Line, lines_of, next_bad, next_point, smooth, step_at
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series, can_be_log_x, is_log_x, is_log_y, wants_log_y
from tuilab.text.display import show
from tuilab.tui.state.other_runs.overlays import OverlaidCurve
from tuilab.tui.state.view import Spot, View, Window
from tuilab.tui.widgets.drawing import Drawing

_Points = Sequence[tuple[Sequence[float], Sequence[float], Sequence[tuple[float, float]]]]
_LEAST_SHARE = 1e-4  # of all x that a zoom shows


@dataclass(frozen=True)
class Curves:
    """What a chart shows: series, how they are called, and what is known about their axes.

    Series of one name look alike, and as their place in `order` has it.
    """

    series: tuple[Series, ...] = ()
    names: tuple[str, ...] = ()  # of each series, else its arm
    order: tuple[str, ...] = ()
    title: str = ""
    unit: str = ""
    axes: AxesNamed | None = None  # what the scenario said of them
    starts: tuple[int, ...] = ()  # where time begins for each series, else at 0
    has_steps: bool = True  # else it is shown along time, whatever the user wants
    x_end: float | None = None  # the last step that is expected
    is_over: bool = False
    guides: tuple[Guide, ...] = ()
    empty: str = "no points yet"  # the reason why there are none
    owners: tuple[str, ...] = ()  # whose each series is, where several share a name
    untold: str = ""  # why nothing could be told where lines are broken
    others: tuple[
        OverlaidCurve, ...
    ] = ()  # dim ones behind these; of the label of each the legend tells

    def t_at(self, x: float, *, is_timed: bool, is_log_x: bool) -> int | None:
        """Return the moment of a place on the axis, in nanoseconds as in the records."""
        if is_timed:
            return round(x * 1e9) + self._start_t
        columns = [
            (one.steps, one.times, [(bad.step, bad.t) for bad in one.bad]) for one in self.series
        ]
        t = _partner(
            step_at(x, is_log_x=is_log_x), columns, is_sorted=False
        )  # a training may count its steps from 0 again
        return None if t is None else int(t)

    def x_at(self, t: int, *, is_timed: bool, is_log_x: bool) -> float | None:
        """Return where a moment is on the axis; None where it has no place there."""
        if is_timed:
            return (t - self._start_t) / 1e9
        step = _partner(
            t,
            [(one.times, one.steps, [(bad.t, bad.step) for bad in one.bad]) for one in self.series],
        )
        if step is None or not is_log_x:
            return step
        return math.log10(step) if step > 0 else None

    @property
    def _start_t(self) -> int:
        return self.starts[0] if self.starts else 0


class Chart(Drawing):
    """One chart. It is drawn again only when a point came, the view of it changed, or its size did."""

    class Clicked(Message):
        """The user wants the cursor at a spot."""

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
        self._lines: tuple[tuple[Line, ...], tuple[Line, ...]] = (), ()
        self._lines_key: object = None
        self._known: ArrayCache = {}  # what the lines were made of last
        self._others: tuple[Line, ...] = ()
        self._others_key: object = None

    def show_curves(self, curves: Curves, view: View) -> None:
        """Show curves as the user looks at them."""
        self._curves, self._view = curves, view
        look = replace(view, is_timed=self.is_timed, windows={}, words="", page=0), self._window
        self.show(
            self._painted,
            (
                self._data_key(),
                self._others_data_key(),
                replace(curves, series=(), others=()),
                look,
            ),
        )

    @property
    def key(self) -> str:
        """Its name among the charts of a screen."""
        return self.name or ""

    @property
    def has_steps(self) -> bool:
        """Whether it can be shown along steps, too."""
        return self._curves.has_steps

    @property
    def is_timed(self) -> bool:
        """Whether it is shown along seconds instead of steps."""
        return self._view.is_timed or not self._curves.has_steps

    @property
    def is_log(self) -> bool:
        """Whether the axis is logarithmic: as the user said, or as the data suggests."""
        if self._view.is_log is not None:
            return self._view.is_log
        curves = self._curves
        return (
            is_log_y(curves.axes, curves.series)
            if curves.axes
            else wants_log_y(curves.series, curves.unit)
        )

    @property
    def is_log_x(self) -> bool:
        """Whether steps are along a logarithmic axis: as the user said, or as the scenario did."""
        curves, wanted = self._curves, self._view.is_log_x
        if self.is_timed:
            return False
        if wanted is not None:
            return wanted and can_be_log_x(curves.series)
        return curves.axes is not None and is_log_x(curves.axes, curves.series)

    @property
    def cursor(self) -> float | None:
        """Where the cursor is on the axis; None where there is none."""
        t = self._view.cursor_t
        return (
            None
            if t is None
            else self._curves.x_at(t, is_timed=self.is_timed, is_log_x=self.is_log_x)
        )

    def zoomed(self, factor: float) -> Window | None:
        """Return the window that shows `factor` times as much of x, around the cursor or else the middle."""
        low, high = self._x_range()
        least, most = self._whole_range()
        span = min(max((high - low) * factor, (most - least) * _LEAST_SHARE), most - least)
        middle = self.cursor if self.cursor is not None else (low + high) / 2
        share = min(max((middle - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        return self._fitted(middle - share * span, span)

    def spot_beside(self, columns: int) -> Spot | None:
        """Return the nearest point so many columns from the cursor; without a cursor, the last point."""
        low, high = self._x_range()
        at = self.cursor
        if at is None:
            return self._spot(next_point(self._values, None, high))
        column = (high - low) / max(self.content_size.width - 10, 10)
        return self._spot(next_point(self._values, at, at + columns * column))

    def window_with(self, t: int) -> Window | None:
        """Return the window that has a moment in view: the one that there is, or one that was moved there."""
        x = self._curves.x_at(t, is_timed=self.is_timed, is_log_x=self.is_log_x)
        return self._window if x is None else self._window_with(x)

    def next_bad_spot(self) -> Spot | None:
        """Return the next NaN or Inf, after the last the first; None when there is none."""
        return self._spot(next_bad(self._values, -math.inf if self.cursor is None else self.cursor))

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        wanted = (
            x_at(self._line_chart(), *self.content_size, place.x, self.symbols)
            if place is not None
            else None
        )
        if wanted is not None and (spot := self._spot(next_point(self._values, None, wanted))):
            self.post_message(self.Clicked(self, spot))

    def _spot(self, x: float | None) -> Spot | None:
        """Return the moment of a place, and the window that has it in view."""
        t = (
            None
            if x is None
            else self._curves.t_at(x, is_timed=self.is_timed, is_log_x=self.is_log_x)
        )
        if x is None or t is None:
            return None
        return Spot(t, self._window_with(x))

    def _window_with(self, x: float) -> Window | None:
        low, high = self._x_range()
        is_in_view = self._window is None or low <= x <= high
        return self._window if is_in_view else self._fitted(x - (high - low) / 2, high - low)

    def _fitted(self, low: float, span: float) -> Window | None:
        """Return a window within all x, None when it is all of them."""
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

    @property
    def _values(self) -> tuple[Line, ...]:
        """The lines as they were measured."""
        lines, behind = self._current_lines()
        return behind or lines

    def _data_key(self) -> tuple[tuple[int, int], ...]:
        return tuple((id(one), one.count) for one in self._curves.series)

    def _others_data_key(self) -> tuple[tuple[str, int, int], ...]:
        return tuple((one.label, id(one.series), one.series.count) for one in self._curves.others)

    def _current_lines(self) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
        """Return the lines, and what lies behind them where they are smoothed."""
        curves, is_smooth, weight = self._curves, self._view.is_smooth, _weight(self._view)
        key = (
            self._data_key(),
            curves.names,
            curves.order,
            curves.starts,
            self.is_timed,
            self.is_log_x,
            is_smooth,
            weight,
        )
        if key != self._lines_key:
            along = {"is_timed": self.is_timed, "is_log_x": self.is_log_x}
            lines = lines_of(
                curves.series,
                curves.names,
                **along,
                starts=curves.starts,
                order=curves.order,
                owners=curves.owners,
                array_cache=self._known,
            )
            self._lines = (
                (tuple(smooth(line, weight) for line in lines), lines) if is_smooth else (lines, ())
            )
            self._lines_key = key
        return self._lines

    def _other_lines(self) -> tuple[Line, ...]:
        """Return the lines behind, each with the look of the arm that it is of; smoothed where the others are."""
        curves, view = self._curves, self._view
        is_smooth, weight = view.is_smooth, _weight(view)
        key = (
            self._others_data_key(),
            curves.order,
            self.is_timed,
            self.is_log_x,
            is_smooth,
            weight,
        )
        if curves.others and key != self._others_key:
            arms = list(curves.order or dict.fromkeys(one.arm for one in curves.series))
            arms += [
                arm for other in curves.others if (arm := show(other.series.arm, 30)) not in arms
            ]
            found = []
            for other in curves.others:
                start = [other.start_t]
                [line] = lines_of(
                    [other.series],
                    [other.label],
                    starts=start,
                    is_timed=self.is_timed,
                    is_log_x=self.is_log_x,
                )
                line = replace(line, style=arms.index(show(other.series.arm, 30)))
                found.append(smooth(line, weight) if is_smooth else line)
            self._others, self._others_key = tuple(found), key
        return self._others if curves.others else ()

    def _line_chart(self) -> LineChart:
        curves = self._curves
        lines, behind = self._current_lines()
        return LineChart(
            lines,
            behind,
            title=curves.title,
            unit=curves.unit,
            is_timed=self.is_timed,
            is_log=self.is_log,
            is_log_x=self.is_log_x,
            x_name="time" if self.is_timed else (curves.axes and curves.axes.x) or "step",
            is_over=curves.is_over,
            x_end=self._x_end,
            window=self._window,
            cursor=self.cursor,
            guides=curves.guides,
            empty=curves.empty,
            gap_reason=curves.untold,
            overlays=self._other_lines(),
        )

    @property
    def _x_end(self) -> float | None:
        """Where the last step that is expected will stand."""
        end = self._curves.x_end
        if end is None or self.is_timed or not self.is_log_x:
            return None if self.is_timed else end
        return math.log10(end) if end > 0 else None

    def _painted(self, width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
        return draw(self._line_chart(), width, height, symbols)


def _weight(view: View) -> float:
    """Return how much of the average a smoothed point takes over from the one before."""
    return 0.98 if view.is_smoother else 0.9


def _partner(place: float, columns: _Points, *, is_sorted: bool = True) -> float | None:
    """Return what stands beside the number nearest to `place`: the time of a step, or the step of a time."""
    found: list[tuple[float, float]] = []
    for keys, values, bad in columns:
        at = bisect_right(keys, place)
        found += [(abs(keys[i] - place), values[i]) for i in (at - 1, at) if 0 <= i < len(keys)]
        found += [(abs(key - place), value) for key, value in bad]
    if not is_sorted and min(found, default=(0.0, 0))[0]:
        found += [
            (abs(key - place), value)
            for keys, values, _ in columns
            for key, value in zip(keys, values, strict=True)
        ]
    return min(found)[1] if found else None
