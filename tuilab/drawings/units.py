"""Numbers as people read them: a value with its unit, and labels of ticks that belong together."""

import math
from collections.abc import Sequence

_BYTES = (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
_SECONDS = ((1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns"))
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def unit_of(name: str) -> str:
    """Return the unit that the name of a series tells, as in `rss_bytes` or `wait_ms`; "" where it tells none."""
    known = {"bytes": "bytes", "s": "s", "percent": "%", "ms": "ms", "us": "µs", "mb": "MB", "gb": "GB", "w": "W", "c": "°C"}
    return known.get(name.rsplit("_", 1)[-1], "") if "_" in name else ""


def number(value: float, unit: str = "", digits: int = 4) -> str:
    """Return one value with its unit, at most `digits` significant digits."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if unit == "time":
        return clock(value)
    divisor, suffix = _scale(abs(value), unit, is_short=False)
    digits = max(digits, 5) if 1e4 <= abs(value) / divisor < 1e5 else digits  # 65504, not 6.55e4
    if not unit and 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{_trim(mantissa)}e{int(exponent)}"
    return _short_exponent(f"{value / divisor:.{digits}g}") + suffix


def labels(ticks: Sequence[float], step: float, unit: str = "", *, is_short: bool = False) -> list[str]:
    """Return the labels of ticks `step` apart: one unit for all, and as many decimals as tell them apart."""
    greatest = max(map(abs, ticks), default=0.0)
    if unit == "time":
        return [clock(tick, step) for tick in ticks]
    divisor, suffix = _scale(greatest, unit, is_short=is_short)
    if greatest / divisor >= 1e5 or 0 < greatest / divisor < 1e-3:
        digits = 1 + max(0, math.floor(math.log10(greatest)) - math.floor(math.log10(step)) if step > 0 else 3)
        return [_short_exponent(f"{tick:.{min(digits, 6)}g}") + suffix if tick else "0" for tick in ticks]
    if is_short and suffix:  # 500, 1k, 1.5k
        return [number(tick, digits=7) if abs(tick) < 1e3 else _with_thousands(tick, step) for tick in ticks]
    decimals = _decimals(step / divisor)
    return [_trim(f"{tick / divisor:.{decimals}f}") + suffix if tick else "0" for tick in ticks]


def clock(seconds: float, step: float = 1.0) -> str:
    """Return a time as `0.25 s`, `12 s`, `1:05`, `2:00:00`."""
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 60:
        return f"{sign}{_trim(f'{seconds:.{_decimals(step)}f}')} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{sign}{whole // 60}:{whole % 60:02}"
    if whole < 360_000_000:
        return f"{sign}{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    return f"{sign}{_short_exponent(f'{seconds / 3600:.3g}')} h"


def _scale(greatest: float, unit: str, *, is_short: bool) -> tuple[float, str]:
    """Return what to divide by and what to append, for values up to `greatest`."""
    if unit == "bytes":
        power = next((power for power in range(6, 0, -1) if greatest >= 1024.0**power), 0)
        return 1024.0**power, _BYTES[power]
    if unit == "s":
        return next((pair for pair in _SECONDS if greatest >= pair[0] * 0.9999), _SECONDS[0 if greatest == 0 else -1])
    if unit:
        return 1.0, f" {unit}"
    if is_short and 1e15 > greatest >= 1e3:
        return next(pair for pair in _THOUSANDS if greatest >= pair[0])
    return 1.0, ""


def _with_thousands(tick: float, step: float) -> str:
    divisor, suffix = _scale(abs(tick), "", is_short=True)
    return _trim(f"{tick / divisor:.{_decimals(step / divisor)}f}") + suffix


def _decimals(step: float) -> int:
    """Return how many decimals tell values apart that are `step` apart."""
    for decimals in range(7):
        scaled = step * 10**decimals
        if scaled >= 1 and abs(scaled - round(scaled)) < 1e-6 * scaled:
            return decimals
    return 6


def _trim(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _short_exponent(text: str) -> str:
    """Return 1e-5 for 1e-05."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text
