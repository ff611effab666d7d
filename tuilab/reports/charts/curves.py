"""Turn one line of a chart into SVG: its path, its band, marks for NaN and Inf, and its values."""

import math
from dataclasses import dataclass
from itertools import pairwise

from tuilab.arrays import np
from tuilab.drawings.axis import Axis
from tuilab.drawings.lines import Floats, Line, bad_points, steps_of, stretch_starts, thin_line
from tuilab.reports.charts.frame import BOTTOM, TOP, letter, px, py
from tuilab.text.words import format_number

_MARK_WIDTH = 3  # pixels; marks that are nearer to each other would overlap
_UPPER_MARK_Y = TOP - 8
_LOWER_MARK_Y = BOTTOM - 5
_DIGITS = 6
_BAND_DIGITS = 4  # with a band, a point has three values
_MAX_EXACT = 1e15  # a float has 15 reliable digits

_Points = list[tuple[float, float]]


@dataclass(frozen=True)
class NonFiniteMark:
    """The mark of a NaN or Inf: `nan` and `inf` at the top edge, `-inf` at the bottom edge."""

    x: float
    y: float
    kind: str
    words: str


@dataclass(frozen=True)
class CurveShapes:
    """The shapes of one line, and its points as words, which the script of the page reads."""

    label: str
    letter: str
    look: int
    path: str
    band: str  # from the least to the greatest value, where several points share a place
    dots: tuple[tuple[float, float], ...]  # points without neighbours
    marks: tuple[NonFiniteMark, ...]
    xs: str
    lows: str
    mids: str  # empty without a band, as are the highs
    highs: str
    breaks: str  # indices of the points before which the line is broken
    bads: str
    is_one_of_many: bool


@dataclass(frozen=True, eq=False)
class ThinnedLine:
    """A line with as many points as are drawn, and the median of the points that share a place."""

    line: Line
    mids: Floats


def thin_out(line: Line, max_points: int, *, is_log: bool) -> ThinnedLine:
    """Return a line of at most `max_points`, each with the least, median and greatest value."""
    if line.mids is not None:
        return ThinnedLine(line, line.mids)
    if is_log:
        mids = np.sqrt(line.lows) * np.sqrt(line.highs)
    else:
        mids = line.lows / 2 + line.highs / 2
    if len(line.xs) <= max_points:
        return ThinnedLine(line, mids)
    thin = thin_line(line, max_points)
    starts = stretch_starts(len(line.xs), max_points)
    medians = []
    for part in np.split(mids, starts[1:]):
        medians.append(float(np.median(part)))
    return ThinnedLine(thin, np.clip(medians, thin.lows, thin.highs))


def draw_curve(
    line: Line,
    label: str,
    shown: ThinnedLine,
    x: Axis,
    y: Axis,
    *,
    is_log_x: bool,
    is_one_of_many: bool,
) -> CurveShapes:
    """Return the shapes of a line. `shown` has the points that are drawn of it."""
    thin = shown.line
    path, band, dots = _draw_shapes(shown, x, y)
    has_band = not np.array_equal(thin.lows, thin.highs)
    digits = _DIGITS
    mids = ""
    highs = ""
    if has_band:
        digits = _BAND_DIGITS
        mids = _format_values(shown.mids, digits)
        highs = _format_values(thin.highs, digits)
    breaks = (np.flatnonzero(thin.breaks) + 1).tolist()
    return CurveShapes(
        label=label,
        letter=letter(line.style),
        look=line.style,
        path=path,
        band=band,
        dots=tuple(dots),
        marks=tuple(_mark_bad_points(line, label, x, is_log_x)),
        xs=_format_values(steps_of(thin.xs, is_log_x=is_log_x)),
        lows=_format_values(thin.lows, digits),
        mids=mids,
        highs=highs,
        breaks=" ".join(str(index) for index in breaks),
        bads=_format_bad_points(line, is_log_x=is_log_x),
        is_one_of_many=is_one_of_many,
    )


def _draw_shapes(shown: ThinnedLine, x: Axis, y: Axis) -> tuple[str, str, _Points]:
    """Return the path through the middle, the band around it, and the points to draw as dots."""
    line = shown.line
    xs = [px(share) for share in x.shares(line.xs).tolist()]
    lows = _to_pixels(line.lows, y)
    mids = _to_pixels(shown.mids, y)
    highs = _to_pixels(line.highs, y)
    breaks = (np.flatnonzero(line.breaks) + 1).tolist()
    path = ""
    band = ""
    dots: _Points = []
    for start, end in pairwise([0, *breaks, len(xs)]):
        upper = list(zip(xs[start:end], highs[start:end], strict=True))
        middle = list(zip(xs[start:end], mids[start:end], strict=True))
        lower = list(zip(xs[start:end], lows[start:end], strict=True))
        path += _connect(middle)
        is_alone = len(middle) == 1 and upper == lower
        has_intervals = line.mids is not None  # dots then show where they were measured
        if is_alone or has_intervals:
            dots += middle
        if upper != lower:
            band += _connect([*upper, *reversed(lower)]) + "Z"
    return path, band, dots


def _to_pixels(values: Floats, y: Axis) -> list[float]:
    return [py(share) for share in y.shares(values).tolist()]


def _connect(points: _Points) -> str:
    """Return an SVG path through points."""
    if not points:
        return ""
    pairs = [f"{x:g} {y:g}" for x, y in points]
    return "M" + "L".join(pairs)


# ---- NaN and Inf


def _mark_bad_points(line: Line, label: str, x: Axis, is_log_x: bool) -> list[NonFiniteMark]:
    """Return the marks of NaN and Inf. Of marks of one kind that would overlap, the first."""
    marks: dict[tuple[int, str], NonFiniteMark] = {}
    xs, values = bad_points(line)
    steps = steps_of(xs, is_log_x=is_log_x).tolist()
    for step, share, value in zip(steps, x.shares(xs).tolist(), values.tolist(), strict=True):
        kind = _kind_of_bad(value)
        mark_x = px(share)
        mark_y = _UPPER_MARK_Y
        if kind == "-inf":
            mark_y = _LOWER_MARK_Y
        words = f"{format_number(value)} at {step:g}"
        if label:
            words += f", {label}"
        slot = int(mark_x / _MARK_WIDTH)
        marks.setdefault((slot, kind), NonFiniteMark(mark_x, mark_y, kind, words))
    return list(marks.values())


def _format_bad_points(line: Line, *, is_log_x: bool) -> str:
    steps = steps_of(line.bad_xs, is_log_x=is_log_x).tolist()
    parts = []
    for step, value in zip(steps, line.bad_values.tolist(), strict=True):
        parts.append(f"{_format_value(step)}:{_format_value(value)}")
    return " ".join(parts)


def _kind_of_bad(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"


# ---- numbers for the script of the page


def _format_values(values: Floats, digits: int = _DIGITS) -> str:
    return " ".join(_format_value(value, digits) for value in values.tolist())


def _format_value(value: float, digits: int = _DIGITS) -> str:
    """Return a number in the fewest characters that have so many digits; a step exactly."""
    if not math.isfinite(value):
        return _kind_of_bad(value)
    if value.is_integer() and abs(value) < _MAX_EXACT:
        return str(int(value))
    return f"{value:.{digits}g}"
