"""Several things along one axis of time in a few rows: of each a strip of columns, its name before it and its value behind it.

What held for a while, as a reason why clocks were down, is a strip of marks; what has no time is a row of words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.arrays import NDArray, np
from tuilab.drawings.axis import x_axis
from tuilab.drawings.lines import PATIENCE, Line, find_point
from tuilab.drawings.picture import ARMS, Canvas, Picture, cell_codes, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.text.display import show
from tuilab.text.words import clock, format_number

_MOST_ROWS = 6  # of one strip
_LEAST_ROOM = 8  # columns, below which there are only names and values


@dataclass(frozen=True, eq=False)
class Strip:
    """A line; a column is as high as the greatest value in it, or the least, of `top`."""

    label: str
    line: Line
    unit: str = ""
    top: float | None = None  # None: the greatest value that there is
    is_least: bool = False
    style: int = 0


@dataclass(frozen=True)
class StripMarks:
    """When something held: begin, end, and whether it is grave."""

    label: str
    spans: tuple[tuple[float, float, bool], ...] = ()


@dataclass(frozen=True)
class TextRow:
    """A row of text, or a heading where there is no label."""

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
    """Draw rows over a span of seconds; strips share what room there is, and what does not fit is counted.

    The values at the right are those at the cursor, else the last, of which each may have been read at another moment.
    """
    canvas = Canvas(width, height)
    if not rows or not height:
        return canvas.picture()
    has_axis = height > len(rows)
    strips = sum(isinstance(row, Strip) for row in rows)
    each = max(1, min((height - has_axis - len(rows) + strips) // max(strips, 1), _MOST_ROWS))
    left = min(max(len(cell_codes(show(row.label, 20))) for row in rows) + 1, width // 2)
    values = {
        at: to_ascii(_value(row, cursor), symbols)
        for at, row in enumerate(rows)
        if isinstance(row, Strip)
    }
    room = max(map(len, values.values()), default=0)
    frame = _Frame(canvas, symbols, left, width - left - room - 1, span)
    y = 0
    for at, row in enumerate(rows):
        tall = each if isinstance(row, Strip) else 1
        if y + tall > height:
            canvas.put(
                width - max(room, 4), height - 1, f" +{len(rows) - at}".rjust(max(room, 4)), "muted"
            )
            break
        frame.put(row, y, tall)
        if not isinstance(row, TextRow):
            frame.put_cursor(cursor, y, tall)
        canvas.put(width - len(values.get(at, "")), y + tall - 1, values.get(at, ""), "value")
        y += tall
    if has_axis and y < height:
        word = to_ascii(_moment(cursor), symbols) if values else ""
        canvas.put(width - len(word), y, word, "muted")
        frame.put_axis(y, width - len(word) - 2)
    return canvas.picture()


class _Frame:
    """Where the strips are, and how each kind of row is put there."""

    def __init__(
        self, canvas: Canvas, symbols: Symbols, left: int, room: int, span: tuple[float, float]
    ) -> None:
        self.canvas, self.symbols, self.left = canvas, symbols, left
        self.room = room if room >= _LEAST_ROOM else 0
        low, high = span
        self.low, self.high = (
            (low, high) if 0 < high - low < 1e300 else (0.0, 1.0)
        )  # more cannot be divided into columns

    def put(self, row: Row, y: int, tall: int) -> None:
        label = to_ascii(fit(show(row.label, 20), max(self.left - 1, 0)), self.symbols)
        if isinstance(row, TextRow):
            after = self.canvas.put(0, y, label, "label") if label else 0
            text = fit(
                show(row.text, 300),
                max(self.canvas.width - max(after, self.left if label else 0), 0),
            )
            self.canvas.put(
                self.left if label else 0, y, to_ascii(text, self.symbols), "" if label else "title"
            )
            return
        role = ARMS[row.style % len(ARMS)] if isinstance(row, Strip) else "label"
        self.canvas.put(0, y + tall - 1, label, role)
        if not self.room:
            return
        if isinstance(row, StripMarks):
            self._put_marks(row, y)
        else:
            self._put_strip(row, y, tall, role)

    def _put_strip(self, row: Strip, y: int, tall: int, role: str) -> None:
        values = column_values(row, self.low, self.high, self.room)
        known = values[np.isfinite(values)]
        top = row.top if row.top is not None else float(known.max()) if len(known) else 0.0
        levels = len(self.symbols.columns)
        for x, value in enumerate(values.tolist()):
            if math.isfinite(value):
                filled = max(
                    1,
                    math.ceil(min(max(value / top if top > 0 else 0.0, 0.0), 1.0) * tall * levels),
                )
                for up in range(-(-filled // levels)):
                    self.canvas.put(
                        self.left + x,
                        y + tall - 1 - up,
                        self.symbols.columns[min(filled - up * levels, levels) - 1],
                        role,
                    )

    def _put_marks(self, row: StripMarks, y: int) -> None:
        self.canvas.put(self.left, y, self.symbols.grid * self.room, "grid")
        seen = (
            one
            for one in row.spans
            if one[0] <= one[1] and one[1] >= self.low and one[0] <= self.high
        )
        # of thousands many share a column, where the grave one is to be seen
        places = {
            (grave, self._column(max(begin, self.low)), self._column(min(end, self.high)))
            for begin, end, grave in seen
        }
        for is_grave, first, last in sorted(places):
            mark = self.symbols.box if is_grave else self.symbols.shades[2]
            self.canvas.put(
                self.left + first, y, mark * (last - first + 1), "bad" if is_grave else "guide"
            )

    def put_cursor(self, cursor: float | None, y: int, tall: int) -> None:
        if cursor is not None and self.low <= cursor <= self.high and self.room:
            column = self.left + self._column(cursor)
            self.canvas.fill(
                np.s_[y : y + tall],
                np.s_[column : column + 1],
                self.symbols.vertical,
                "cursor",
                over=("grid",),
            )
            self.canvas.roles[y : y + tall, column] = self.canvas.role_number(
                "cursor"
            )  # columns that are full, too

    def put_axis(self, y: int, end: int) -> None:
        """Write the ticks that have room before a column, from which on the values are said to be of some moment."""
        if not self.room:
            return
        axis, free = x_axis(self.low, self.high, "time", max(2, self.room // 10)), self.left
        for share, label in axis.ticks:
            text = to_ascii(label, self.symbols)
            start = min(
                max(self.left + round(share * (self.room - 1)) - len(text) // 2, 0),
                self.canvas.width - len(text),
            )
            if -1e-9 <= share <= 1 + 1e-9 and start >= free and start + len(text) <= end:
                free = self.canvas.put(start, y, text, "label") + 2

    def _column(self, x: float) -> int:
        return min(int((x - self.low) / (self.high - self.low) * self.room), self.room - 1)


def column_values(strip: Strip, low: float, high: float, count: int) -> NDArray[np.float64]:
    """Return the value of each column of time: a reading counts until the next one; NaN where nothing was read."""
    line = strip.line
    found = np.full(count, np.nan)
    if not len(line.xs):
        return found
    values, choose = (line.lows, np.min) if strip.is_least else (line.highs, np.max)
    spacing = float(np.median(np.diff(line.xs))) if len(line.xs) > 1 else 0.0
    end = max(line.last_x, float(line.xs[-1])) + PATIENCE * spacing
    edges = np.linspace(low, high, count + 1)
    before = np.searchsorted(line.xs, edges, "right") - 1  # the reading that counts at each edge
    for column in range(count):
        first, last = int(before[column]), int(before[column + 1])
        is_broken = 0 <= first < len(line.breaks) and bool(line.breaks[first])
        if first < 0 or is_broken or edges[column] > end:
            first += 1  # the reading before this column does not reach into it
        if first <= last:
            found[column] = choose(values[first : last + 1])
    return found


def _moment(cursor: float | None) -> str:
    """Return of when the values are."""
    if cursor is None:
        return "last"
    return f"at {clock(cursor, 0.1)}" if math.isfinite(cursor) else ""


def _value(strip: Strip, cursor: float | None) -> str:
    """Return the last value, or the one at the cursor."""
    line = strip.line
    if cursor is None:
        return format_number(line.last, strip.unit) if len(line.xs) else "n/a"
    at = find_point(line, cursor)
    if at is None:
        return "n/a"
    return format_number(float((line.lows if strip.is_least else line.highs)[at]), strip.unit)
