"""Draw the gains of treatments: a bar with its interval, before a lighter bar up to its bound.

A treatment is a change to a training that `tuilab tune` tries. Its gain is a ratio of times, so
that the axis is logarithmic: a bar from 1 to 2 is as long as one from 1 to 0.5.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.reports.charts.frame import WIDTH, Tick
from tuilab.text.display import shorten, show

_LEFT, _RIGHT = 8, 540  # pixels; the words of a row are right of them
_ROW_HEIGHT = 38
_FIRST_ROW_Y = 28  # of the middle of the bar
_AXIS_HEIGHT = 32
_LABEL_LENGTH = 46  # characters that have room above a row, also on a phone
_LEAST_SPAN = math.log(1.2)  # of the axis, so that small differences do not fill the width
_MOST_RATIO = 1000.0  # farther ends are cut off
_ROOM = 1.05  # around the values, as a factor
_BOUND_REACH = 2.0  # an upper bound is shown up to this multiple of the greatest gain
_TICK_GAP = 52.0  # pixels between two ticks
_TICKS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5),
    *(1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
)


@dataclass(frozen=True)
class Gain:
    """The gain of a treatment: estimate, interval and upper bound are ratios of times."""

    label: str
    words: str
    kind: str  # gives the colour
    estimate: float
    low: float | None
    high: float | None
    at_most: float | None


@dataclass(frozen=True)
class GainRow:
    """A gain with its places in pixels."""

    gain: Gain
    label: str
    words: str
    y: float
    x: float  # of the bar
    width: float
    interval: tuple[float, float] | None
    bound: tuple[float, float] | None  # begin and width of the lighter bar
    is_bound_cut: bool  # the bound is beyond the end of the axis


@dataclass(frozen=True)
class GainShapes:
    """The chart of all gains; it has no rows if no gain can be drawn."""

    rows: tuple[GainRow, ...] = ()
    ticks: tuple[Tick, ...] = ()
    unity: float = 0.0  # where a ratio of 1 is
    height: int = 0
    width: int = WIDTH
    left: int = _LEFT
    right: int = _RIGHT


class _LogAxis:
    """A logarithmic axis between two ratios."""

    def __init__(self, low: float, high: float) -> None:
        missing = max(_LEAST_SPAN - math.log(high / low), 0.0)
        self.low = math.log(low) - missing / 2
        self.high = math.log(high) + missing / 2

    def to_x(self, ratio: float) -> float:
        """Return the pixel of a ratio; a ratio beyond an end is drawn at this end."""
        share = (math.log(ratio) - self.low) / (self.high - self.low)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (_RIGHT - _LEFT), 1)

    def ticks(self) -> list[Tick]:
        """Return ticks at round ratios: first 1, then those that do not touch another tick."""
        ticks = [Tick(self.to_x(1.0), "1×")]
        for ratio in sorted(_TICKS, key=lambda ratio: abs(math.log(ratio))):
            if not self.low <= math.log(ratio) <= self.high:
                continue
            x = self.to_x(ratio)
            if all(abs(x - tick.position) >= _TICK_GAP for tick in ticks):
                ticks.append(Tick(x, f"{ratio:g}×"))
        return sorted(ticks, key=lambda tick: tick.position)


def draw_gains(gains: Sequence[Gain]) -> GainShapes:
    """Return the chart of gains from the top down; gains that have no logarithm are left out."""
    drawn = [gain for gain in gains if _is_drawable(gain.estimate)]
    if not drawn:
        return GainShapes()
    axis = _make_axis(drawn)
    rows = []
    for number, gain in enumerate(drawn):
        rows.append(_make_row(gain, axis, float(_FIRST_ROW_Y + number * _ROW_HEIGHT)))
    return GainShapes(
        rows=tuple(rows),
        ticks=tuple(axis.ticks()),
        unity=axis.to_x(1.0),
        height=_ROW_HEIGHT * len(rows) + _AXIS_HEIGHT,
    )


def _is_drawable(ratio: float | None) -> bool:
    return ratio is not None and 1 / _MOST_RATIO <= ratio <= _MOST_RATIO


def _make_axis(gains: Sequence[Gain]) -> _LogAxis:
    """Return an axis with room for all intervals, and for bounds that are not far beyond them."""
    values = [1.0]
    for gain in gains:
        for end in (gain.estimate, gain.low, gain.high):
            if end is not None and _is_drawable(end):
                values.append(end)
    greatest = max(values)
    for gain in gains:
        if gain.at_most is not None and gain.at_most > greatest:
            values.append(min(gain.at_most, greatest * _BOUND_REACH))
    return _LogAxis(min(values) / _ROOM, max(values) * _ROOM)


def _make_row(gain: Gain, axis: _LogAxis, y: float) -> GainRow:
    unity = axis.to_x(1.0)
    end = axis.to_x(gain.estimate)
    interval = None
    if gain.low is not None and gain.high is not None:
        if _is_drawable(gain.low) and _is_drawable(gain.high):
            interval = (axis.to_x(gain.low), axis.to_x(gain.high))
    bound = None
    is_bound_cut = False
    if gain.at_most is not None and gain.at_most > 1:
        reach = min(gain.at_most, _MOST_RATIO)
        bound = (unity, round(axis.to_x(reach) - unity, 1))
        is_bound_cut = math.log(reach) > axis.high
    return GainRow(
        gain=gain,
        label=shorten(gain.label, _LABEL_LENGTH),
        words=show(gain.words, 60),
        y=y,
        x=min(unity, end),
        width=round(abs(end - unity), 1),
        interval=interval,
        bound=bound,
        is_bound_cut=is_bound_cut,
    )
