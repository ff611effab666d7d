"""The line chart of the screens: cheap enough for live data, and able to draw any number.

Behind its own lines it can show overlays, which are dim lines of other runs. A mark is a single
character, for example of a NaN or of a point of a line with few points.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby

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
from tuilab.drawings.picture import Canvas, Picture, arm_role, centre, count_cells, fit
from tuilab.drawings.raster import Ints, column_of, raster
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.text.display import show
from tuilab.text.words import clock, format_number

_LEAST_WIDTH, _LEAST_HEIGHT = 20, 5  # below these there are only numbers
_LEAST_PLOT_WIDTH, _LEAST_PLOT_HEIGHT = 8, 2
_BATCH = 16  # lines that are drawn at once, so that their arrays stay in the caches
_STRIPE = 3  # columns in one colour where lines lie on each other
_LETTER_EVERY = 24  # columns from one letter of a line to its next
_FEW_EVERY = 6  # columns: a line with fewer than one point in so many has few points
_GUIDE_REACH = 0.25  # of the span: a guide that near to the data is brought into the chart
_LOG_GUIDE_REACH = 0.5  # the same on a logarithmic axis, as a power of ten
# Of an axis. Logged steps are mostly counted from 0, and planned steps from 1.
_COUNT_DIFFERENCE = 0.02
_NAME_ROW_FROM = 14  # rows of a chart that has one for a long name of x
_LEAST_STEPS, _LEAST_SECONDS = 4.0, 2.0  # along the x axis of a running run
_LEAST_LABEL_COLUMNS = 6  # for the labels of y, so that the plot rarely moves
_COLUMNS_PER_TICK, _COLUMNS_PER_TIMED_TICK = 12, 14  # of x
_ROUNDING = 1e-9  # a guide at the end of the axis may be off by this share of the axis
_NO_COLUMNS = range(-9, -9)


@dataclass(frozen=True)
class Guide:
    """A value that is worth a dotted line, as 65504, where float16 ends."""

    value: float
    name: str


@dataclass(frozen=True, eq=False)
class LineChart:
    """Everything that a chart shows."""

    lines: tuple[Line, ...]
    raw_lines: tuple[Line, ...] = ()  # the values of lines that are smoothed
    title: str = ""
    unit: str = ""  # of y: "", "bytes", "s", "%", ...
    is_timed: bool = False  # whether x are seconds instead of steps
    is_log: bool = False
    # Whether the data is complete. The x axis then ends with the data, or where it was planned to.
    is_over: bool = False
    x_end: float | None = None  # the end of x, if it is known
    window: tuple[float, float] | None = None  # the part of x that is shown, None for all
    cursor: float | None = None
    guides: tuple[Guide, ...] = ()
    empty: str = "no points yet"  # shown if there are no points
    is_log_x: bool = False  # whether x are powers of ten of steps
    x_name: str = ""
    gap_reason: str = ""  # why values could not be read where lines are broken
    overlays: tuple[Line, ...] = ()  # dim lines behind all; those of one label belong together


def draw(chart: LineChart, width: int, height: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw a chart of that size. A very small one becomes numbers."""
    if width < _LEAST_WIDTH or height < _LEAST_HEIGHT:
        return _draw_numbers(chart, width, height, symbols)
    plot = _make_plot(chart, width, height, symbols)
    if all(line.is_empty for line in chart.lines):
        text = to_ascii(fit(show(chart.empty, 200), width), symbols)
        plot.canvas.put(max((width - len(text)) // 2, 0), (plot.top + height) // 2, text, "muted")
    else:
        plot.put_all()
    return plot.canvas.picture()


def x_at(
    chart: LineChart, width: int, height: int, column: int, symbols: Symbols = BRAILLE
) -> float | None:
    """Return the x of a column of the screen; None outside of the plot."""
    plot = _make_plot(chart, width, height, symbols)
    share = (column - plot.left - 0.5) / max(plot.width - 1, 1)
    if not -0.05 <= share <= 1.05:  # a click a little beside the plot still counts
        return None
    return plot.x.low + share * (plot.x.high - plot.x.low)


def x_range(chart: LineChart) -> tuple[float, float]:
    """Return the range of x that a chart shows: 0 to 1 if no line has a point.

    The range of growing data is longer than the data, so that it rarely changes.
    """
    if chart.window is not None:
        return chart.window
    firsts, lasts = [], []
    for line in (*chart.lines, *chart.overlays):
        if line.is_empty:
            continue
        if math.isfinite(line.last_x):
            lasts.append(line.last_x)
        else:
            lasts.append(float(line.xs[-1]))
        for xs in (line.xs, line.bad_xs):
            if len(xs):
                firsts.append(float(xs[0]))
                lasts.append(float(xs[-1]))
    if not firsts:
        return 0.0, 1.0
    first, last = min(firsts), max(lasts)
    if chart.is_over and chart.is_log_x:
        return first, last
    if chart.is_over:
        return axis_start(first, last), _find_end(chart, first, last)
    if chart.is_log_x:  # whole powers of ten rarely change
        low = float(math.floor(first))
        return low, max(float(math.ceil(last)), low + 1.0)
    least = _LEAST_STEPS
    if chart.is_timed:
        least = _LEAST_SECONDS
    return growing_range(first, last, least, chart.x_end)


def _find_end(chart: LineChart, first: float, last: float) -> float:
    """Return the end of x of a finished run: the planned one, if the run came close enough."""
    end = chart.x_end
    if end is not None and last < end <= last + _COUNT_DIFFERENCE * (last - first):
        return end
    return last


def _draw_numbers(chart: LineChart, width: int, height: int, symbols: Symbols) -> Picture:
    """Draw the legend and the range of the values, for a chart that has no room for lines."""
    rows: list[tuple[str, str]] = []
    if chart.title and height > 2:
        rows.append((show(chart.title, 200), "title"))
    for entry in _make_entries(chart):
        head = f"{entry.letter} {entry.label}".strip()
        rows.append((f"{head} {entry.value}".strip(), entry.role))
        if entry.bad:
            rows.append((f"  {entry.bad}", "bad"))
    lows = []
    highs = []
    for line in chart.lines:
        if len(line.lows):
            lows.append(float(line.lows.min()))
            highs.append(float(line.highs.max()))
    if lows:
        low = format_number(min(lows), chart.unit, 3)
        high = format_number(max(highs), chart.unit, 3)
        rows.append((f"{low}..{high}", "muted"))
    if not rows:
        rows.append((chart.empty, "muted"))
    canvas = Canvas(width, height)
    for y, (text, role) in enumerate(rows):
        canvas.put(0, y, fit(to_ascii(text, symbols), width), role)
    return canvas.picture()


def _make_plot(chart: LineChart, width: int, height: int, symbols: Symbols) -> "_Plot":
    canvas = Canvas(width, height)
    entries = _make_entries(chart)
    notes = _make_notes(chart)
    top = legend.put_legend(canvas, chart.title, entries, notes, symbols)
    return _Plot(chart, canvas, top, symbols)


class _Plot:
    """The chart below its legend: the places of its parts, and how each is put on the canvas."""

    def __init__(self, chart: LineChart, canvas: Canvas, top: int, symbols: Symbols) -> None:
        """Compute the places of all parts. `top` is the first row below the legend.

        The order counts: the axis of y needs the height, and the axis of x needs the width, which
        depends on the labels of y.
        """
        self.chart = chart
        self.canvas = canvas
        self.symbols = symbols
        self.lines = _shown_lines(chart.lines, is_log=chart.is_log)
        self.raw_lines = _shown_lines(chart.raw_lines, is_log=chart.is_log)
        self.overlays = _shown_lines(chart.overlays, is_log=chart.is_log)
        self.top = top
        if any((line.bad_values == math.inf).any() for line in chart.lines):
            self.top += 1  # a row for the marks of Inf
        name = show(chart.x_name, 200)
        name_limit = 2 * canvas.width // 5  # columns of a name that leave enough to the ticks
        self.has_name_row = count_cells(name) > name_limit and canvas.height >= _NAME_ROW_FROM
        if self.has_name_row:
            name_limit = canvas.width
        self.x_name = to_ascii(fit(name, name_limit), symbols)
        # The last row of the plot. Below it are the axis, its labels, and perhaps its name.
        self.bottom = canvas.height - 3 - self.has_name_row
        self.height = self.bottom - self.top + 1
        low, high = x_range(chart)
        self.y = self._make_y_axis(low, high)
        label_columns = _LEAST_LABEL_COLUMNS
        for _, label in self.y.ticks:
            label_columns = max(label_columns, len(label))
        self.left = label_columns + 1  # the column of the y axis
        self.width = canvas.width - self.left - 1
        self.x = self._make_x_axis(low, high)
        self._columns: dict[int, tuple[int, Ints]] = {}  # of the places in view, by id of the array

    def put_all(self) -> None:
        """Put all parts on the canvas, if there is room for a plot."""
        if self.height < _LEAST_PLOT_HEIGHT or self.width < _LEAST_PLOT_WIDTH:
            return
        self._put_axes()
        self._put_lines()
        self._put_names()
        self._put_guides()
        self._put_bad()
        self._put_cursor()

    # ---- the axes

    def _make_y_axis(self, low: float, high: float) -> Axis:
        """Return the axis of the values from x `low` to `high`, and of the guides near them."""
        values = []
        for line in (*self.overlays, *self.raw_lines, *self.lines):
            values += _visible_range(line, low, high)
        is_log = self.chart.is_log and bool(values)
        if not values:
            values = [0.0, 1.0]
        bottom = min(values)
        top = max(values)
        for guide in self.chart.guides:
            if _is_near(guide.value, bottom, top, is_log=is_log):
                bottom = min(bottom, guide.value)
                top = max(top, guide.value)
        count = max(2, min(self.height // 4 + 1, 8))
        is_growing = not self.chart.is_over
        return y_axis(bottom, top, self.chart.unit, count, is_log=is_log, is_growing=is_growing)

    def _make_x_axis(self, low: float, high: float) -> Axis:
        """Return the axis of x.

        A single tick shows no distance. If the name of x leaves room for one alone, the ticks get
        nearer to each other, as far as that helps.
        """
        unit = ""
        columns_per_tick = _COLUMNS_PER_TICK
        if self.chart.is_timed:
            unit = "time"
            columns_per_tick = _COLUMNS_PER_TIMED_TICK
        is_whole = are_whole(self.chart.lines)
        make_axis = partial(x_axis, low, high, unit, is_log=self.chart.is_log_x, is_whole=is_whole)
        count = max(2, self.width // columns_per_tick)
        for tick_count in range(count, 2 * count + 2):
            axis = make_axis(tick_count)
            if len(self._place_x_labels(axis, self._name_columns(axis))) > 1:
                return axis
        return make_axis(count)

    def _name_columns(self, axis: Axis) -> range:
        """Return the columns of the name of x: before the ticks if it hides none, else behind."""
        width = count_cells(self.x_name)
        if self.has_name_row:
            width = 0
        before_ticks = range(width + 2)
        if not width or self._place_x_labels(axis, before_ticks) == self._place_x_labels(axis):
            return before_ticks
        return range(self.canvas.width - width - 2, self.canvas.width)

    def _row(self, share: float) -> int:
        rows = self.height * self.symbols.down
        return self.top + math.floor((1 - share) * (rows - 1) + 0.5) // self.symbols.down

    def _column(self, share: float) -> int:
        columns = self.width * self.symbols.across
        return self.left + 1 + math.floor(share * (columns - 1) + 0.5) // self.symbols.across

    def _put_axes(self) -> None:
        """Put the two axes with their ticks and labels, and a row of dots for each tick of y."""
        canvas = self.canvas
        symbols = self.symbols
        left = self.left
        base = self.bottom + 1
        canvas.fill(slice(self.top, base), slice(left, left + 1), symbols.vertical, "axis")
        canvas.put(left, base, symbols.corner + symbols.horizontal * self.width, "axis")
        grid = (symbols.grid + "   ") * (self.width // 4 + 1)
        used_rows = set()
        for share, label in self.y.visible_ticks:
            row = self._row(share)
            if row in used_rows:
                continue
            used_rows.add(row)
            label = to_ascii(label, symbols)
            canvas.put(left - len(label), row, label, "label")
            canvas.put(left, row, symbols.tick_y, "axis")
            if row != self.bottom:
                canvas.put(left + 1, row, grid[: self.width], "grid")
        self._put_x_labels(base)

    def _put_x_labels(self, base: int) -> None:
        """Write the name of x and its ticks.

        A label is left out where the name or the cursor leaves no room, and the name where the
        cursor leaves none.
        """
        name_columns = self._name_columns(self.x)
        cursor_columns = self._cursor_columns()
        width = count_cells(self.x_name)
        start = 0
        if name_columns.start != 0 or self.has_name_row:  # behind the ticks, or below them
            start = self.canvas.width - width
        if self.has_name_row or not _overlap(range(start, start + width), cursor_columns):
            self.canvas.put(start, base + 1 + self.has_name_row, self.x_name, "title")
        for share, _ in self.x.visible_ticks:
            self.canvas.put(self._column(share), base, self.symbols.tick_x, "axis")
        for start, label in self._place_x_labels(self.x, name_columns, cursor_columns):
            self.canvas.put(start, base + 1, label, "label")

    def _place_x_labels(self, axis: Axis, *taken_columns: range) -> list[tuple[int, str]]:
        """Return the columns and labels of the ticks that have room outside of taken columns."""
        placed = []
        free = 0  # the first column that a label may take
        for share, label in axis.visible_ticks:
            label = to_ascii(label, self.symbols)
            start = centre(self._column(share), len(label), self.canvas.width)
            columns = range(start, start + len(label))
            is_taken = any(_overlap(columns, reserved) for reserved in taken_columns)
            if start >= free and not is_taken:
                placed.append((start, label))
                free = start + len(label) + 2
        return placed

    # ---- the lines

    def _put_lines(self) -> None:
        """Put the dots of all lines, over those of overlays and raw values.

        Where lines meet, all are visible, in turns in the colour of each.
        """
        shape = (self.height, self.width)
        dots = np.zeros(shape, np.uint8)
        roles = np.zeros(shape, np.uint8)
        for lines, role in ((self.overlays, "other"), (self.raw_lines, "raw")):
            for _, line_dots in self._rasters(lines):
                dots |= line_dots
                roles[line_dots > 0] = self.canvas.role_number(role)
        has_line = np.zeros(shape, np.bool_)
        stripes = np.arange(self.width) // _STRIPE
        for turn, (line, line_dots) in enumerate(self._rasters(self.lines)):
            is_drawn = line_dots > 0
            is_first = is_drawn & ~has_line
            dots = np.where(is_first, line_dots, dots | line_dots)
            is_coloured = is_first | (is_drawn & (stripes % (turn + 1) == turn))
            roles[is_coloured] = self.canvas.role_number(arm_role(line.style))
            has_line |= is_drawn
        is_drawn = dots > 0
        first = self.left + 1
        area = slice(self.top, self.bottom + 1), slice(first, first + self.width)
        glyphs = _glyph_codes(self.symbols.glyphs)[dots]
        self.canvas.codes[area] = np.where(is_drawn, glyphs, self.canvas.codes[area])
        self.canvas.roles[area] = np.where(is_drawn, roles, self.canvas.roles[area])

    def _rasters(self, lines: Sequence[Line]) -> Iterator[tuple[Line, NDArray[np.uint8]]]:
        """Yield each line with its dots. Neighbours that share their xs are drawn at once."""
        for _, group in groupby(lines, lambda line: id(line.xs)):
            sharing = list(group)
            for start in range(0, len(sharing), _BATCH):
                batch = sharing[start : start + _BATCH]
                dots = raster(batch, self.x, self.y, self.width, self.height, self.symbols)
                yield from zip(batch, dots, strict=True)

    def _put_names(self) -> None:
        """Put the names of overlays and the letters of lines, or marks for few points."""
        for line in self.overlays:
            name = _overlay_name(line, self.chart)
            self._put_points(line, name, "muted", 0, set(), has_few=self._have_few([line]))
        groups = group_by_style(self.lines)
        styles_with_few = {style for style, group in groups.items() if self._have_few(group)}
        has_letters = _has_several_styles(self.chart)
        taken_cells: set[tuple[int, int]] = set()
        for turn, line in enumerate(self.lines):
            name = legend.letter(line.style) if has_letters else ""
            has_few = line.style in styles_with_few
            self._put_points(line, name, arm_role(line.style), turn, taken_cells, has_few=has_few)

    def _have_few(self, lines: Sequence[Line]) -> bool:
        """Say whether lines of one style have so few points that each is marked.

        Lines with few points each may have many points together.
        """
        most = self.width // _FEW_EVERY
        different_xs = {id(line.xs): line.xs for line in lines}.values()
        point_columns = set()
        for xs in different_xs:
            _, columns = self._in_view(xs)
            if len(columns) > most:
                return False
            point_columns.update(columns.tolist())
        return len(different_xs) == 1 or len(point_columns) <= most

    def _put_points(
        self,
        line: Line,
        name: str,
        role: str,
        turn: int,
        taken_cells: set[tuple[int, int]],
        *,
        has_few: bool,
    ) -> None:
        """Write the name of a line at some columns, which stay the same while the line grows.

        If the line has few points, mark each of them. Lines that lie on each other take turns by
        `turn`, so that not only the last one is named. `taken_cells` has the columns and rows of
        earlier lines, and this line adds its own.
        """
        first, columns = self._in_view(line.xs)
        if not len(columns):
            return
        if has_few and len(name) < 2:  # neighbours would cut the ends of longer names
            chosen = np.arange(len(columns))
        elif name:
            chosen = _choose_named(columns, line.style)
        else:
            return
        mark = name or self.symbols.point
        shares = self.y.shares(line.highs[first + chosen]).tolist()
        chosen_columns = columns[chosen].tolist()
        for point, column, share in zip(chosen.tolist(), chosen_columns, shares, strict=True):
            row = self._row(share)
            if not self.top <= row <= self.bottom:
                continue
            has_turn = point % len(self.lines) == turn
            if (column, row) not in taken_cells or has_turn:
                taken_cells.add((column, row))
                self.canvas.put(self.left + 1 + column, row, mark, role)

    def _in_view(self, xs: Floats) -> tuple[int, Ints]:
        """Return the index of the first place in view, and the columns of all places in view."""
        if id(xs) not in self._columns:  # lines may share their xs
            first = int(np.searchsorted(xs, self.x.low))
            after = int(np.searchsorted(xs, self.x.high, "right"))
            self._columns[id(xs)] = first, self._columns_of(xs[first:after])
        return self._columns[id(xs)]

    def _columns_of(self, xs: Floats) -> Ints:
        across = self.symbols.across
        return column_of(self.x, xs, self.width * across) // across

    # ---- guides, bad points and the cursor

    def _put_guides(self) -> None:
        """Put a dotted line with its name for each guide in range, over the grid alone."""
        zero_row = self._row(self.y.share(0.0))
        for guide in self.chart.guides:
            share = self.y.share(guide.value)
            if not -_ROUNDING <= share <= 1 + _ROUNDING:
                continue
            row = self._row(share)
            if row >= self.bottom or row == zero_row:
                continue  # next to such large values, the guide is as good as 0
            name = to_ascii(f" {fit(show(guide.name, 40), self.width // 2)} ", self.symbols)
            rows = slice(row, row + 1)
            columns = slice(self.left + 1, None)
            self.canvas.fill(rows, columns, self.symbols.guide, "guide", over=("grid",))
            self.canvas.put(self.canvas.width - len(name) - 1, row, name, "guide")

    def _put_bad(self) -> None:
        """Mark NaN and Inf at the edges of the plot: Inf above it, NaN and -Inf on the axis."""
        symbols = self.symbols
        above = self.top - 1
        below = self.bottom + 1
        for line in self.chart.lines:
            if not line.bad_count:
                continue
            xs, values = bad_points(line)
            is_visible = (xs >= self.x.low) & (xs <= self.x.high)
            columns = self._columns_of(xs[is_visible])
            values = values[is_visible]
            self._put_marks(columns[values == math.inf], above, symbols.inf_up)
            self._put_marks(columns[values == -math.inf], below, symbols.inf_down)
            self._put_marks(columns[np.isnan(values)], below, symbols.nan)  # hides -Inf

    def _put_marks(self, columns: Ints, row: int, mark: str) -> None:
        for column in set(columns.tolist()):
            self.canvas.put(self.left + 1 + column, row, mark, "bad")

    def _put_cursor(self) -> None:
        """Put the cursor into the plot, and its x below the axis; nothing if it is out of view."""
        cursor = self._visible_cursor()
        if cursor is None:
            return
        column = self._column(self.x.share(cursor))
        rows = slice(self.top, self.bottom + 1)
        columns = slice(column, column + 1)
        over = ("grid", "guide")
        self.canvas.fill(rows, columns, self.symbols.vertical, "cursor", over=over)
        start = self._cursor_columns().start
        self.canvas.put(start, self.bottom + 2, self._cursor_label(cursor), "cursor")

    def _visible_cursor(self) -> float | None:
        cursor = self.chart.cursor
        if cursor is None or not self.x.low <= cursor <= self.x.high:
            return None
        return cursor

    def _cursor_label(self, cursor: float) -> str:
        if self.chart.is_timed:
            return f" {clock(cursor, 0.01)} "
        return f" {step_at(cursor, is_log_x=self.chart.is_log_x):.10g} "

    def _cursor_columns(self) -> range:
        """Return the columns of the label of the cursor; none if there is no cursor."""
        cursor = self._visible_cursor()
        if cursor is None:
            return _NO_COLUMNS
        width = len(self._cursor_label(cursor))
        start = centre(self._column(self.x.share(cursor)), width, self.canvas.width)
        return range(start, start + width)


def _shown_lines(lines: Sequence[Line], *, is_log: bool) -> Sequence[Line]:
    """Return lines without the values that their axis cannot show."""
    if not is_log:
        return lines
    shown = []
    for line in lines:
        positive_line, _ = drop_nonpositive(line)
        shown.append(positive_line)
    return shown


def _choose_named(columns: Ints, style: int) -> NDArray[np.intp]:
    """Return the indices of the points at which a line is named.

    They are the first points in columns that depend on its style alone, or else its first point.
    """
    name_column = (4 + 5 * style) % _LETTER_EVERY
    candidates = np.flatnonzero(columns % _LETTER_EVERY == name_column)
    if not len(candidates):
        return np.array([0])
    is_first_in_column = np.diff(columns[candidates], prepend=-1) != 0
    named: NDArray[np.intp] = candidates[is_first_in_column]
    return named


def _overlap(first: range, second: range) -> bool:
    return first.start < second.stop and second.start < first.stop


@cache
def _glyph_codes(glyphs: str) -> NDArray[np.uint32]:
    return np.array([ord(glyph) for glyph in glyphs], np.uint32)


def _visible_range(line: Line, low: float, high: float) -> list[float]:
    """Return the least and the greatest value from x `low` to `high`.

    If the line only crosses that range, these are of the points at both sides.
    """
    first = int(np.searchsorted(line.xs, low))
    after = int(np.searchsorted(line.xs, high, "right"))
    if first >= after:
        first = max(first - 1, 0)
        after += 1
    lows = line.lows[first:after]
    highs = line.highs[first:after]
    if not len(lows):
        return []
    return [float(lows.min()), float(highs.max())]


def _is_near(value: float, low: float, high: float, *, is_log: bool) -> bool:
    """Say whether a value is near enough to a range to be shown with it."""
    if not math.isfinite(value):
        return False
    if is_log:
        if value <= 0:
            return False
        power = math.log10(value)
        least = math.log10(low) - _LOG_GUIDE_REACH
        return least <= power <= math.log10(high) + _LOG_GUIDE_REACH
    reach = (high / 2 - low / 2) * 2 * _GUIDE_REACH
    return math.isfinite(reach) and low - reach <= value <= high + reach


# ---- the legend


def _has_several_styles(chart: LineChart) -> bool:
    return len({line.style for line in chart.lines}) > 1


def _make_entries(chart: LineChart) -> list[legend.LegendEntry]:
    """Return an entry for each style of line, and one for each label of an overlay."""
    entries = legend.make_entries(
        chart.raw_lines or chart.lines,  # a value is never a smoothed one
        chart.cursor,
        chart.unit,
        is_timed=chart.is_timed,
        is_log_x=chart.is_log_x,
        gap_reason=chart.gap_reason,
    )
    if not _has_several_styles(chart):
        entries = [replace(entry, letter="") for entry in entries]
    for label in _overlay_labels(chart):
        entries.append(_make_overlay_entry(label, chart))
    return entries


def _make_overlay_entry(label: str, chart: LineChart) -> legend.LegendEntry:
    """Return the legend entry of another run, whose lines all have this label.

    If the run has several lines, the entry has no value.
    """
    lines = []
    for line in chart.overlays:
        if line.label == label:
            lines.append(replace(line, style=0))  # one style, so that they have one entry
    [entry] = legend.make_entries(lines, chart.cursor, chart.unit, is_timed=chart.is_timed)
    entry = replace(entry, letter=_overlay_number(label, chart), bad="", role="muted")
    if len(lines) > 1:
        return replace(entry, value="", brief="", full="")
    return entry


def _overlay_labels(chart: LineChart) -> list[str]:
    labels: list[str] = []
    for line in chart.overlays:
        if line.label and line.label not in labels:
            labels.append(line.label)
    return labels


def _overlay_number(label: str, chart: LineChart) -> str:
    """Return the digit of a label of overlays; empty if there is no other label."""
    labels = _overlay_labels(chart)
    if len(labels) < 2 or not label:
        return ""
    return str(labels.index(label) + 1)


def _overlay_name(line: Line, chart: LineChart) -> str:
    """Return the name of an overlay in the plot.

    It is the digit of its label, and the letter of the line with the same style.
    """
    name = _overlay_number(line.label, chart)
    if _has_several_styles(chart):
        name += legend.letter(line.style)
    return name


def _make_notes(chart: LineChart) -> list[str]:
    """Return the notes behind the title: logarithmic axes, hidden points, smoothing."""
    has_positive = any((line.highs > 0).any() for line in chart.lines)
    notes = _describe_scales(chart, has_positive=has_positive)
    off_axis = sum(line.off_axis for line in chart.lines)
    if off_axis:
        notes.append(f"{off_axis} at x not above 0")
    if chart.is_log and has_positive:
        hidden = 0
        for line in chart.lines:
            _, hidden_in_line = drop_nonpositive(line)
            hidden += hidden_in_line
        if hidden:
            notes.append(f"{hidden} not above 0")
    if chart.raw_lines:
        notes.append("smoothed")
    return notes


def _describe_scales(chart: LineChart, *, has_positive: bool) -> list[str]:
    """Return which axes are logarithmic, or that y had to stay linear without a positive value."""
    if chart.is_log and has_positive:
        return ["log xy"] if chart.is_log_x else ["log"]
    notes = []
    if chart.is_log:
        notes.append("linear: nothing above 0")
    if chart.is_log_x:
        notes.append("log x")
    return notes
