"""The line chart of everything live: drawn by ourselves, because it must be cheap and must not mind any number."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby

from tuilab.arrays import NDArray, np
from tuilab.drawings import legend
from tuilab.drawings.axis import Axis, axis_start, growing_range, x_axis, y_axis
from tuilab.drawings.lines import (
    Floats,
    Line,
    are_whole,
    bad_points,
    drop_nonpositive,
    group_by_style,
    step_at,
)
from tuilab.drawings.picture import ARMS, Canvas, Picture, cell_codes, fit
from tuilab.drawings.raster import Ints, column_of, raster
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.text.display import show
from tuilab.text.words import clock, format_number

LEAST_WIDTH, LEAST_HEIGHT = 20, 5  # below it there are only numbers
_AT_ONCE = 16  # lines, so that what is computed of them stays in the caches
_STRIPE = 3  # columns in one colour where lines lie on each other
_LETTER_EVERY = 24  # columns from one letter of a line to its next
_GUIDE_REACH = 0.25  # of the span: a guide so near to the data is brought into the chart
_HAIR = 0.02  # of an axis: the steps that come are mostly counted from 0, and those that are planned from 1
_NAME_ROW_FROM = 14  # rows of a chart that leave one to a long name of x
_LEAST_STEPS, _LEAST_SECONDS = 4.0, 2.0  # that the x axis of a run that goes on shows


@dataclass(frozen=True)
class Guide:
    """A value that is worth a dotted line, as 65504 is where float16 ends."""

    value: float
    name: str


@dataclass(frozen=True, eq=False)
class LineChart:
    """What to draw. `behind` are the raw values of smoothed lines."""

    lines: tuple[Line, ...]
    raw_lines: tuple[Line, ...] = ()
    title: str = ""
    unit: str = ""  # of y: "", "bytes", "s", "%", ...
    is_timed: bool = False  # x are seconds, not steps
    is_log: bool = False
    is_over: bool = (
        False  # nothing more will come: the x axis ends with the data, or where it was planned to
    )
    x_end: float | None = None  # where x is known to end
    window: tuple[float, float] | None = None  # the part of x that is shown, None for all
    cursor: float | None = None
    guides: tuple[Guide, ...] = ()
    empty: str = "no points yet"
    is_log_x: bool = False  # x are powers of ten of steps
    x_name: str = ""  # what is along x
    gap_reason: str = ""  # why nothing could be told where lines are broken
    overlays: tuple[Line, ...] = ()  # dim ones behind all; those of one label belong together


def draw(chart: LineChart, width: int, height: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw a chart into so many cells; a very small one becomes numbers."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return _numbers(chart, width, height, symbols)
    drawn = _laid_out(chart, width, height, symbols)
    if all(line.is_empty for line in chart.lines):
        text = to_ascii(fit(show(chart.empty, 200), width), symbols)
        drawn.canvas.put(max((width - len(text)) // 2, 0), (drawn.top + height) // 2, text, "muted")
    else:
        drawn.put_all()
    return drawn.canvas.picture()


def x_at(
    chart: LineChart, width: int, height: int, column: int, symbols: Symbols = BRAILLE
) -> float | None:
    """Return which x a column of the screen shows; None outside of the plot."""
    drawn = _laid_out(chart, width, height, symbols)
    share = (column - drawn.left - 0.5) / max(drawn.width - 1, 1)
    return drawn.x.low + share * (drawn.x.high - drawn.x.low) if -0.05 <= share <= 1.05 else None


def x_range(chart: LineChart) -> tuple[float, float]:
    """Return the x range that a chart shows."""
    if chart.window is not None:
        return chart.window
    lines = [line for line in (*chart.lines, *chart.overlays) if not line.is_empty]
    if not lines:
        return 0.0, 1.0
    first = min(float(part[0]) for line in lines for part in (line.xs, line.bad_xs) if len(part))
    last = max(line.last_x if math.isfinite(line.last_x) else float(line.xs[-1]) for line in lines)
    last = max(
        [last, *(float(part[-1]) for line in lines for part in (line.xs, line.bad_xs) if len(part))]
    )
    if chart.is_over:
        return (
            (first, last)
            if chart.is_log_x
            else (axis_start(first, last), _end_of(chart, first, last))
        )
    if chart.is_log_x:  # whole powers of ten change rarely
        return float(math.floor(first)), max(float(math.ceil(last)), math.floor(first) + 1.0)
    return growing_range(
        first, last, _LEAST_SECONDS if chart.is_timed else _LEAST_STEPS, chart.x_end
    )


def _end_of(chart: LineChart, first: float, last: float) -> float:
    """Return where the axis of a run that is over ends: where it was planned to, if all but a hair of that came."""
    end = chart.x_end
    return end if end is not None and last < end <= last + _HAIR * (last - first) else last


def _laid_out(chart: LineChart, width: int, height: int, symbols: Symbols) -> "_Drawn":
    canvas = Canvas(width, height)
    top = legend.put_legend(canvas, chart.title, _entries(chart), _notes(chart), symbols)
    return _Drawn(chart, canvas, top, symbols)


class _Drawn:
    """The chart below its legend: where its parts are, and how each is put on the canvas."""

    def __init__(self, chart: LineChart, canvas: Canvas, top: int, symbols: Symbols) -> None:
        self.chart, self.canvas, self.symbols = chart, canvas, symbols
        self.behind, self.lines, self.others = (
            [drop_nonpositive(line)[0] if chart.is_log else line for line in part]
            for part in (chart.raw_lines, chart.lines, chart.overlays)
        )
        self.has_inf = any(
            (line.bad_values == math.inf).any() for line in chart.lines if len(line.bad_values)
        )
        self.top = top + self.has_inf  # a row for the marks of Inf
        name = show(chart.x_name, 200)
        beside = 2 * canvas.width // 5  # columns of its name that leave enough of them to the ticks
        self.has_name_row = len(cell_codes(name)) > beside and canvas.height >= _NAME_ROW_FROM
        self.x_name = to_ascii(fit(name, canvas.width if self.has_name_row else beside), symbols)
        self.bottom = (
            canvas.height - 3 - self.has_name_row
        )  # the last row of the plot; below it the axis and its labels
        self.height = self.bottom - self.top + 1
        low, high = x_range(chart)
        self.y = self._y_axis(low, high)
        self.left = max([6, *(len(label) for _, label in self.y.ticks)]) + 1
        self.width = canvas.width - self.left - 1
        self.x = self._x_axis(low, high)
        self._columns: dict[int, tuple[int, Ints]] = {}

    def put_all(self) -> None:
        if self.height < 2 or self.width < 8:
            return
        self._put_axes()
        self._put_lines()
        self._put_guides()
        self._put_bad()
        self._put_cursor()

    def _y_axis(self, low: float, high: float) -> Axis:
        lines = (*self.others, *self.behind, *self.lines)
        values = [value for line in lines for value in _visible_range(line, low, high)]
        is_log = self.chart.is_log and bool(values)
        values = values or [0.0, 1.0]
        bottom, top = min(values), max(values)
        for guide in self.chart.guides:
            if _is_near(guide.value, bottom, top, is_log):
                bottom, top = min(bottom, guide.value), max(top, guide.value)
        count = max(2, min(self.height // 4 + 1, 8))
        return y_axis(
            bottom, top, self.chart.unit, count, is_log=is_log, is_growing=not self.chart.is_over
        )

    def _x_axis(self, low: float, high: float) -> Axis:
        """Return the axis of x; where its name leaves room for one tick alone, which tells no distance, with nearer ones."""
        unit, is_whole = ("time" if self.chart.is_timed else ""), are_whole(self.chart.lines)
        count = max(2, self.width // (14 if unit else 12))
        counts = range(count, 2 * count + 2)
        axes = (
            x_axis(low, high, unit, many, is_log=self.chart.is_log_x, is_whole=is_whole)
            for many in counts
        )
        first = next(axes)
        return next(
            (
                axis
                for axis in chain([first], axes)
                if len(self._x_labels(axis, self._name_place(axis))) > 1
            ),
            first,
        )

    def _name_place(self, axis: Axis) -> range:
        """Return the columns that the name of x takes: before the ticks where it hides none of them, else at the end."""
        width = 0 if self.has_name_row else len(cell_codes(self.x_name))
        before, behind = range(width + 2), range(self.canvas.width - width - 2, self.canvas.width)
        return (
            before if not width or self._x_labels(axis, before) == self._x_labels(axis) else behind
        )

    def _row(self, share: float) -> int:
        rows = self.height * self.symbols.down
        return self.top + math.floor((1 - share) * (rows - 1) + 0.5) // self.symbols.down

    def _column(self, share: float) -> int:
        columns = self.width * self.symbols.across
        return self.left + 1 + math.floor(share * (columns - 1) + 0.5) // self.symbols.across

    def _put_axes(self) -> None:
        canvas, symbols, left, base = self.canvas, self.symbols, self.left, self.bottom + 1
        canvas.fill(np.s_[self.top : base], np.s_[left : left + 1], symbols.vertical, "axis")
        canvas.put(left, base, symbols.corner + symbols.horizontal * self.width, "axis")
        used = set()
        for share, label in self.y.ticks:
            row = self._row(share)
            if -1e-9 <= share <= 1 + 1e-9 and row not in used:
                used.add(row)
                label = to_ascii(label, symbols)
                canvas.put(left - len(label), row, label, "label")
                canvas.put(left, row, symbols.tick_y, "axis")
                if row != self.bottom:
                    self._put_grid(row)
        self._put_x_labels(base)

    def _put_grid(self, row: int) -> None:
        dots = (self.symbols.grid + "   ") * (self.width // 4 + 1)
        self.canvas.put(self.left + 1, row, dots[: self.width], "grid")

    def _put_x_labels(self, base: int) -> None:
        """Write the ticks beside the name of what they are of; one that has no room beside that or the cursor is left out."""
        place, taken, width = (
            self._name_place(self.x),
            self._cursor_place(),
            len(cell_codes(self.x_name)),
        )
        start = self.canvas.width - width if place.start or self.has_name_row else 0
        if self.has_name_row or not _touch(range(start, start + width), taken):
            self.canvas.put(start, base + 1 + self.has_name_row, self.x_name, "title")
        for share, _ in self.x.ticks:
            if -1e-9 <= share <= 1 + 1e-9:
                self.canvas.put(self._column(share), base, self.symbols.tick_x, "axis")
        for start, label in self._x_labels(self.x, place, taken):
            self.canvas.put(start, base + 1, label, "label")

    def _x_labels(self, axis: Axis, *taken: range) -> list[tuple[int, str]]:
        """Return the columns and labels of the ticks that have room beside what others take."""
        found, free = [], 0
        for share, label in axis.ticks:
            label, column = to_ascii(label, self.symbols), self._column(share)
            start = min(max(column - len(label) // 2, 0), self.canvas.width - len(label))
            is_free = not any(_touch(range(start, start + len(label)), other) for other in taken)
            if -1e-9 <= share <= 1 + 1e-9 and start >= free and is_free:
                found.append((start, label))
                free = start + len(label) + 2
        return found

    def _put_lines(self) -> None:
        """Other lines and raw values lie behind; where lines meet, both are seen, by turns in the colour of each."""
        area = np.s_[self.top : self.bottom + 1, self.left + 1 : self.left + 1 + self.width]
        sets = np.zeros((self.height, self.width), np.uint8)
        looks = np.zeros((self.height, self.width), np.uint8)
        for lines, role in ((self.others, "other"), (self.behind, "raw")):
            for _, dots in self._rasters(lines):
                sets |= dots
                looks[dots > 0] = self.canvas.role_number(role)
        is_front, stripes = (
            np.zeros((self.height, self.width), np.bool_),
            np.arange(self.width) // _STRIPE,
        )
        for turn, (line, dots) in enumerate(self._rasters(self.lines)):
            is_drawn = dots > 0
            sets = np.where(is_drawn & ~is_front, dots, sets | dots)
            is_coloured = is_drawn & (~is_front | (stripes % (turn + 1) == turn))
            is_front |= is_drawn
            looks[is_coloured] = self.canvas.role_number(ARMS[line.style % len(ARMS)])
        is_drawn = sets > 0
        self.canvas.codes[area] = np.where(
            is_drawn, _codes(self.symbols.glyphs)[sets], self.canvas.codes[area]
        )
        self.canvas.roles[area] = np.where(is_drawn, looks, self.canvas.roles[area])
        for line in self.others:
            self._put_points(
                line, _mark_of(line, self.chart), "muted", 0, set(), has_few=self._are_few([line])
            )
        taken: set[tuple[int, int]] = set()
        is_named = _is_named(self.chart)
        few = {look for look, lines in group_by_style(self.lines).items() if self._are_few(lines)}
        for turn, line in enumerate(self.lines):
            name = legend.letter(line.style) if is_named else ""
            self._put_points(
                line, name, ARMS[line.style % len(ARMS)], turn, taken, has_few=line.style in few
            )

    def _rasters(self, lines: Sequence[Line]) -> Iterator[tuple[Line, NDArray[np.uint8]]]:
        """Return each line with its dots; neighbours that share their places are drawn at once."""
        for _, sharing in groupby(lines, lambda line: id(line.xs)):
            same = list(sharing)
            for some in (same[at : at + _AT_ONCE] for at in range(0, len(same), _AT_ONCE)):
                yield from zip(
                    some,
                    raster(some, self.x, self.y, self.width, self.height, self.symbols),
                    strict=True,
                )

    def _are_few(self, lines: Sequence[Line]) -> bool:
        """Say whether lines that look alike have so few points that each is marked; short ones in a row have many."""
        columns = [self._in_view(xs)[1] for xs in {id(line.xs): line.xs for line in lines}.values()]
        few = self.width // 6
        if any(len(of_line) > few for of_line in columns):
            return False
        return (
            len(columns) == 1
            or len({*chain.from_iterable(of_line.tolist() for of_line in columns)}) <= few
        )

    def _put_points(
        self,
        line: Line,
        name: str,
        role: str,
        turn: int,
        taken: set[tuple[int, int]],
        *,
        has_few: bool,
    ) -> None:
        """Name a line here and there, at columns that stay; where points are few, mark each.

        Lines that lie on each other take turns, or the last would be the only one that is named.
        """
        first, columns = self._in_view(line.xs)
        if not len(columns):
            return
        if has_few and len(name) < 2:  # of longer names neighbours would cut the ends
            chosen = np.arange(len(columns))
        elif name:
            wanted = np.flatnonzero(columns % _LETTER_EVERY == (4 + 5 * line.style) % _LETTER_EVERY)
            chosen = (
                wanted[np.flatnonzero(np.diff(columns[wanted], prepend=-1))]
                if len(wanted)
                else np.array([0])
            )
        else:
            return
        mark = name or self.symbols.point
        shares = self.y.shares(line.highs[first + chosen]).tolist()
        for index, column, share in zip(
            chosen.tolist(), columns[chosen].tolist(), shares, strict=True
        ):
            place = column, self._row(share)
            if self.top <= place[1] <= self.bottom and (
                place not in taken or index % len(self.lines) == turn
            ):
                taken.add(place)
                self.canvas.put(self.left + 1 + column, place[1], mark, role)

    def _in_view(self, xs: Floats) -> tuple[int, Ints]:
        """Return the first of some places that is in view, and the columns of all that are; lines may share their places."""
        if id(xs) not in self._columns:
            first, after = (
                int(np.searchsorted(xs, self.x.low)),
                int(np.searchsorted(xs, self.x.high, "right")),
            )
            found = (
                column_of(self.x, xs[first:after], self.width * self.symbols.across)
                // self.symbols.across
            )
            self._columns[id(xs)] = first, found
        return self._columns[id(xs)]

    def _put_guides(self) -> None:
        for guide in self.chart.guides:
            share = self.y.share(guide.value)
            row = self._row(share) if -1e-9 <= share <= 1 + 1e-9 else self.bottom
            if row >= self.bottom or row == self._row(self.y.share(0.0)):
                continue  # beside values so great it is as good as 0
            name = to_ascii(f" {fit(show(guide.name, 40), self.width // 2)} ", self.symbols)
            start = self.canvas.width - len(name) - 1
            self.canvas.fill(
                np.s_[row : row + 1],
                np.s_[self.left + 1 :],
                self.symbols.guide,
                "guide",
                over=("grid",),
            )
            self.canvas.put(start, row, name, "guide")

    def _put_bad(self) -> None:
        """Mark what is no number at the edge: Inf above, NaN and -Inf on the axis below."""
        for line in self.chart.lines:
            if not line.bad_count:
                continue
            places, values = bad_points(line)
            is_shown = (places >= self.x.low) & (places <= self.x.high)
            columns = (
                column_of(self.x, places[is_shown], self.width * self.symbols.across)
                // self.symbols.across
            )
            marks = set(
                zip(
                    columns.tolist(), np.nan_to_num(values[is_shown], nan=0.0).tolist(), strict=True
                )
            )
            for column, value in sorted(
                marks, key=lambda mark: abs(mark[1]), reverse=True
            ):  # NaN over -Inf
                mark = (
                    self.symbols.nan
                    if value == 0
                    else self.symbols.inf_up
                    if value > 0
                    else self.symbols.inf_down
                )
                self.canvas.put(
                    self.left + 1 + column,
                    self.top - 1 if value > 0 else self.bottom + 1,
                    mark,
                    "bad",
                )

    def _put_cursor(self) -> None:
        cursor = self.chart.cursor
        if cursor is None or not self.x.low <= cursor <= self.x.high:
            return
        column = self._column(self.x.share(cursor))
        plot = np.s_[self.top : self.bottom + 1]
        self.canvas.fill(
            plot,
            np.s_[column : column + 1],
            self.symbols.vertical,
            "cursor",
            over=("grid", "guide"),
        )
        self.canvas.put(
            self._cursor_place().start, self.bottom + 2, self._cursor_label(cursor), "cursor"
        )

    def _cursor_label(self, cursor: float) -> str:
        step = f"{step_at(cursor, is_log_x=self.chart.is_log_x):.10g}"
        return f" {clock(cursor, 0.01) if self.chart.is_timed else step} "

    def _cursor_place(self) -> range:
        """Return the columns that the label of the cursor takes in its row; none where there is no cursor."""
        cursor = self.chart.cursor
        if cursor is None or not self.x.low <= cursor <= self.x.high:
            return range(-9, -9)
        width = len(self._cursor_label(cursor))
        start = min(
            max(self._column(self.x.share(cursor)) - width // 2, 0), self.canvas.width - width
        )
        return range(start, start + width)


def _touch(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


@cache
def _codes(glyphs: str) -> NDArray[np.uint32]:
    return np.array([ord(glyph) for glyph in glyphs], np.uint32)


def _visible_range(line: Line, low: float, high: float) -> list[float]:
    """Return the least and the greatest value from x `low` to `high`; of a line that only crosses it, of its ends."""
    first, after = int(np.searchsorted(line.xs, low)), int(np.searchsorted(line.xs, high, "right"))
    if first >= after:
        first, after = max(first - 1, 0), after + 1
    lows, highs = line.lows[first:after], line.highs[first:after]
    return [float(lows.min()), float(highs.max())] if len(lows) else []


def _is_near(value: float, low: float, high: float, is_log: bool) -> bool:
    if not math.isfinite(value):
        return False
    if is_log:
        return value > 0 and math.log10(low) - 0.5 <= math.log10(value) <= math.log10(high) + 0.5
    reach = (high / 2 - low / 2) * 2 * _GUIDE_REACH
    return math.isfinite(reach) and low - reach <= value <= high + reach


def _is_named(chart: LineChart) -> bool:
    return len({line.style for line in chart.lines}) > 1


def _entries(chart: LineChart) -> list[legend.LegendEntry]:
    """Return what the legend says of each look: of the repeats of an arm, the last that has a value."""
    lines = chart.raw_lines or chart.lines  # values are never smoothed
    along = {"is_timed": chart.is_timed, "is_log_x": chart.is_log_x}
    found = legend.make_entries(
        lines, chart.cursor, chart.unit, **along, gap_reason=chart.gap_reason
    )
    own = found if _is_named(chart) else [replace(entry, letter="") for entry in found]
    return [*own, *_entries_of_others(chart)]


def _entries_of_others(chart: LineChart) -> list[legend.LegendEntry]:
    """Return what the legend says of each label of the other lines: where it has one line alone, its value, too."""
    found = []
    for label in _labels(chart):
        lines = [line for line in chart.overlays if line.label == label]
        [entry] = legend.make_entries(
            [replace(line, style=0) for line in lines],
            chart.cursor,
            chart.unit,
            is_timed=chart.is_timed,
        )
        value = {} if len(lines) == 1 else {"value": "", "brief": ""}
        found.append(replace(entry, letter=_number_of(label, chart), bad="", role="muted", **value))
    return found


def _labels(chart: LineChart) -> list[str]:
    return [*dict.fromkeys(line.label for line in chart.overlays if line.label)]


def _number_of(label: str, chart: LineChart) -> str:
    """Return the digit that tells the other lines of a label from those of others; nothing where there is no other label."""
    labels = _labels(chart)
    return str(labels.index(label) + 1) if len(labels) > 1 and label else ""


def _mark_of(line: Line, chart: LineChart) -> str:
    """Return what another line is called where it lies: the digit of its label, and the letter of the line that it is like."""
    return _number_of(line.label, chart) + (legend.letter(line.style) if _is_named(chart) else "")


def _notes(chart: LineChart) -> list[str]:
    hidden = sum(drop_nonpositive(line)[1] for line in chart.lines) if chart.is_log else 0
    has_shown = any((line.highs > 0).any() for line in chart.lines)
    scale = [] if not chart.is_log else ["log"] if has_shown else ["linear: nothing above 0"]
    if chart.is_log_x:
        scale = ["log x"] if not chart.is_log else ["log xy"] if has_shown else [*scale, "log x"]
    if off_axis := sum(line.off_axis for line in chart.lines):
        scale += [f"{off_axis} at x not above 0"]
    return [
        *scale,
        *([f"{hidden} not above 0"] if hidden and has_shown else []),
        *(["smoothed"] if chart.raw_lines else []),
    ]


def _numbers(chart: LineChart, width: int, height: int, symbols: Symbols) -> Picture:
    """Draw numbers where there is no room for a chart."""
    canvas = Canvas(width, height)
    rows: list[tuple[str, str]] = (
        [(show(chart.title, 200), "title")] if chart.title and height > 2 else []
    )
    for entry in _entries(chart):
        head = f"{entry.letter} {entry.label}".strip()
        rows.append((f"{head} {entry.value}".strip(), entry.role))
        rows += [(f"  {entry.bad}", "bad")] if entry.bad else []
    lows: Sequence[float] = [float(line.lows.min()) for line in chart.lines if len(line.lows)]
    highs = [float(line.highs.max()) for line in chart.lines if len(line.highs)]
    if lows:
        rows.append(
            (
                f"{format_number(min(lows), chart.unit, 3)}..{format_number(max(highs), chart.unit, 3)}",
                "muted",
            )
        )
    for y, (text, role) in enumerate(rows or [(chart.empty, "muted")]):
        canvas.put(0, y, fit(to_ascii(text, symbols), width), role)
    return canvas.picture()
