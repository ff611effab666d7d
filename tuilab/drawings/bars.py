"""Named values as bars that begin at 0, each with its value at the right."""

import math
from collections.abc import Sequence

from tuilab.drawings.picture import Canvas, Picture, arm_role, count_cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import BarsShown
from tuilab.text.display import show
from tuilab.text.words import format_number

DIGITS = 5  # of a value: more than the length of a bar can show
_NAME_SHARE = 0.4  # of the width that names take at most
_LEAST_ROOM = 4  # columns, below which there are only names and values
_EIGHTHS = " ▏▎▍▌▋▊▉"


def unit_of_bars(bars: BarsShown) -> str:
    """Return the unit in which values are shown. That of "B" has powers of 1024."""
    if bars.unit == "B":
        return "bytes"
    return show(bars.unit, 20)


def find_axis_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis that bars share; 0 lies between them."""
    finite = [value for value in values if math.isfinite(value)]
    # The second 0 is for an empty list: min and max need two numbers.
    return min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)


def share_of(value: float, axis_ends: tuple[float, float]) -> float:
    """Return where a value is on the way from one end of the axis to the other."""
    low, high = axis_ends
    half_span = high / 2 - low / 2  # the difference of halves never overflows
    if not half_span > 0:
        return 0.0
    return (value / 2 - low / 2) / half_span


def make_bar(columns: float, symbols: Symbols) -> str:
    """Return a bar of that many columns, to an eighth of a column if the symbols allow it."""
    eighths = round(columns * 8)
    if not symbols.is_utf8:
        return symbols.box * round(eighths / 8)
    whole, rest = divmod(eighths, 8)
    bar = symbols.box * whole
    if rest:
        bar += _EIGHTHS[rest]
    return bar


def draw_bars(bars: BarsShown, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw a row for the title and one for each bar; without room only names and values."""
    canvas = Canvas(width, 1 + len(bars.names))
    title = fit(show(bars.title, 100), width)
    canvas.put(0, 0, to_ascii(title, symbols), "title")
    unit = unit_of_bars(bars)
    texts = []
    for value in bars.values:
        texts.append(to_ascii(format_number(value, unit, DIGITS), symbols))
    text_columns = max(map(count_cells, texts), default=0)
    name_limit = max(min(int(_NAME_SHARE * width), width - text_columns - 2), 1)
    names = []
    for name in bars.names:
        shown_name = fit(show(name, 100), name_limit)
        names.append(to_ascii(shown_name, symbols))
    left = max(map(count_cells, names), default=0) + 1
    room = width - left - text_columns - 1
    axis_ends = find_axis_ends(bars.values)
    for y, (name, value, text) in enumerate(zip(names, bars.values, texts, strict=True), 1):
        canvas.put(0, y, name, "label")
        if room >= _LEAST_ROOM:
            _put_bar(canvas, value, axis_ends, left, room, y, symbols)
        role = "value" if math.isfinite(value) else "bad"
        canvas.put(width - count_cells(text), y, text, role)
    return canvas.picture()


def _put_bar(
    canvas: Canvas,
    value: float,
    axis_ends: tuple[float, float],
    left: int,
    room: int,
    y: int,
    symbols: Symbols,
) -> None:
    """Put a bar from 0 to its value; a value that is not finite is a mark at 0."""
    zero = share_of(0.0, axis_ends) * room
    zero_column = int(zero)
    if not math.isfinite(value):
        canvas.put(left + min(zero_column, room - 1), y, symbols.nan, "bad")
        return
    end = share_of(value, axis_ends) * room
    if value < 0:
        first = min(int(end), max(zero_column - 1, 0))
        length = max(zero_column - first, 1)
        canvas.put(left + first, y, symbols.box * length, arm_role(1))
        return
    bar = make_bar(end - zero_column, symbols)
    if not bar and value > 0:  # a value that is tiny, but not 0, is still visible
        bar = "▏" if symbols.is_utf8 else symbols.vertical
    canvas.put(left + zero_column, y, bar, arm_role(0))
