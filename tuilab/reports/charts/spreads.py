"""Draw the spreads of arms, and the interval of an estimate, each on an axis of its own.

An arm is one of the compared variants. Its spread is the range of its times: the least, the middle
half, the median and the greatest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.arrays import np
from tuilab.drawings.axis import Axis
from tuilab.drawings.spreads import MeasuredSpread, find_base, spread_axis
from tuilab.record.blocks import Measure, NoiseFloor
from tuilab.record.finding_words import noise_words
from tuilab.reports.charts.frame import WIDTH, Tick, letter
from tuilab.text.display import distinct_labels
from tuilab.text.words import format_number

_TIME = Measure()
_LABEL_LENGTH = 56  # characters that have room above a row
_TICKS = 5
_DIGITS = 3
# Pixels of the chart of times.
_LEFT, _RIGHT = 8, 560
_ROW_HEIGHT = 40
_FIRST_ROW_Y = 28  # of the middle of the row
_AXIS_HEIGHT = 38
# Pixels of the drawing of an interval.
_INTERVAL_WIDTH, _INTERVAL_HEIGHT = 180, 34
_INTERVAL_LEFT, _INTERVAL_ROOM = 8, 164
_HALF_CHARACTER = 4  # labels are centred
_LABEL_GAP = 12
_MIN_LOG_SPAN = 0.02  # so that nearly equal numbers do not fill the width


@dataclass(frozen=True)
class SpreadRow:
    """The spread of one arm."""

    spread: MeasuredSpread
    letter: str
    label: str  # `spread.label`, shortened
    words: str
    ends: tuple[str, ...]  # least, middle half, greatest in words
    y: float
    least: float
    low: float
    mid: float
    high: float
    greatest: float


@dataclass(frozen=True)
class TimingShapes:
    """The chart of the times of all arms; it has no rows if nothing finite was timed."""

    rows: tuple[SpreadRow, ...] = ()
    ticks: tuple[Tick, ...] = ()
    band: tuple[float, float] | None = None  # the noise floor around the arm that was timed twice
    noise: str = ""
    height: int = 0
    title: str = "time of a call"
    sample: str = "block"
    width: int = WIDTH
    left: int = _LEFT
    right: int = _RIGHT

    @property
    def has_asides(self) -> bool:
        """Whether a row shows the median on the other clock."""
        return any(row.spread.aside for row in self.rows)


def draw_spreads(
    spreads: Sequence[MeasuredSpread],
    noise: NoiseFloor | None,
    measure: Measure = _TIME,
    *,
    title: str = "time of a call",
) -> TimingShapes:
    """Return the chart of the times of the arms, or of what else was measured, on one axis.

    Arms without finite times are left out; without any other arm the chart is empty. The band shows
    the noise floor if the arm that was timed twice is drawn.
    """
    finite = [spread for spread in spreads if spread.is_finite]
    if not finite:
        return TimingShapes()
    axis = spread_axis(finite, measure.unit, _TICKS)
    ticks = []
    for share, label in axis.ticks:
        if 0 <= share <= 1:
            ticks.append(Tick(_share_to_x(share), label))
    base = find_base(finite, noise)
    band = None
    band_words = ""
    if base and noise:
        low = base.value * (1 - noise.share)
        high = base.value * (1 + noise.share)
        band = (_value_to_x(low, axis), _value_to_x(high, axis))
        band_words = noise_words(noise)
    return TimingShapes(
        rows=tuple(_make_rows(finite, axis, measure.unit)),
        ticks=tuple(ticks),
        band=band,
        noise=band_words,
        height=_ROW_HEIGHT * len(finite) + _AXIS_HEIGHT,
        title=title,
        sample=measure.sample,
    )


def _make_rows(spreads: Sequence[MeasuredSpread], axis: Axis, unit: str) -> list[SpreadRow]:
    """Return the rows of the arms from the top down, with every place in pixels."""
    labels = distinct_labels([spread.label for spread in spreads], _LABEL_LENGTH)
    rows = []
    for index, spread in enumerate(spreads):
        ends = (spread.least, spread.low, spread.high, spread.greatest)
        row = SpreadRow(
            spread=spread,
            letter=letter(spread.style),
            label=labels[spread.label],
            words=format_number(spread.value, unit, _DIGITS),
            ends=tuple(format_number(end, unit, _DIGITS) for end in ends),
            y=float(_FIRST_ROW_Y + _ROW_HEIGHT * index),
            least=_value_to_x(spread.least, axis),
            low=_value_to_x(spread.low, axis),
            mid=_value_to_x(spread.value, axis),
            high=_value_to_x(spread.high, axis),
            greatest=_value_to_x(spread.greatest, axis),
        )
        rows.append(row)
    return rows


def _value_to_x(value: float, axis: Axis) -> float:
    return _share_to_x(min(max(axis.share(value), 0.0), 1.0))


def _share_to_x(share: float) -> float:
    return round(_LEFT + share * (_RIGHT - _LEFT), 1)


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval and the claimed bound, on a logarithmic axis around 1."""

    low: float
    mid: float
    high: float
    unity: float  # where a ratio of 1 is
    bound: float
    band: tuple[float, float] | None  # the noise floor around 1
    label: str = ""  # of the bound
    has_unity_label: bool = True  # whether there is room for it beside that of the bound
    width: int = _INTERVAL_WIDTH
    height: int = _INTERVAL_HEIGHT


def draw_interval(
    estimate: float, low: float, high: float, bound: float, noise: float | None
) -> Interval | None:
    """Return the drawing of an interval; None if one of the numbers has no logarithm."""
    values = [estimate, low, high, bound, 1.0]
    if not all(0 < value < math.inf for value in values):
        return None
    logs = np.log(np.array(values))
    least = float(logs.min())
    span = max(float(logs.max()) - least, _MIN_LOG_SPAN)

    def to_x(value: float) -> float:
        return round(_INTERVAL_LEFT + (math.log(value) - least) / span * _INTERVAL_ROOM, 1)

    band = None
    if noise and noise < 1:
        band = (max(to_x(1 - noise), 1.0), min(to_x(1 + noise), _INTERVAL_WIDTH - 1.0))
    label = f"{bound:.4g}×"
    distance = abs(to_x(bound) - to_x(1.0))
    return Interval(
        low=to_x(low),
        mid=to_x(estimate),
        high=to_x(high),
        unity=to_x(1.0),
        bound=to_x(bound),
        band=band,
        label=label,
        has_unity_label=distance > _LABEL_GAP + _HALF_CHARACTER * len(label),
    )
