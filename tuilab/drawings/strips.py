"""Several values along one axis of time, each as a strip of columns in a few rows.

The name of a strip is before it and its value behind it. A condition that lasted for a while, as
throttled clocks, is a strip of marks. A text is a row of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.arrays import NDArray, np
from tuilab.drawings.axis import x_axis
from tuilab.drawings.lines import PATIENCE, Line, find_point
from tuilab.drawings.picture import Canvas, Picture, arm_role, centre, count_cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.text.display import show
from tuilab.text.words import clock, format_number

_MOST_ROWS = 6  # of one strip
_LEAST_ROOM = 8  # columns, below which there are only names and values
_LEFT_OUT_COLUMNS = 4  # for how many rows are left out
_LABEL_LIMIT, _TEXT_LIMIT = 20, 300
_MOST_SPAN = 1e300  # more seconds cannot be divided into columns


@dataclass(frozen=True, eq=False)
class Strip:
    """A line as columns. The height of a column is the greatest value in it, or the least."""

    label: str
    line: Line
    unit: str = ""
    top: float | None = None  # the value of a full column; None: the greatest value
    is_least: bool = False  # whether a column shows its least value
    style: int = 0


@dataclass(frozen=True)
class StripMarks:
    """The times of a condition: begin and end in seconds, and whether it is grave."""

    label: str
    spans: tuple[tuple[float, float, bool], ...] = ()


@dataclass(frozen=True)
class TextRow:
    """A row of text. Without a label it is a heading."""

    label: str
    text: str


Row = Strip | StripMarks | TextRow


def draw_strips(
    rows: Sequence[Row],
    width: int,
    height: int,
    symbols: Symbols = BRAILLE,
    *,
    span: tuple[float, float] = (0.0, 1.0),
    cursor: float | None = None,
) -> Picture:
    """Draw rows over a span of seconds. The strips share the room; rows without room are counted.

    The values at the right are those at the cursor. Without a cursor they are the last ones, which
    may have been read at different moments. If the cursor is not finite, no moment is shown.
    """
    canvas = Canvas(width, height)
    if not rows or not height:
        return canvas.picture()
    has_axis = height > len(rows)
    strips = sum(isinstance(row, Strip) for row in rows)
    strip_rows = (height - has_axis - len(rows) + strips) // max(strips, 1)
    strip_rows = max(1, min(strip_rows, _MOST_ROWS))
    label_columns = max(count_cells(show(row.label, _LABEL_LIMIT)) for row in rows)
    left = min(label_columns + 1, width // 2)
    values = []
    for row in rows:
        value = ""
        if isinstance(row, Strip):
            value = to_ascii(_describe_value(row, cursor), symbols)
        values.append(value)
    value_columns = max(map(len, values))
    frame = _Frame(canvas, symbols, left, width - left - value_columns - 1, span)
    y = 0
    for index, (row, value) in enumerate(zip(rows, values, strict=True)):
        row_height = strip_rows if isinstance(row, Strip) else 1
        if y + row_height > height:
            columns = max(value_columns, _LEFT_OUT_COLUMNS)
            left_out = f" +{len(rows) - index}".rjust(columns)
            canvas.put(width - columns, height - 1, left_out, "muted")
            break
        frame.put(row, y, row_height)
        if not isinstance(row, TextRow):
            frame.put_cursor(cursor, y, row_height)
        canvas.put(width - len(value), y + row_height - 1, value, "value")
        y += row_height
    if has_axis and y < height:
        moment = ""
        if strips:
            moment = to_ascii(_describe_moment(cursor), symbols)
        canvas.put(width - len(moment), y, moment, "muted")
        frame.put_axis(y, width - len(moment) - 2)
    return canvas.picture()


class _Frame:
    """The place of the strips, and how each kind of row is put there."""

    def __init__(
        self, canvas: Canvas, symbols: Symbols, left: int, room: int, span: tuple[float, float]
    ) -> None:
        """Set the place of the strips: `room` columns from column `left` on; 0 columns if too few.

        A span that cannot be divided into columns becomes the one from 0 to 1 second.
        """
        self.canvas = canvas
        self.symbols = symbols
        self.left = left
        self.room = room if room >= _LEAST_ROOM else 0
        low, high = span
        if not 0 < high - low < _MOST_SPAN:
            low = 0.0
            high = 1.0
        self.low = low
        self.high = high

    def put(self, row: Row, y: int, height: int) -> None:
        """Put the label of a row before the strips, and its strip, marks or text at the row `y`."""
        label = fit(show(row.label, _LABEL_LIMIT), max(self.left - 1, 0))
        label = to_ascii(label, self.symbols)
        if isinstance(row, TextRow):
            self._put_text(row.text, label, y)
            return
        role = "label"
        if isinstance(row, Strip):
            role = arm_role(row.style)
        self.canvas.put(0, y + height - 1, label, role)
        if not self.room:
            return
        if isinstance(row, StripMarks):
            self._put_marks(row, y)
        else:
            self._put_strip(row, y, height, role)

    def _put_text(self, text: str, label: str, y: int) -> None:
        """Put a text behind its label. Without a label it is a heading and begins at the left."""
        after = self.canvas.put(0, y, label, "label")
        start = 0
        role = "title"
        if label:
            start = self.left
            role = ""
        room = max(self.canvas.width - max(after, start), 0)
        text = fit(show(text, _TEXT_LIMIT), room)
        self.canvas.put(start, y, to_ascii(text, self.symbols), role)

    def _put_strip(self, row: Strip, y: int, height: int, role: str) -> None:
        """Put a column for each value. A finite value is an eighth of a row high at least."""
        values = column_values(row, self.low, self.high, self.room)
        finite = values[np.isfinite(values)]
        top = 0.0
        if row.top is not None:
            top = row.top
        elif len(finite):
            top = float(finite.max())
        bars = self.symbols.columns
        for x, value in enumerate(values.tolist()):
            if not math.isfinite(value):
                continue
            share = 0.0
            if top > 0:
                share = min(max(value / top, 0.0), 1.0)
            eighths = max(1, math.ceil(share * height * len(bars)))
            row_y = y + height - 1
            while eighths > 0:
                bar = bars[min(eighths, len(bars)) - 1]
                self.canvas.put(self.left + x, row_y, bar, role)
                eighths -= len(bars)
                row_y -= 1

    def _put_marks(self, row: StripMarks, y: int) -> None:
        """Mark the columns in which a condition lasted. Grave spans hide others in a column."""
        self.canvas.put(self.left, y, self.symbols.grid * self.room, "grid")
        places = set()  # of thousands of spans, many share their columns
        for begin, end, is_grave in row.spans:
            if begin <= end and end >= self.low and begin <= self.high:
                first = self._column(max(begin, self.low))
                last = self._column(min(end, self.high))
                places.add((is_grave, first, last))
        for is_grave, first, last in sorted(places):  # grave ones last, so that they are visible
            mark = self.symbols.shades[2]
            role = "guide"
            if is_grave:
                mark = self.symbols.box
                role = "bad"
            self.canvas.put(self.left + first, y, mark * (last - first + 1), role)

    def put_cursor(self, cursor: float | None, y: int, height: int) -> None:
        """Put the cursor over the rows of a strip; nothing if there is none or it is outside."""
        if cursor is None or not self.low <= cursor <= self.high or not self.room:
            return
        column = self.left + self._column(cursor)
        rows = slice(y, y + height)
        columns = slice(column, column + 1)
        self.canvas.fill(rows, columns, self.symbols.vertical, "cursor", over=("grid",))
        # In full columns, the cursor is a colour.
        self.canvas.roles[rows, column] = self.canvas.role_number("cursor")

    def put_axis(self, y: int, end: int) -> None:
        """Write the ticks that have room before a column. The moment of the values is behind it."""
        if not self.room:
            return
        axis = x_axis(self.low, self.high, "time", max(2, self.room // 10))
        free = self.left
        for share, label in axis.visible_ticks:
            text = to_ascii(label, self.symbols)
            column = self.left + round(share * (self.room - 1))
            start = centre(column, len(text), self.canvas.width)
            if start >= free and start + len(text) <= end:
                free = self.canvas.put(start, y, text, "label") + 2

    def _column(self, x: float) -> int:
        return min(int((x - self.low) / (self.high - self.low) * self.room), self.room - 1)


def column_values(strip: Strip, low: float, high: float, count: int) -> NDArray[np.float64]:
    """Return the value of each column of time, NaN where nothing was read.

    A reading counts until the next one. The last one, and one before a gap, count for some time.
    """
    line = strip.line
    values = np.full(count, np.nan)
    if not len(line.xs):
        return values
    spacing = 0.0
    if len(line.xs) > 1:
        spacing = float(np.median(np.diff(line.xs)))
    end = max(line.last_x, float(line.xs[-1])) + PATIENCE * spacing
    edges = np.linspace(low, high, count + 1)
    readings = np.searchsorted(line.xs, edges, "right") - 1  # the reading that counts at each edge
    for column in range(count):
        first = int(readings[column])
        last = int(readings[column + 1])
        is_broken = 0 <= first < len(line.breaks) and bool(line.breaks[first])
        if first < 0 or is_broken or edges[column] > end:
            first += 1  # the reading before this column does not reach into it
        if first > last:
            continue
        if strip.is_least:
            values[column] = np.min(line.lows[first : last + 1])
        else:
            values[column] = np.max(line.highs[first : last + 1])
    return values


def _describe_moment(cursor: float | None) -> str:
    """Return the moment of the values; empty if the cursor is at none."""
    if cursor is None:
        return "last"
    if not math.isfinite(cursor):
        return ""
    return f"at {clock(cursor, 0.1)}"


def _describe_value(strip: Strip, cursor: float | None) -> str:
    """Return the value at the cursor; without one, the last value."""
    line = strip.line
    if cursor is None:
        if not len(line.xs):
            return "n/a"
        return format_number(line.last, strip.unit)
    point = find_point(line, cursor)
    if point is None:
        return "n/a"
    values = line.lows if strip.is_least else line.highs
    return format_number(float(values[point]), strip.unit)
