"""Labels of ticks that belong together: one unit for all, and as many decimals as they need."""

import math
from collections.abc import Sequence

from tuilab.text.words import clock, decimals_of, format_number, scale_of, short_exponent, trimmed

_LARGEST_PLAIN = 1e7  # from here on, and below the next, labels have a power of ten
_SMALLEST_PLAIN = 1e-3
_LONG_LOG = 1e5  # from here on a label of a logarithmic axis has a power of ten
_MOST_DIGITS = 12
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def labels(
    ticks: Sequence[float], step: float, unit: str = "", *, is_short: bool = False
) -> list[str]:
    """Return the labels of ticks that are `step` apart, in one unit.

    They have as many decimals as tell them apart. Short labels of numbers without a unit end in k,
    M, G or T.
    """
    greatest = max(map(abs, ticks), default=0.0)
    if unit == "time":
        return [clock(tick, step) for tick in ticks]
    has_thousands = is_short and not unit and 1e3 <= greatest < 1e15
    if has_thousands:
        divisor, suffix = _thousands(greatest)
    else:
        divisor, suffix = scale_of(greatest, unit)
    scaled = greatest / divisor
    if scaled >= _LARGEST_PLAIN or 0 < scaled < _SMALLEST_PLAIN:
        digits = min(_significant_digits(greatest, step), _MOST_DIGITS)
        texts = [short_exponent(f"{tick / divisor:.{digits}g}") for tick in ticks]
    elif has_thousands:
        return [_short_label(tick, step) for tick in ticks]
    else:
        decimals = decimals_of(step / divisor)
        texts = [trimmed(f"{tick / divisor:.{decimals}f}") for tick in ticks]
    with_unit = []
    for tick, text in zip(ticks, texts, strict=True):
        with_unit.append(text + suffix if tick else "0")
    return with_unit


def _significant_digits(greatest: float, step: float) -> int:
    """Return how many digits tell apart ticks that are `step` apart, the greatest one included."""
    powers = 3
    if step > 0:
        powers = math.floor(math.log10(greatest)) - math.floor(math.log10(step))
    mantissa = trimmed(f"{step:.2e}".partition("e")[0])
    more_digits = len(mantissa) // 3  # a step of 2.5e8 needs one digit more than one of 2e8
    return 1 + max(0, powers) + more_digits


def _short_label(tick: float, step: float) -> str:
    """Return 500, 1k, 1.5k."""
    if abs(tick) < 1e3:
        return format_number(tick, digits=7)
    divisor, suffix = _thousands(abs(tick))
    return trimmed(f"{tick / divisor:.{decimals_of(step / divisor)}f}") + suffix


def _thousands(greatest: float) -> tuple[float, str]:
    """Return the divisor and the suffix of a number that is at least 1000."""
    for divisor, suffix in _THOUSANDS:
        if greatest >= divisor:
            return divisor, suffix
    return _THOUSANDS[-1]


def log_label(value: float, unit: str = "") -> str:
    """Return the label of a tick of a logarithmic axis, a long one with a power of ten."""
    divisor, suffix = scale_of(value, unit)
    if value / divisor < _LONG_LOG:
        return format_number(value, unit, 3)
    return short_exponent(f"{value / divisor:.3g}") + suffix
