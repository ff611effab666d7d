"""The line chart of a run: zoom, one cursor, log and linear, smoothing, steps or time; the screen has the keys."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from textual import events
from textual.message import Message

from tuilab.drawings.linechart import Guide, LineChart, draw, x_at, x_range
from tuilab.drawings.lines import Line, lines_of, next_bad, next_point, smooth
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.record.series import Series, ends_of, wants_log
from tuilab.tui.widgets.drawing import Drawing
from tuilab.words import unit_of

_LEAST_SHARE = 1e-4  # of all x that a zoom shows


@dataclass(frozen=True)
class Shown:
    """What a chart shows: series, how they are called, and what is known about their axes."""

    series: tuple[Series, ...] = ()
    names: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    title: str = ""
    unit: str = ""
    starts: tuple[int, ...] = ()  # of each series
    x_end: float | None = None
    is_over: bool = False
    guides: tuple[Guide, ...] = ()
    empty: str = "no points yet"


@dataclass(frozen=True)
class View:
    """How the user looks at it."""

    window: tuple[float, float] | None = None
    cursor: float | None = None
    is_log: bool | None = None  # None: as the data suggests
    is_smooth: bool = False
    is_timed: bool = False


class Chart(Drawing):
    """One chart. It is drawn again only when a point came, the view changed, or its size did."""

    class CursorMoved(Message):
        """The user moved the cursor to a moment, or took it away."""

        def __init__(self, chart: "Chart", t: int | None) -> None:
            super().__init__()
            self.chart = chart
            self.t = t  # CLOCK_MONOTONIC nanoseconds, as in the records

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._shown = Shown()
        self._view = View()
        self._lines: tuple[Line, ...] = ()
        self._lines_key: object = None

    # ---- what is shown

    def show_series(
        self,
        series: Sequence[Series],
        names: Sequence[str] = (),
        *,
        order: Sequence[str] = (),
        title: str = "",
        unit: str | None = None,
        start_t: int | Sequence[int] = 0,
        x_end: float | None = None,
        is_over: bool = False,
        guides: Sequence[Guide] = (),
        empty: str = "no points yet",
    ) -> None:
        """Show series, called by `names` or their arms; those of one name look alike, and as their place in `order` has it.

        `unit` is else told by the name of the first series; `start_t` is where time begins, for all or for each (the runs of a
        comparison), `x_end` the last step that is expected, `empty` the reason why there are no points.
        """
        if unit is None:
            unit = unit_of(series[0].name) if series else ""
        starts = (start_t,) * len(series) if isinstance(start_t, int) else tuple(start_t)
        self._shown = Shown(
            tuple(series), tuple(names), tuple(order), title, unit, starts, x_end, is_over, tuple(guides), empty
        )
        self._update()

    @property
    def view(self) -> View:
        """How the user looks at it, to give another chart with `look`."""
        return self._view

    def look(self, view: View) -> None:
        """Look at it in a given way."""
        self._change(view)

    # ---- zoom

    def zoom(self, factor: float) -> None:
        """Show `factor` times as much of x, around the cursor or else the middle."""
        low, high = self._x_range()
        least, most = self._whole_range()
        span = min(max((high - low) * factor, (most - least) * _LEAST_SHARE), most - least)
        middle = self._view.cursor if self._view.cursor is not None else (low + high) / 2
        share = min(max((middle - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        self._change(replace(self._view, window=self._fitted(middle - share * span, span)))

    def reset(self) -> None:
        """Show all of x again, without a cursor."""
        self._change(replace(self._view, window=None, cursor=None))

    # ---- how values are shown

    def toggle_log(self) -> None:
        """Change between a logarithmic and a linear axis."""
        self._change(replace(self._view, is_log=not self.is_log))

    def toggle_time_axis(self) -> None:
        """Change between steps and seconds; the cursor stays at its moment."""
        t = self.cursor_t
        self._change(replace(self._view, is_timed=not self._view.is_timed, window=None, cursor=None))
        self.put_cursor(t)

    @property
    def is_log(self) -> bool:
        """Whether the axis is logarithmic: as the user said, or as the data suggests."""
        if self._view.is_log is not None:
            return self._view.is_log
        return wants_log(ends_of(self._shown.series), self._shown.unit)

    # ---- the cursor

    def move_cursor(self, step: int) -> None:
        """Move the cursor by so many columns, to the nearest point there; the first move puts it on the last point."""
        low, high = self._x_range()
        at = self._view.cursor
        if at is None:
            self._put_cursor(next_point(self._current_lines(), None, high))
            return
        column = (high - low) / max(self.content_size.width - 10, 10)
        self._put_cursor(next_point(self._current_lines(), at, at + step * column))

    def jump_to_bad(self) -> bool:
        """Put the cursor on the next NaN or Inf, after the last on the first; say whether there is any."""
        at = self._view.cursor
        place = next_bad(self._current_lines(), -math.inf if at is None else at)
        if place is not None:
            self._put_cursor(place)
        return place is not None

    @property
    def cursor_t(self) -> int | None:
        """The moment of the cursor, in nanoseconds as in the records; None where there is no cursor."""
        at = self._view.cursor
        if at is None:
            return None
        if self._view.is_timed:
            return round(at * 1e9) + self._start_t
        return _partner(at, ((one.steps, one.times, [(bad.step, bad.t) for bad in one.bad]) for one in self._shown.series))

    def put_cursor(self, t: int | None) -> None:
        """Put the cursor where the moment `t` is, without telling anybody: for charts that share one cursor."""
        place: float | None = None
        if t is not None:
            place = (t - self._start_t) / 1e9 if self._view.is_timed else self._step_at(t)
        self._change(replace(self._view, cursor=place))

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is not None:
            wanted = x_at(self._line_chart(), *self.content_size, place.x, self.symbols)
            if wanted is not None:
                self._put_cursor(next_point(self._current_lines(), None, wanted))

    # ---- how it becomes a picture

    def _put_cursor(self, x: float | None) -> None:
        """Put the cursor at x, into view, and tell the screen."""
        if x is None:
            return
        low, high = self._x_range()
        window = self._view.window
        if window is not None and not low <= x <= high:
            window = self._fitted(x - (high - low) / 2, high - low)
        self._change(replace(self._view, cursor=x, window=window))
        self.post_message(self.CursorMoved(self, self.cursor_t))

    def _fitted(self, low: float, span: float) -> tuple[float, float] | None:
        """Return a window within all x, None when it is all of them."""
        least, most = self._whole_range()
        if not 0 < span < most - least or not math.isfinite(low):
            return None
        low = min(max(low, least), most - span)
        return low, low + span

    def _x_range(self) -> tuple[float, float]:
        return x_range(self._line_chart())

    def _whole_range(self) -> tuple[float, float]:
        return x_range(replace(self._line_chart(), window=None))

    @property
    def _start_t(self) -> int:
        return self._shown.starts[0] if self._shown.starts else 0

    def _step_at(self, t: int) -> float | None:
        return _partner(t, ((one.times, one.steps, [(bad.t, bad.step) for bad in one.bad]) for one in self._shown.series))

    def _change(self, view: View) -> None:
        if view != self._view:
            self._view = view
            self._update()

    def _update(self) -> None:
        self.show(self._painted, (self._data_key(), replace(self._shown, series=()), self._view))

    def _data_key(self) -> tuple[tuple[int, int], ...]:
        return tuple((id(one), one.count) for one in self._shown.series)

    def _current_lines(self) -> tuple[Line, ...]:
        key = (self._data_key(), self._shown.names, self._shown.order, self._shown.starts, self._view.is_timed)
        if key != self._lines_key:
            shown = self._shown
            self._lines = lines_of(
                shown.series, shown.names, is_timed=self._view.is_timed, starts=shown.starts, order=shown.order
            )
            self._lines_key = key
        return self._lines

    def _line_chart(self) -> LineChart:
        shown, view, lines = self._shown, self._view, self._current_lines()
        return LineChart(
            tuple(map(smooth, lines)) if view.is_smooth else lines,
            behind=lines if view.is_smooth else (),
            title=shown.title,
            unit=shown.unit,
            is_timed=view.is_timed,
            is_log=self.is_log,
            is_over=shown.is_over,
            x_end=None if view.is_timed else shown.x_end,
            window=view.window,
            cursor=view.cursor,
            guides=shown.guides,
            empty=shown.empty,
        )

    def _painted(self, width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
        return draw(self._line_chart(), width, height, symbols)


def _partner(place: float, columns: Iterable[tuple[list[int], list[int], list[tuple[int, int]]]]) -> int | None:
    """Return what stands beside the number nearest to `place`: the time of a step, or the step of a time."""
    found: list[tuple[float, int]] = []
    for keys, values, bad in columns:
        at = bisect_right(keys, place)
        found += [(abs(keys[i] - place), values[i]) for i in (at - 1, at) if 0 <= i < len(keys)]
        found += [(abs(key - place), value) for key, value in bad]
    return min(found)[1] if found else None
