"""Measured values with their intervals on one axis, and the noise floor as a band: the step times of arms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.axis import Axis, y_axis
from tuilab.drawings.legend import letter
from tuilab.drawings.picture import ARMS, Canvas, Picture, cell_codes, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.blocks import NoiseFloor
from tuilab.record.finding_words import noise_words
from tuilab.record.series import wants_log
from tuilab.text.display import show, told_apart
from tuilab.text.words import format_number

_NAME_SHARE = 3  # names take at most a third of the width
_GAP = 2  # columns between a value and what stands behind it
_LEAST_ROOM = 12  # columns that are left to a bar at least, if text is written behind it
_FROM_ZERO = (
    0.7  # values that differ by more than this share one axis from 0, so that lengths compare
)


@dataclass(frozen=True)
class MeasuredSpread:
    """A value, its interval (drawn as a box), and the least and greatest that were seen (drawn as whiskers)."""

    label: str
    value: float
    low: float
    high: float
    least: float
    greatest: float
    style: int = 0
    aside: str = ""  # more to show behind the value, in grey: the median on the other clock


def draw_spreads(
    spreads: Sequence[MeasuredSpread],
    width: int,
    height: int,
    symbols: Symbols = BRAILLE,
    *,
    unit: str = "",
    noise: NoiseFloor | None = None,
) -> Picture:
    """Draw a row for each spread over a common axis, and as a band the noise around the one that was held against itself."""
    canvas = Canvas(width, height)
    known = [spread for spread in spreads if all(map(math.isfinite, _ends(spread)))]
    if not known:
        canvas.put(0, 0, to_ascii("nothing measured yet", symbols), "muted")
        return canvas.picture()
    texts = [
        to_ascii(format_number(spread.value, unit, 3) if spread in known else "n/a", symbols)
        for spread in spreads
    ]
    stride = 2 if height >= 2 * len(spreads) + 2 else 1
    names = _put_names(canvas, spreads, symbols, stride)
    room = width - names - max(map(len, texts)) - 1
    asides = [to_ascii(spread.aside, symbols) for spread in spreads]
    aside_columns = _aside_columns(asides, room)
    room -= aside_columns
    axis = spread_axis(known, unit, max(room // 14, 2))
    if (base := find_base(known, noise)) is None:
        noise = None
    elif room >= 3:
        _put_band(
            canvas, base.value, noise, axis, names, room, stride * (len(spreads) - 1) + 1, symbols
        )
    for y, (spread, text) in enumerate(zip(spreads, texts, strict=True)):
        if spread in known and room >= 3:
            _put_spread(canvas, spread, axis, names, room, stride * y, symbols)
        canvas.put(width - aside_columns - len(text), stride * y, text, "value")
        if aside_columns or stride > 1:
            below = 0 if aside_columns else 1
            canvas.put(max(width - len(asides[y]), 0), stride * y + below, asides[y], "muted")
    _put_foot(canvas, axis, noise, names, room, stride * len(spreads), symbols)
    return canvas.picture()


def find_base(spreads: Sequence[MeasuredSpread], noise: NoiseFloor | None) -> MeasuredSpread | None:
    """Return the spread that noise is of, if it is drawn; where that is not known, the first."""
    if not noise or not noise.arm:
        return spreads[0]
    return next((one for one in spreads if one.label == show(noise.arm)), None)


def spread_axis(spreads: Sequence[MeasuredSpread], unit: str, count: int) -> Axis:
    """Return the axis that some spreads share, with about `count` ticks."""
    ends = [end for spread in spreads for end in _ends(spread)]
    least, greatest = min(ends), max(ends)
    is_log = wants_log(ends, unit)
    is_from_zero = not is_log and 0 < least < _FROM_ZERO * greatest
    return y_axis(0.0 if is_from_zero else least, greatest, unit, count, is_log=is_log)


def _ends(spread: MeasuredSpread) -> tuple[float, ...]:
    return spread.value, spread.low, spread.high, spread.least, spread.greatest


def _put_names(
    canvas: Canvas, spreads: Sequence[MeasuredSpread], symbols: Symbols, stride: int
) -> int:
    """Write the names at the left, `stride` rows apart, and return the column after all of them."""
    limit = max(canvas.width // _NAME_SHARE - 1, 1)
    labels = told_apart([spread.label for spread in spreads], max(limit - 2, 3))
    names = [
        to_ascii(fit(f"{letter(spread.style)} {labels[spread.label]}", limit), symbols)
        for spread in spreads
    ]
    for y, (name, spread) in enumerate(zip(names, spreads, strict=True)):
        canvas.put(0, stride * y, name, ARMS[spread.style % len(ARMS)])
    return max(len(cell_codes(name)) for name in names) + 1


def _aside_columns(asides: Sequence[str], room: int) -> int:
    """Return the columns that texts behind the values take; 0 if they go below the values, or have no room at all."""
    widest = max(map(len, asides), default=0)
    if not widest:
        return 0
    return widest + _GAP if room - widest - _GAP >= _LEAST_ROOM else 0


def _put_spread(
    canvas: Canvas,
    spread: MeasuredSpread,
    axis: Axis,
    left: int,
    room: int,
    y: int,
    symbols: Symbols,
) -> None:
    role = ARMS[spread.style % len(ARMS)]
    least, low, mid, high, greatest = (
        left + round(axis.share(value) * (room - 1))
        for value in (spread.least, spread.low, spread.value, spread.high, spread.greatest)
    )
    line = symbols.horizontal * (greatest - least - 1)
    canvas.put(
        least,
        y,
        symbols.left + line + symbols.right if greatest > least else symbols.vertical,
        role,
    )
    canvas.put(low, y, symbols.bar * (high - low + 1), role)
    canvas.put(mid, y, symbols.box, role)


def _put_band(
    canvas: Canvas,
    base: float,
    noise: NoiseFloor | None,
    axis: Axis,
    left: int,
    room: int,
    rows: int,
    symbols: Symbols,
) -> None:
    if noise is None or not math.isfinite(noise.share):
        return
    start, end = (
        round(axis.share(base * (1 + side * noise.share)) * (room - 1)) for side in (-1, 1)
    )
    start, end = max(min(start, end), 0), min(max(start, end), room - 1)
    for y in range(rows):
        canvas.put(left + start, y, symbols.shades[1] * (end - start + 1), "band")


def _put_foot(
    canvas: Canvas,
    axis: Axis,
    noise: NoiseFloor | None,
    left: int,
    room: int,
    y: int,
    symbols: Symbols,
) -> None:
    """Write the ticks and whether they are logarithmic, and below them what the band is."""
    free = left
    if axis.is_log and left > len("log"):
        canvas.put(0, y, "log", "muted")
    for share, label in axis.ticks:
        label = to_ascii(label, symbols)
        start = min(
            max(left + round(share * (room - 1)) - len(label) // 2, 0), canvas.width - len(label)
        )
        if start >= free and -1e-9 <= share <= 1 + 1e-9:
            free = canvas.put(start, y, label, "label") + 2
    if noise is not None and math.isfinite(noise.share):
        canvas.put(
            0, y + 1, to_ascii(f"{symbols.shades[1]} {noise_words(noise)}", symbols), "muted"
        )
