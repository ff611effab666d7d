"""Measured values with their intervals on one axis, and the noise floor as a band.

They show the step times of arms, which are the variants that a scenario compares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.axis import Axis, y_axis
from tuilab.drawings.legend import letter
from tuilab.drawings.picture import Canvas, Picture, arm_role, centre, count_cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.blocks import NoiseFloor
from tuilab.record.finding_words import noise_words
from tuilab.record.series import wants_log
from tuilab.text.display import distinct_labels, show
from tuilab.text.words import format_number

_GAP = 2  # columns between a value and the text behind it
_LEAST_ROOM = 3  # columns, below which there is no bar
_LEAST_ROOM_BESIDE_ASIDES = 12  # columns that are left to a bar at least, if texts follow values
# Values that differ by more than this factor share an axis from 0, so that lengths compare.
_FROM_ZERO = 0.7


@dataclass(frozen=True)
class MeasuredSpread:
    """A value, its interval (drawn as a box), and its least and greatest (drawn as whiskers)."""

    label: str
    value: float
    low: float
    high: float
    least: float
    greatest: float
    style: int = 0
    aside: str = ""  # shown in grey behind the value: the median on the other clock

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.value, self.low, self.high, self.least, self.greatest

    @property
    def is_finite(self) -> bool:
        """Whether the spread can be drawn on an axis."""
        return all(map(math.isfinite, self.numbers))


def draw_spreads(
    spreads: Sequence[MeasuredSpread],
    width: int,
    height: int,
    symbols: Symbols = BRAILLE,
    *,
    unit: str = "",
    noise: NoiseFloor | None = None,
) -> Picture:
    """Draw a row for each spread over a common axis, or a note if none is finite.

    A band shows the noise around the arm that was compared with itself. Texts beside the values go
    below them if there is too little room.
    """
    canvas = Canvas(width, height)
    finite = [spread for spread in spreads if spread.is_finite]
    if not finite:
        canvas.put(0, 0, to_ascii("nothing measured yet", symbols), "muted")
        return canvas.picture()
    texts = []
    for spread in spreads:
        text = "n/a"
        if spread.is_finite:
            text = to_ascii(format_number(spread.value, unit, 3), symbols)
        texts.append(text)
    stride = 2 if height >= 2 * len(spreads) + 2 else 1
    left = _put_names(canvas, spreads, symbols, stride)
    room = width - left - max(map(len, texts)) - 1
    asides = [to_ascii(spread.aside, symbols) for spread in spreads]
    aside_columns = _aside_columns(asides, room)
    room -= aside_columns
    axis = spread_axis(finite, unit, max(room // 14, 2))
    base = find_base(finite, noise)
    if noise is not None and (base is None or not math.isfinite(noise.share)):
        noise = None
    if noise is not None and base is not None and room >= _LEAST_ROOM:
        rows = stride * (len(spreads) - 1) + 1
        _put_band(canvas, base.value, noise.share, axis, left, room, rows, symbols)
    for index, (spread, text, aside) in enumerate(zip(spreads, texts, asides, strict=True)):
        y = stride * index
        if spread.is_finite and room >= _LEAST_ROOM:
            _put_spread(canvas, spread, axis, left, room, y, symbols)
        canvas.put(width - aside_columns - len(text), y, text, "value")
        if aside_columns:
            canvas.put(max(width - len(aside), 0), y, aside, "muted")
        elif stride > 1:
            canvas.put(max(width - len(aside), 0), y + 1, aside, "muted")
    _put_foot(canvas, axis, noise, left, room, stride * len(spreads), symbols)
    return canvas.picture()


def find_base(spreads: Sequence[MeasuredSpread], noise: NoiseFloor | None) -> MeasuredSpread | None:
    """Return the spread of the arm that the noise is of, or None if it is not drawn.

    If that arm is not known, return the first spread.
    """
    if not noise or not noise.arm:
        return spreads[0]
    for spread in spreads:
        if spread.label == show(noise.arm):
            return spread
    return None


def spread_axis(spreads: Sequence[MeasuredSpread], unit: str, count: int) -> Axis:
    """Return the axis that spreads share, with about `count` ticks."""
    ends: list[float] = []
    for spread in spreads:
        ends += spread.numbers
    least = min(ends)
    greatest = max(ends)
    is_log = wants_log(ends, unit)
    if not is_log and 0 < least < _FROM_ZERO * greatest:
        least = 0.0
    return y_axis(least, greatest, unit, count, is_log=is_log)


def _put_names(
    canvas: Canvas, spreads: Sequence[MeasuredSpread], symbols: Symbols, stride: int
) -> int:
    """Write the names at the left, `stride` rows apart, and return the column after all of them."""
    limit = max(canvas.width // 3 - 1, 1)
    labels = distinct_labels([spread.label for spread in spreads], max(limit - 2, 3))
    columns = 0
    for index, spread in enumerate(spreads):
        name = fit(f"{letter(spread.style)} {labels[spread.label]}", limit)
        name = to_ascii(name, symbols)
        canvas.put(0, stride * index, name, arm_role(spread.style))
        columns = max(columns, count_cells(name))
    return columns + 1


def _aside_columns(asides: Sequence[str], room: int) -> int:
    """Return the columns that texts behind the values take.

    These are 0 if the texts go below the values, or have no room at all.
    """
    widest = max(map(len, asides), default=0)
    has_room = room - widest - _GAP >= _LEAST_ROOM_BESIDE_ASIDES
    if not widest or not has_room:
        return 0
    return widest + _GAP


def _put_spread(
    canvas: Canvas,
    spread: MeasuredSpread,
    axis: Axis,
    left: int,
    room: int,
    y: int,
    symbols: Symbols,
) -> None:
    """Put whiskers from the least to the greatest value, over them the box and the value."""

    def column_of(value: float) -> int:
        return left + round(axis.share(value) * (room - 1))

    role = arm_role(spread.style)
    least = column_of(spread.least)
    greatest = column_of(spread.greatest)
    whiskers = symbols.vertical
    if greatest > least:
        whiskers = symbols.left + symbols.horizontal * (greatest - least - 1) + symbols.right
    canvas.put(least, y, whiskers, role)
    low = column_of(spread.low)
    high = column_of(spread.high)
    canvas.put(low, y, symbols.bar * (high - low + 1), role)
    canvas.put(column_of(spread.value), y, symbols.box, role)


def _put_band(
    canvas: Canvas,
    base: float,
    noise_share: float,
    axis: Axis,
    left: int,
    room: int,
    rows: int,
    symbols: Symbols,
) -> None:
    """Put the noise floor, a share of the base to both sides, as a band over some rows."""
    below = round(axis.share(base * (1 - noise_share)) * (room - 1))
    above = round(axis.share(base * (1 + noise_share)) * (room - 1))
    start = max(min(below, above), 0)
    end = min(max(below, above), room - 1)
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
    """Write the ticks and whether they are logarithmic, and below them the meaning of the band."""
    free = left
    if axis.is_log and left > len("log"):
        canvas.put(0, y, "log", "muted")
    for share, label in axis.visible_ticks:
        label = to_ascii(label, symbols)
        start = centre(left + round(share * (room - 1)), len(label), canvas.width)
        if start >= free:
            free = canvas.put(start, y, label, "label") + 2
    if noise is not None:
        meaning = to_ascii(f"{symbols.shades[1]} {noise_words(noise)}", symbols)
        canvas.put(0, y + 1, meaning, "muted")
