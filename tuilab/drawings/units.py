"""Labels of ticks that belong together: the words for one value, in one unit for all and with as many decimals as they need."""

import math
from collections.abc import Sequence

from tuilab.text.words import clock, decimals_of, format_number, scale_of, short_exponent, trimmed

_LONG = 1e7  # from here on labels have a power of ten
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def labels(
    ticks: Sequence[float], step: float, unit: str = "", *, is_short: bool = False
) -> list[str]:
    """Return the labels of ticks `step` apart: one unit for all, and as many decimals as tell them apart."""
    greatest = max(map(abs, ticks), default=0.0)
    if unit == "time":
        return [clock(tick, step) for tick in ticks]
    has_thousands = is_short and not unit and 1e3 <= greatest < 1e15
    divisor, suffix = _thousands(greatest) if has_thousands else scale_of(greatest, unit)
    if greatest / divisor >= _LONG or 0 < greatest / divisor < 1e-3:
        digits = 1 + max(
            0, math.floor(math.log10(greatest)) - math.floor(math.log10(step)) if step > 0 else 3
        )
        digits += (
            len(trimmed(f"{step:.2e}".partition("e")[0])) // 3
        )  # a step of 2.5e8 needs one more
        return [
            short_exponent(f"{tick / divisor:.{min(digits, 12)}g}") + suffix if tick else "0"
            for tick in ticks
        ]
    if has_thousands:  # 500, 1k, 1.5k
        return [
            format_number(tick, digits=7) if abs(tick) < 1e3 else _with_thousands(tick, step)
            for tick in ticks
        ]
    decimals = decimals_of(step / divisor)
    return [trimmed(f"{tick / divisor:.{decimals}f}") + suffix if tick else "0" for tick in ticks]


def log_label(value: float, unit: str = "") -> str:
    """Return the label of a tick of a logarithmic axis: of a long one its power of ten."""
    divisor, suffix = scale_of(value, unit)
    if value / divisor < 1e5:
        return format_number(value, unit, 3)
    return short_exponent(f"{value / divisor:.3g}") + suffix


def _with_thousands(tick: float, step: float) -> str:
    divisor, suffix = _thousands(abs(tick))
    return trimmed(f"{tick / divisor:.{decimals_of(step / divisor)}f}") + suffix


def _thousands(greatest: float) -> tuple[float, str]:
    return next(pair for pair in _THOUSANDS if greatest >= pair[0])
