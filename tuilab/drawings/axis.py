"""An axis: its range, which changes rarely while data grows, and ticks at numbers that people would choose."""

import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache

from tuilab.arrays import NDArray, np
from tuilab.drawings.units import labels, log_label

_GREATEST = sys.float_info.max
_ENDS = 4  # how many ends of a range the span of the data is worth: fewer change more rarely and waste more
_LEAST_SPAN = 1e-321  # below it the arithmetic of steps ends
_MOST_POWER = 330.0  # no number has a greater power of ten, or a lesser one
_NEAR = 4.0  # times the least value: below it a logarithmic axis hardly differs from a linear one
_POWERS = 290.0  # up to which powers of ten can be added and divided
_FAR = 1e6  # times the span: as good as anywhere outside
_LADDER = (1, 1.5, 2.5, 4, 6, 10)
_CLOCK_STEPS = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
)


@dataclass(frozen=True)
class Axis:
    """A range; on a logarithmic axis `low` and `high` are powers of ten."""

    low: float
    high: float
    is_log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()  # share of the way from low to high, label

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where values are: 0 at the low end, 1 at the high end; what a logarithm cannot show is far below."""
        if self.is_log:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.where(values > 0, np.log10(values), -_FAR)
        scale = self._scale
        low, high = self.low * scale, self.high * scale
        with np.errstate(over="ignore", under="ignore"):
            shares: NDArray[np.float64] = np.clip(
                (values * scale - low) / (high - low), -_FAR, _FAR
            )
        return shares

    @property
    def _scale(self) -> float:
        """What all is multiplied by, or the span would overflow."""
        return 2.0**-4 if self.high > 1e300 or self.low < -1e300 else 1.0

    def share(self, value: float) -> float:
        """Return where one value is."""
        if self.is_log:
            return float(self.shares(np.array([value], np.float64))[0])
        scale = self._scale
        low, high = self.low * scale, self.high * scale
        return min(
            max((value * scale - low) / (high - low), -_FAR), _FAR
        )  # numpy takes ten times as long for one


@lru_cache(64)
def y_axis(
    low: float,
    high: float,
    unit: str,
    count: int,
    *,
    is_log: bool = False,
    is_growing: bool = False,
) -> Axis:
    """Return an axis for values from `low` to `high` with about `count` ticks; its ends are round numbers.

    Those of data that is growing are rounder, so that they change rarely: each time the whole chart is drawn again.
    """
    if is_log:
        return _log_axis(low, high, unit, count)
    if low >= 0 and low <= 0.25 * high:
        low = 0.0
    is_constant = low == high
    low, high = _widened(low, high)
    step = _nice_step(low, high, count, unit)
    if is_constant:  # in the middle, whatever number it is
        return replace(Axis(low, high), ticks=_ticks(Axis(low, high), step, unit, is_short=False))
    end = max(_nice_step(low, high, _ENDS, unit), step / 2) if is_growing else step / 2
    axis = Axis(
        max(-_GREATEST, math.floor(low / end) * end), min(_GREATEST, math.ceil(high / end) * end)
    )
    return replace(axis, ticks=_ticks(axis, step, unit, is_short=False))


@lru_cache(64)
def x_axis(
    low: float, high: float, unit: str, count: int, *, is_log: bool = False, is_whole: bool = True
) -> Axis:
    """Return an axis that shows exactly `low` to `high`, with at most about `count` ticks inside.

    With `is_log` these are powers of ten, and the ticks tell what they are the powers of. Along steps `is_whole` has no ticks
    between whole numbers.
    """
    low, high = _widened(low, high) if high <= low or high - low < _LEAST_SPAN else (low, high)
    if is_log:
        powers = _log_ticks(max(low, -_MOST_POWER), min(high, _MOST_POWER), max(count, 2))
        return Axis(
            low,
            high,
            ticks=tuple(((power - low) / (high - low), _step_label(power)) for power in powers),
        )
    least = 1.0 if not unit and is_whole else 0.0
    axis, step = Axis(low, high), max(_nice_step(low, high, count, unit), least)
    for finer in range(count + 1, 4 * count + 3):
        if _has_two(axis, step) or step <= least:
            break
        step = max(_nice_step(low, high, finer, unit), least)  # one tick alone tells no distance
    return replace(axis, ticks=_ticks(axis, step, unit, is_short=not unit))


def axis_start(first: float, last: float) -> float:
    """Return where an axis of x begins: at 0 where the data is not far from it, while a run goes on and afterwards."""
    return 0.0 if 0 <= first <= 0.25 * last or first == 0 else first


def growing_range(
    first: float, last: float, least: float, end: float | None = None
) -> tuple[float, float]:
    """Return a range for data that still grows: up to its known `end`, or further in steps, so that it changes rarely."""
    low = axis_start(first, last)
    if end is not None and math.isfinite(end) and end >= last and end > low:
        return low, end
    span = (
        max(last / 2 - low / 2, least / 2) * 2 if max(abs(low), abs(last)) < 1e300 else last - low
    )
    if not math.isfinite(span) or span <= 0:
        return low, last
    power = 10.0 ** math.floor(math.log10(span))
    rung = next((rung for rung in _LADDER if rung * power >= span * (1 - 1e-9)), 10)
    return low, min(low + rung * power, _GREATEST)


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return a range that is wide enough to divide."""
    if high / 2 - low / 2 >= max(abs(low), abs(high)) * 1e-9 and high / 2 - low / 2 > _LEAST_SPAN:
        return low, high
    margin = max(max(abs(low), abs(high)) * 0.1, _LEAST_SPAN) if low or high else 1.0
    return max(low - margin, -_GREATEST), min(high + margin, _GREATEST)


def _nice_step(low: float, high: float, count: int, unit: str) -> float:
    raw = min(max((high / 2 - low / 2) / max(count, 2) * 2, 1e-322), _GREATEST / 2)
    if unit == "bytes" and raw >= 1:
        return float(2.0 ** min(math.ceil(math.log2(raw)), 1023))
    if unit == "time" and raw > 0.5:
        return next(
            (float(step) for step in _CLOCK_STEPS if step >= raw),
            math.ceil(raw / 86_400) * 86_400.0,
        )
    power = 10.0 ** math.floor(math.log10(raw))
    return min(
        next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw * (1 - 1e-9)), 10 * power),
        _GREATEST,
    )


def _has_two(axis: Axis, step: float) -> bool:
    return math.floor(axis.high / step + 1e-9) > math.ceil(axis.low / step - 1e-9)


def _ticks(axis: Axis, step: float, unit: str, *, is_short: bool) -> tuple[tuple[float, str], ...]:
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    wholes = range(first, min(last, first + 50) + 1)
    values = [value for value in (whole * step for whole in wholes) if math.isfinite(value)]
    return tuple(
        zip(
            (axis.share(value) for value in values),
            labels(values, step, unit, is_short=is_short),
            strict=True,
        )
    )


def _log_axis(low: float, high: float, unit: str, count: int) -> Axis:
    """Return an axis from a 1, 2 or 5 times a power of ten to another, for near values between round numbers."""
    bottom, top = _log_end(low, -1), _log_end(high, 1)
    if 1.0001 * low < high < _NEAR * low and low > 1e-300 and high < 1e300:
        return _near_log_axis(low, high, unit, count)
    if top - bottom < 0.3:
        bottom, top = bottom - 0.3, top + 0.3
    wanted = _log_ticks(bottom, top, max(count, 2))
    marks = [((power - bottom) / (top - bottom), _power_label(power, unit)) for power in wanted]
    return Axis(bottom, top, is_log=True, ticks=tuple(marks))


def _near_log_axis(low: float, high: float, unit: str, count: int) -> Axis:
    """Return a logarithmic axis with the ends and ticks of a linear one, whose distances hardly differ there."""
    step = next(
        step
        for step in (_nice_step(low, high, finer, unit) for finer in range(count, 99))
        if step <= low
    )
    axis = Axis(math.floor(low / step) * step, math.ceil(high / step) * step)
    bottom, top = math.log10(axis.low), math.log10(axis.high)
    ticks = [
        (axis.low + share * (axis.high - axis.low), label)
        for share, label in _ticks(axis, step, unit, is_short=False)
    ]
    return Axis(
        bottom,
        top,
        True,
        tuple(((math.log10(value) - bottom) / (top - bottom), label) for value, label in ticks),
    )


def _log_ticks(bottom: float, top: float, count: int) -> list[float]:
    """Return about `count` powers of ten from `bottom` to `top`: whole ones, and 2 and 5 times those where there is room."""
    whole = [float(power) for power in range(math.ceil(bottom - 1e-9), math.floor(top + 1e-9) + 1)]
    fine = [
        power + math.log10(m)
        for power in range(math.floor(bottom), math.ceil(top) + 1)
        for m in (1, 2, 5)
    ]
    fine = [power for power in fine if bottom - 1e-9 <= power <= top + 1e-9]
    if len(fine) < 2 and -_POWERS < bottom < top < _POWERS:  # 25, 30, 35
        step = _nice_step(10.0**bottom, 10.0**top, count, "")
        wholes = range(
            math.ceil(10.0**bottom / step - 1e-9), math.floor(10.0**top / step + 1e-9) + 1
        )
        return [math.log10(whole * step) for whole in wholes[:50] if whole > 0]
    chosen = fine if len(fine) <= count or len(whole) < 2 else whole
    return chosen[:: math.ceil(len(chosen) / (count + 1)) or 1]


def _power_label(power: float, unit: str) -> str:
    return log_label(10.0**power, unit) if -300 < power < 300 else _far(power)


def _step_label(power: float) -> str:
    if not -300 < power < 300:
        return _far(power)
    step = float(f"{10.0**power:.6g}")
    return labels([step], step, is_short=True)[0]


def _far(power: float) -> str:
    """Return the label of a power of ten that no float may be able to hold: 2e-309."""
    whole = math.floor(power + 1e-9)
    return f"{10 ** (power - whole):.0f}e{whole}"


def _log_end(value: float, direction: int) -> float:
    """Return the power of ten of the next 1, 2 or 5 below or above a positive value."""
    power = math.log10(value)
    whole = math.floor(power)
    ends = [whole + math.log10(m) for m in (1, 2, 5, 10)]
    if direction < 0:
        return max(end for end in ends if end <= power + 1e-9)
    return min(end for end in ends if end >= power - 1e-9)
