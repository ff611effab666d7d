"""Named values as bars that begin at 0, each with its value at the right: lengths compare, and so do digits."""

import math
from collections.abc import Sequence

from tuilab.drawings.picture import ARMS, Canvas, Picture, cell_codes, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import BarsShown
from tuilab.text.display import show
from tuilab.text.words import format_number

DIGITS = 5  # of a value: what a bar cannot show
_NAME_SHARE = 0.4  # of the width that names take at most
_LEAST_ROOM = 4  # columns, below which there are only names and values


def unit_of_bars(bars: BarsShown) -> str:
    """Return the unit as values are told in it: bytes in powers of 1024."""
    return "bytes" if bars.unit == "B" else show(bars.unit, 20)


def find_axis_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis that bars share; 0 is between them."""
    known = [value for value in values if math.isfinite(value)]
    return min(0.0, *known, 0.0), max(0.0, *known, 0.0)


def share_of(value: float, reach: tuple[float, float]) -> float:
    """Return where a value is on the way from one end of the axis to the other."""
    low, high = reach
    span = high / 2 - low / 2  # halves, whose difference never overflows
    return (value / 2 - low / 2) / span if span > 0 else 0.0


def make_bar(columns: float, symbols: Symbols) -> str:
    """Return a bar of so many columns, to an eighth of one where there are characters for that."""
    eighths = round(columns * 8)
    whole, rest = divmod(eighths, 8) if symbols.is_utf8 else (round(eighths / 8), 0)
    return symbols.box * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def draw_bars(bars: BarsShown, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw a row for the title and one for each bar."""
    canvas = Canvas(width, 1 + len(bars.names))
    canvas.put(0, 0, to_ascii(fit(show(bars.title, 100), width), symbols), "title")
    unit = unit_of_bars(bars)
    values = [to_ascii(format_number(value, unit, DIGITS), symbols) for value in bars.values]
    right = max((len(cell_codes(value)) for value in values), default=0)
    most = max(min(int(_NAME_SHARE * width), width - right - 2), 1)
    names = [to_ascii(fit(show(name, 100), most), symbols) for name in bars.names]
    left = max((len(cell_codes(name)) for name in names), default=0) + 1
    room = width - left - right - 1
    reach = find_axis_ends(bars.values)
    for y, (name, value, text) in enumerate(zip(names, bars.values, values, strict=True), 1):
        canvas.put(0, y, name, "label")
        if room >= _LEAST_ROOM:
            _put_bar(canvas, value, reach, left, room, y, symbols)
        canvas.put(
            width - len(cell_codes(text)), y, text, "value" if math.isfinite(value) else "bad"
        )
    return canvas.picture()


def _put_bar(
    canvas: Canvas,
    value: float,
    reach: tuple[float, float],
    left: int,
    room: int,
    y: int,
    symbols: Symbols,
) -> None:
    """Put a bar from 0 to its value, to an eighth of a column where there are characters for that."""
    zero = share_of(0.0, reach) * room
    if not math.isfinite(value):
        canvas.put(left + min(int(zero), room - 1), y, symbols.nan, "bad")
        return
    end = share_of(value, reach) * room
    if value < 0:
        first = min(int(end), max(int(zero) - 1, 0))
        canvas.put(left + first, y, symbols.box * max(int(zero) - first, 1), ARMS[1])
        return
    text = make_bar(end - int(zero), symbols)
    if not text and value > 0:
        text = "▏" if symbols.is_utf8 else symbols.vertical  # however little, it is something
    canvas.put(left + int(zero), y, text, ARMS[0])
