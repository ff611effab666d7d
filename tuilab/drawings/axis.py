"""An axis: its range, which rarely changes while data grows, and ticks at round numbers."""

import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache

from tuilab.arrays import NDArray, np
from tuilab.drawings.units import labels, log_label

Ticks = tuple[tuple[float, str], ...]  # share of the way from the low end to the high one, label

_GREATEST = sys.float_info.max
# The ends of growing data are multiples of about a fourth of its span. With larger multiples the
# range would change more rarely, but waste more room.
_GROWING_STEPS = 4
_LEAST_SPAN = 1e-321  # below it the arithmetic of steps ends
_LEAST_STEP = 1e-322
_MOST_POWER = 330.0  # no float has a power of ten further from 0
_MOST_NEAR_RATIO = 4.0  # of two ends: below it a logarithmic axis hardly differs from a linear one
_MOST_POWER_TO_DIVIDE = 290.0  # further from 0, powers of ten cannot be added and divided
_LEAST_LOG_SPAN = 0.3
_FAR = 1e6  # a share that is as good as any other outside of the axis
_ROUNDING = 1e-9  # shares and quotients that differ by less are the same number
_MOST_TICKS = 50
_RANGE_ENDS = (1, 1.5, 2.5, 4, 6, 10)  # times a power of ten: the ranges of growing data
_ROUND_STEPS = (1, 2, 2.5, 5)  # times a power of ten
_DAY_S = 86_400
_CLOCK_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 10_800, 21_600, 43_200, _DAY_S,
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """A range with its ticks. On a logarithmic axis `low` and `high` are powers of ten."""

    low: float
    high: float
    is_log: bool = False
    ticks: Ticks = ()

    @property
    def visible_ticks(self) -> Ticks:
        """The ticks that do not lie outside of the range."""
        visible = []
        for share, label in self.ticks:
            if -_ROUNDING <= share <= 1 + _ROUNDING:
                visible.append((share, label))
        return tuple(visible)

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where values are: 0 at the low end, 1 at the high end.

        A value that a logarithm cannot show is far below 0.
        """
        if self.is_log:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.where(values > 0, np.log10(values), -_FAR)
        scale = self._scale
        low = self.low * scale
        high = self.high * scale
        with np.errstate(over="ignore", under="ignore"):
            unclipped = (values * scale - low) / (high - low)
            shares: NDArray[np.float64] = np.clip(unclipped, -_FAR, _FAR)
        return shares

    @property
    def _scale(self) -> float:
        """The factor that keeps the span from overflowing."""
        if self.high > 1e300 or self.low < -1e300:
            return 2.0**-4
        return 1.0

    def share(self, value: float) -> float:
        """Return where a value is: 0 at the low end of the axis, 1 at the high end."""
        if self.is_log:
            return float(self.shares(np.array([value], np.float64))[0])
        # Not by `shares`: numpy takes ten times as long for a single value.
        scale = self._scale
        low = self.low * scale
        high = self.high * scale
        return min(max((value * scale - low) / (high - low), -_FAR), _FAR)


# ---- axes of y


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
    """Return an axis for values from `low` to `high` with about `count` ticks and round ends.

    The ends are rounder while data is growing. They change more rarely then, and each change draws
    the whole chart again.
    """
    if is_log:
        return _log_axis(low, high, unit, count)
    if low >= 0 and low <= 0.25 * high:
        low = 0.0
    is_constant = low == high
    low, high = _widen(low, high)
    step = _round_step(low, high, count, unit)
    if is_constant:  # the value stays in the middle, even if it is not round
        axis = Axis(low, high)
    else:
        end = step / 2
        if is_growing:
            end = max(_round_step(low, high, _GROWING_STEPS, unit), end)
        bottom = max(-_GREATEST, math.floor(low / end) * end)
        top = min(_GREATEST, math.ceil(high / end) * end)
        axis = Axis(bottom, top)
    return replace(axis, ticks=_make_ticks(axis, step, unit, is_short=False))


def _log_axis(low: float, high: float, unit: str, count: int) -> Axis:
    """Return an axis between two numbers that are 1, 2 or 5 times a power of ten.

    If the values are near each other, the ends are other round numbers.
    """
    bottom, _ = _surrounding_powers(low)
    _, top = _surrounding_powers(high)
    if 1.0001 * low < high < _MOST_NEAR_RATIO * low and low > 1e-300 and high < 1e300:
        return _near_log_axis(low, high, unit, count)
    if top - bottom < _LEAST_LOG_SPAN:
        bottom -= _LEAST_LOG_SPAN
        top += _LEAST_LOG_SPAN
    ticks = []
    for power in _choose_powers(bottom, top, max(count, 2)):
        ticks.append(((power - bottom) / (top - bottom), _power_label(power, unit)))
    return Axis(bottom, top, is_log=True, ticks=tuple(ticks))


def _near_log_axis(low: float, high: float, unit: str, count: int) -> Axis:
    """Return a logarithmic axis with the ends and ticks of a linear one.

    The distances of the two hardly differ if the values are near each other.
    """
    for tick_count in range(count, 99):
        step = _round_step(low, high, tick_count, unit)
        if step <= low:
            break
    linear = Axis(math.floor(low / step) * step, math.ceil(high / step) * step)
    bottom = math.log10(linear.low)
    top = math.log10(linear.high)
    ticks = []
    for share, label in _make_ticks(linear, step, unit, is_short=False):
        value = linear.low + share * (linear.high - linear.low)
        ticks.append(((math.log10(value) - bottom) / (top - bottom), label))
    return Axis(bottom, top, is_log=True, ticks=tuple(ticks))


def _surrounding_powers(value: float) -> tuple[float, float]:
    """Return the powers of ten of the next round numbers at or below a value, and at or above it.

    Round numbers are 1, 2 and 5 times a power of ten.
    """
    power = math.log10(value)
    whole = math.floor(power)
    powers = [whole + math.log10(factor) for factor in (1, 2, 5, 10)]
    below = max(end for end in powers if end <= power + _ROUNDING)
    above = min(end for end in powers if end >= power - _ROUNDING)
    return below, above


# ---- axes of x


@lru_cache(64)
def x_axis(
    low: float, high: float, unit: str, count: int, *, is_log: bool = False, is_whole: bool = True
) -> Axis:
    """Return an axis that shows exactly `low` to `high`, with at most about `count` ticks inside.

    With `is_log` the ends are powers of ten, and the labels of ticks are the numbers with those
    powers. With `is_whole` an axis without a unit, as that of steps, has no ticks between whole
    numbers.
    """
    if high <= low or high - low < _LEAST_SPAN:
        low, high = _widen(low, high)
    if is_log:
        least_power = max(low, -_MOST_POWER)
        greatest_power = min(high, _MOST_POWER)
        ticks = []
        for power in _choose_powers(least_power, greatest_power, max(count, 2)):
            ticks.append(((power - low) / (high - low), _step_label(power)))
        return Axis(low, high, ticks=tuple(ticks))
    least_step = 1.0 if not unit and is_whole else 0.0
    axis = Axis(low, high)
    step = max(_round_step(low, high, count, unit), least_step)
    # A single tick shows no distance, so the step gets finer until there are two ticks.
    for tick_count in range(count + 1, 4 * count + 3):
        if _has_two_ticks(axis, step) or step <= least_step:
            break
        step = max(_round_step(low, high, tick_count, unit), least_step)
    return replace(axis, ticks=_make_ticks(axis, step, unit, is_short=not unit))


def axis_start(first: float, last: float) -> float:
    """Return where the axis of x begins: at 0 if the data begins within a fourth of the way from 0.

    Otherwise the axis begins with the data. The rule is the same while a run is running and when it
    has finished.
    """
    if first == 0 or 0 <= first <= 0.25 * last:
        return 0.0
    return first


def growing_range(
    first: float, last: float, least: float, end: float | None = None
) -> tuple[float, float]:
    """Return a range for data that still grows, at least `least` long.

    It reaches to the known `end`. Without one it grows in steps, so that it rarely changes.
    """
    low = axis_start(first, last)
    if end is not None and math.isfinite(end) and end >= last and end > low:
        return low, end
    if max(abs(low), abs(last)) < 1e300:
        span = max(last / 2 - low / 2, least / 2) * 2
    else:
        span = last - low
    if not math.isfinite(span) or span <= 0:
        return low, last
    power = 10.0 ** math.floor(math.log10(span))
    high = low + _first_multiple(_RANGE_ENDS, power, span) * power
    return low, min(high, _GREATEST)


# ---- steps and ticks


def _widen(low: float, high: float) -> tuple[float, float]:
    """Return a range that is wide enough to divide."""
    half_span = high / 2 - low / 2
    greatest = max(abs(low), abs(high))
    if half_span >= greatest * 1e-9 and half_span > _LEAST_SPAN:
        return low, high
    margin = 1.0
    if low or high:
        margin = max(greatest * 0.1, _LEAST_SPAN)
    return max(low - margin, -_GREATEST), min(high + margin, _GREATEST)


def _round_step(low: float, high: float, count: int, unit: str) -> float:
    """Return a round step, about `count` of which reach from `low` to `high`."""
    step = (high / 2 - low / 2) / max(count, 2) * 2
    step = min(max(step, _LEAST_STEP), _GREATEST / 2)
    if unit == "bytes" and step >= 1:
        return float(2.0 ** min(math.ceil(math.log2(step)), 1023))
    if unit == "time" and step > 0.5:
        return _clock_step(step)
    power = 10.0 ** math.floor(math.log10(step))
    return min(_first_multiple(_ROUND_STEPS, power, step) * power, _GREATEST)


def _clock_step(least_s: float) -> float:
    """Return the next step of a clock: whole days from the last one on."""
    for step_s in _CLOCK_STEPS_S:
        if step_s >= least_s:
            return float(step_s)
    return math.ceil(least_s / _DAY_S) * float(_DAY_S)


def _first_multiple(factors: tuple[float, ...], power: float, least: float) -> float:
    """Return the first factor that makes a power of ten at least `least`, else 10."""
    for factor in factors:
        if factor * power >= least * (1 - _ROUNDING):
            return factor
    return 10


def _has_two_ticks(axis: Axis, step: float) -> bool:
    first, last = _whole_steps(axis.low, axis.high, step)
    return last > first


def _whole_steps(low: float, high: float, step: float) -> tuple[int, int]:
    """Return the first and the last multiple of a step in a range, as numbers of steps."""
    return math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)


def _make_ticks(axis: Axis, step: float, unit: str, *, is_short: bool) -> Ticks:
    """Return a tick at each multiple of a step in the range of an axis, but no more than 51."""
    first, last = _whole_steps(axis.low, axis.high, step)
    last = min(last, first + _MOST_TICKS)
    values = []
    for whole in range(first, last + 1):
        value = whole * step
        if math.isfinite(value):
            values.append(value)
    shares = [axis.share(value) for value in values]
    texts = labels(values, step, unit, is_short=is_short)
    return tuple(zip(shares, texts, strict=True))


def _choose_powers(bottom: float, top: float, count: int) -> list[float]:
    """Return about `count` powers of ten from `bottom` to `top`.

    These are whole powers, and those of 2 and 5 times a whole power where there is room. If only
    one of them lies in the range, they are the powers of round numbers such as 25, 30 and 35.
    """
    first, last = _whole_steps(bottom, top, 1)
    whole = [float(power) for power in range(first, last + 1)]
    fine = []
    for power in range(math.floor(bottom), math.ceil(top) + 1):
        for factor in (1, 2, 5):
            fine_power = power + math.log10(factor)
            if bottom - _ROUNDING <= fine_power <= top + _ROUNDING:
                fine.append(fine_power)
    if len(fine) < 2 and -_MOST_POWER_TO_DIVIDE < bottom < top < _MOST_POWER_TO_DIVIDE:
        step = _round_step(10.0**bottom, 10.0**top, count, "")
        first, last = _whole_steps(10.0**bottom, 10.0**top, step)
        multiples = range(first, last + 1)[:_MOST_TICKS]
        return [math.log10(multiple * step) for multiple in multiples if multiple > 0]
    powers = whole
    if len(fine) <= count or len(whole) < 2:
        powers = fine
    stride = max(math.ceil(len(powers) / (count + 1)), 1)
    return powers[::stride]


def _power_label(power: float, unit: str) -> str:
    if not -300 < power < 300:
        return _extreme_label(power)
    return log_label(10.0**power, unit)


def _step_label(power: float) -> str:
    if not -300 < power < 300:
        return _extreme_label(power)
    step = float(f"{10.0**power:.6g}")
    [label] = labels([step], step, is_short=True)
    return label


def _extreme_label(power: float) -> str:
    """Return the label of a number that a float may not be able to hold: 2e-309."""
    whole = math.floor(power + _ROUNDING)
    return f"{10 ** (power - whole):.0f}e{whole}"
