"""Values in words for people: one unit for one thing and one rounding, whichever view tells it.

Memory and files are told in powers of 1024, as nvidia-smi and the kernel count them.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence

_BYTES = (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
_LONG = 1e9  # from here on a value has a power of ten
_SECONDS = ((1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns"))
_UNITS = {
    "bytes": "bytes",
    "s": "s",
    "percent": "%",
    "ms": "ms",
    "us": "µs",
    "mb": "MB",
    "gb": "GB",
    "w": "W",
    "c": "°C",
    "mhz": "MHz",
}


def size(value: float) -> str:
    """Return bytes for people: `17.5 KiB`, `2.794 GiB`."""
    return format_number(value, "bytes")


def seconds(value: float) -> str:
    """Return a duration for people, in three digits: `250 µs`, `1.5 s`."""
    return format_number(value, "s", 3)


def spell_of(name: str) -> Callable[[float], str]:
    """Return how measured values of a name are written: sizes as sizes, counts as they are."""
    return size if unit_of(name) == "bytes" else "{:g}".format


def unit_of(name: str) -> str:
    """Return the unit that the name of a series tells, as in `rss_bytes` or `wait_ms`; "" where it tells none.

    `gb_per_s` is no number of seconds.
    """
    return "" if "_per_" in name else _UNITS.get(name.rsplit("_", 1)[-1], "") if "_" in name else ""


def format_number(value: float, unit: str = "", digits: int = 4) -> str:
    """Return one value with its unit, at most `digits` significant digits, but each of a whole part that is not very long."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if unit == "time":
        return clock(value)
    divisor, suffix = scale_of(abs(value), unit)
    if 999 <= (scaled := abs(value) / divisor) < _LONG:
        digits = max(digits, len(f"{scaled:.0f}"))  # 65504 and 100003, not 6.55e4 and 1e5
    if not unit and 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{trimmed(mantissa)}e{int(exponent)}"
    return short_exponent(f"{value / divisor:.{digits}g}") + suffix


def extent(
    values: Iterable[float], unit: str = "", digits: int = 4, owners: Sequence[str] = ()
) -> str:
    """Return the one value that all have, or the least and the greatest: several lines of one name have each its own.

    Where any is NaN, that is what is said; where there is none, nothing. With `owners`, of each value one, whose they are; not
    where one has both, as of an arm that was called twice.
    """
    found = list(values)
    if any(value != value for value in found):
        return "NaN"
    if not found:
        return ""
    ends = min(found), max(found)
    low, high = (format_number(end, unit, digits) for end in ends)
    short = [format_number(end, unit, 3) for end in ends]
    told = short if short[0] != short[1] else [low, high]
    whose = [owners[found.index(end)] for end in ends] if owners else []
    marks = [f" ({one})" for one in whose] if len({*whose}) > 1 else ["", ""]
    return low if low == high else "..".join(map(str.__add__, told, marks))


def gpu_label(index: int, piece: str = "") -> str:
    """Return what a GPU is called, or a slice of one (MIG): `GPU 0`, `GPU 0 MIG 1g.10gb Device 2`."""
    return f"GPU {index} {piece}".strip()


def gpu_words(name: str, uuid: str) -> str:
    """Return a GPU by its model and the beginning of its UUID, as `NVIDIA H100 (1a2b3c4d)`; of several, of each."""
    short = ", ".join(one.removeprefix("GPU-")[:8] for one in uuid.split(", "))
    return f"{name or 'GPU'} ({short})" if uuid else ""


def exactly(then_s: float | None) -> str:
    """Return a moment as date and time of this box's clock."""
    return "n/a" if then_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(then_s))


def clock(seconds: float, step: float = 1.0) -> str:
    """Return a time as `0.25 s`, `12 s`, `1:05`, `2:00:00`."""
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 60:
        return f"{sign}{trimmed(f'{seconds:.{decimals_of(step)}f}')} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{sign}{whole // 60}:{whole % 60:02}"
    if whole < 360_000_000:
        return f"{sign}{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    return f"{sign}{short_exponent(f'{seconds / 3600:.3g}')} h"


def scale_of(greatest: float, unit: str) -> tuple[float, str]:
    """Return what to divide by and what to append, for values up to `greatest`."""
    if unit == "bytes":
        power = next((power for power in range(6, 0, -1) if greatest >= 1024.0**power), 0)
        return 1024.0**power, _BYTES[power]
    if unit == "ms":  # 1.5 s, and 1 µs
        divisor, suffix = scale_of(greatest / 1e3, "s")
        return divisor * 1e3, suffix
    if unit == "s":
        return next(
            (pair for pair in _SECONDS if greatest >= pair[0] * 0.9999),
            _SECONDS[0 if greatest == 0 else -1],
        )
    return 1.0, f" {unit}" if unit else ""


def decimals_of(step: float) -> int:
    """Return how many decimals tell values apart that are `step` apart."""
    for decimals in range(7):
        scaled = step * 10**decimals
        if scaled >= 1 and abs(scaled - round(scaled)) < 1e-6 * scaled:
            return decimals
    return 6


def trimmed(text: str) -> str:
    """Return 1.5 for 1.500, and 0 for -0."""
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def short_exponent(text: str) -> str:
    """Return 1e-5 for 1e-05."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text
