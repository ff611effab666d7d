"""Write values for people: all views use the same unit and the same rounding for a quantity.

Sizes of memory and files are in powers of 1024, as nvidia-smi and the kernel count them.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence

_BYTES = (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
_LONG = 1e9  # from this value on, numbers are written with a power of ten
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


def formatter_of(name: str) -> Callable[[float], str]:
    """Return the function that writes values with this name: as sizes, or as plain numbers."""
    if unit_of(name) == "bytes":
        return size
    return "{:g}".format


def unit_of(name: str) -> str:
    """Return the unit in the name of a series, as in `rss_bytes` or `wait_ms`; "" if it has none.

    `gb_per_s` is not in seconds.
    """
    if "_" not in name or "_per_" in name:
        return ""
    return _UNITS.get(name.rsplit("_", 1)[-1], "")


def format_number(value: float, unit: str = "", digits: int = 4) -> str:
    """Return a value with its unit, in at most `digits` significant digits.

    A whole part has all its digits unless it is very long.
    """
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if unit == "time":
        return clock(value)
    divisor, suffix = scale_of(abs(value), unit)
    scaled = abs(value) / divisor
    if 999 <= scaled < _LONG:
        digits = max(digits, len(f"{scaled:.0f}"))  # 65504 and 100003, not 6.55e4 and 1e5
    if not unit and 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{trimmed(mantissa)}e{int(exponent)}"
    return short_exponent(f"{value / divisor:.{digits}g}") + suffix


def extent(
    values: Iterable[float], unit: str = "", digits: int = 4, owners: Sequence[str] = ()
) -> str:
    """Return the one value that all have, or the least and the greatest as `1..3`.

    "NaN" if any is NaN, and "" if there are no values. `owners` names the owner of each value. The
    owners of both ends are added unless one has both, as an arm that was called twice.
    """
    values = list(values)
    if any(value != value for value in values):
        return "NaN"
    if not values:
        return ""
    least = min(values)
    greatest = max(values)
    low = format_number(least, unit, digits)
    high = format_number(greatest, unit, digits)
    if low == high:
        return low
    short_low = format_number(least, unit, 3)
    short_high = format_number(greatest, unit, 3)
    if short_low != short_high:
        low = short_low
        high = short_high
    if owners:
        low_owner = owners[values.index(least)]
        high_owner = owners[values.index(greatest)]
        if low_owner != high_owner:
            return f"{low} ({low_owner})..{high} ({high_owner})"
    return f"{low}..{high}"


def gpu_label(index: int, piece: str = "") -> str:
    """Return the label of a GPU or of a slice of it (MIG): `GPU 0 MIG 1g.10gb Device 2`."""
    return f"GPU {index} {piece}".strip()


def gpu_words(name: str, uuid: str) -> str:
    """Return a GPU by its model and the beginning of its UUID, as `NVIDIA H100 (1a2b3c4d)`.

    Several UUIDs have commas between them. Empty without a UUID.
    """
    if not uuid:
        return ""
    short_uuids = [part.removeprefix("GPU-")[:8] for part in uuid.split(", ")]
    return f"{name or 'GPU'} ({', '.join(short_uuids)})"


def format_time(wall_s: float | None) -> str:
    """Return a moment, in seconds since 1970, as date and time of this machine's clock."""
    if wall_s is None:
        return "n/a"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(wall_s))


def clock(seconds: float, step: float = 1.0) -> str:
    """Return a time as `0.25 s`, `12 s`, `1:05`, `2:00:00`."""
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    if seconds < 60:
        number = trimmed(f"{seconds:.{decimals_of(step)}f}")
        return f"{sign}{number} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{sign}{whole // 60}:{whole % 60:02}"
    if whole < 360_000_000:
        return f"{sign}{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    hours = short_exponent(f"{seconds / 3600:.3g}")
    return f"{sign}{hours} h"


def scale_of(greatest: float, unit: str) -> tuple[float, str]:
    """Return the divisor and the suffix for values up to `greatest`, for example 1e-3 and " ms".

    A value is shown as the value divided by the divisor, then the suffix. An unknown unit has the
    divisor 1 and is its own suffix.
    """
    if unit == "bytes":
        power = len(_BYTES) - 1
        while power and not greatest >= 1024.0**power:  # NaN ends at 0
            power -= 1
        return 1024.0**power, _BYTES[power]
    if unit == "ms":  # 1.5 s, and 1 µs
        divisor, suffix = scale_of(greatest / 1e3, "s")
        return divisor * 1e3, suffix
    if unit == "s":
        for divisor, suffix in _SECONDS:
            if greatest >= divisor * 0.9999:
                return divisor, suffix
        return _SECONDS[0] if greatest == 0 else _SECONDS[-1]
    if not unit:
        return 1.0, ""
    return 1.0, f" {unit}"


def decimals_of(step: float) -> int:
    """Return the number of decimals that values need which are `step` apart."""
    for decimals in range(7):
        scaled = step * 10**decimals
        if scaled >= 1 and abs(scaled - round(scaled)) < 1e-6 * scaled:
            return decimals
    return 6


def trimmed(text: str) -> str:
    """Return 1.5 for 1.500, and 0 for -0."""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def short_exponent(text: str) -> str:
    """Return 1e-5 for 1e-05."""
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text
    return f"{mantissa}e{int(exponent)}"
