"""Values with names along one line: where the dtypes end, where a sum stalls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tuilab.drawings.picture import ARMS, Canvas, Picture, cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, plain
from tuilab.text import show
from tuilab.words import number

Scale = Literal["linear", "log", "symlog"]


@dataclass(frozen=True)
class Mark:
    """A value and its name."""

    value: float
    name: str
    look: int = 0


def draw_number_line(
    marks: Sequence[Mark], width: int, height: int, symbols: Symbols = BRAILLE, *, scale: Scale = "linear", unit: str = ""
) -> Picture:
    """Draw marks on a line with their names above it; what has no place there is listed below."""
    placed = [mark for mark in marks if math.isfinite(mark.value) and (scale != "log" or mark.value > 0)]
    shares = _shares([mark.value for mark in placed], scale)
    base = height - 2
    ways = [_laid_out(list(zip(shares, placed, strict=True)), width, height, unit, symbols, way) for way in (False, True)]
    canvas, lost = min(ways, key=lambda way: len(way[1]))
    others = [*(mark for mark in marks if mark not in placed), *lost]
    if others:
        text = ", ".join(_text(mark, unit) for mark in others)
        canvas.put(0, base + 1, plain(fit(f"not shown: {text}", max(width, 0)), symbols), "bad")
    return canvas.picture()


def _laid_out(
    placed: list[tuple[float, Mark]], width: int, height: int, unit: str, symbols: Symbols, is_outward: bool
) -> tuple[Canvas, list[Mark]]:
    """Return the line with its names, which reach outwards or inwards, and the marks whose name found no room."""
    canvas = Canvas(width, height)
    canvas.put(0, height - 2, symbols.horizontal * width, "axis")
    placed = sorted(placed, key=lambda pair: abs(pair[0] - 0.5), reverse=is_outward)
    return canvas, [mark for share, mark in placed if not _put_mark(canvas, mark, share, unit, symbols, is_outward)]


def _text(mark: Mark, unit: str) -> str:
    return f"{show(mark.name, 60)} {number(mark.value, unit)}".strip()


def _put_mark(canvas: Canvas, mark: Mark, share: float, unit: str, symbols: Symbols, is_outward: bool) -> bool:
    """Put a mark on the line and its name in the lowest row where name and stem have room; say whether there was one."""
    base = canvas.height - 2
    role, column = ARMS[mark.look % len(ARMS)], round(share * (canvas.width - 1))
    text = plain(fit(_text(mark, unit), max(canvas.width // 2, 1)), symbols)
    length = len(cells(text))
    ends_here = (share > 0.5) != is_outward
    start = max(min(column - length + 1 if ends_here else column, canvas.width - length), 0)
    canvas.put(column, base, symbols.point, role)
    for y in range(base - 1, -1, -1):
        around = slice(max(start - 1, 0), start + length + 1)
        if (canvas.codes[y, around] == ord(" ")).all() and (canvas.codes[y:base, column] == ord(" ")).all():
            canvas.fill(slice(y + 1, base), slice(column, column + 1), symbols.vertical, role)
            canvas.put(start, y, text, role)
            return True
    return False


def _shares(values: list[float], scale: Scale) -> list[float]:
    """Return where values are between the least and the greatest, 0 to 1."""
    if scale == "log":
        values = [math.log10(value) for value in values]
    if scale == "symlog":
        unit = min((abs(value) for value in values if value), default=1.0)
        values = [math.copysign(_log_of_ratio(abs(value), unit), value) for value in values]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = high / 2 - low / 2
    return [(value / 2 - low / 2) / span if span > 0 else 0.5 for value in values]


def _log_of_ratio(value: float, unit: float) -> float:
    """Return log10(1 + value / unit), also where the quotient is too great."""
    logs = math.log10(value) - math.log10(unit) if value else -math.inf
    return math.log10(1 + 10**logs) if logs < 15 else logs
