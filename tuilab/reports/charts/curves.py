"""One line of a chart as SVG: a path, a band where points share a place, marks where there is no number, and its values."""

from dataclasses import dataclass
from itertools import pairwise

from tuilab.arrays import np
from tuilab.drawings.axis import Axis
from tuilab.drawings.lines import Floats, Line, bad_points, steps_of, stretch_starts, thin_line
from tuilab.reports.charts.frame import BOTTOM, TOP, letter, px, py
from tuilab.text.words import format_number

_MARK_EVERY = 3  # pixels; nearer ones would be drawn on each other
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class NonFiniteMark:
    """A place where there was no number: `nan`, `inf` (both at the top edge) or `-inf` (at the bottom)."""

    x: float
    y: float
    kind: str
    words: str


@dataclass(frozen=True)
class CurveShapes:
    """One line: its shapes, and its points as words, for whoever reads them back from the page."""

    label: str
    letter: str
    look: int
    path: str
    band: str  # from the least to the greatest, where points share places
    dots: tuple[tuple[float, float], ...]  # points without neighbours
    marks: tuple[NonFiniteMark, ...]
    xs: str
    lows: str
    mids: str  # empty where they are the lows, as are the highs
    highs: str
    breaks: str  # numbers of the points before which the line is broken
    bads: str
    is_one_of_many: bool


@dataclass(frozen=True, eq=False)
class Drawn:
    """A line with as many points as are drawn, and the middle of those that share a place."""

    line: Line
    mids: Floats


def drawn(line: Line, most: int, *, is_log: bool) -> Drawn:
    """Return a line of at most `most` points, each the least, the median and the greatest of its neighbours."""
    if line.mids is not None:
        return Drawn(line, line.mids)
    mids = np.sqrt(line.lows) * np.sqrt(line.highs) if is_log else line.lows / 2 + line.highs / 2
    if len(line.xs) <= most:
        return Drawn(line, mids)
    thin = thin_line(line, most)
    parts = np.split(mids, stretch_starts(len(line.xs), most)[1:])
    medians = np.array([float(np.median(part)) for part in parts])
    return Drawn(thin, np.clip(medians, thin.lows, thin.highs))


def curve(
    line: Line, label: str, shown: Drawn, x: Axis, y: Axis, *, is_log_x: bool, is_one_of_many: bool
) -> CurveShapes:
    """Return a line of which `shown` is drawn, by the name that people read."""
    thin = shown.line
    band, path, dots = _shapes(shown, x, y)
    has_band = not np.array_equal(thin.lows, thin.highs)
    digits = 4 if has_band else 6
    bad_xs = steps_of(line.bad_xs, is_log_x=is_log_x).tolist()
    return CurveShapes(
        label, letter(line.style), line.style, path, band, dots, tuple(_marks(line, label, x, is_log_x)),
        _words(steps_of(thin.xs, is_log_x=is_log_x)), _words(thin.lows, digits),
        _words(shown.mids, digits) if has_band else "", _words(thin.highs, digits) if has_band else "",
        " ".join(str(at) for at in (np.flatnonzero(thin.breaks) + 1).tolist()),
        " ".join(f"{_word(at)}:{_word(value)}" for at, value in zip(bad_xs, line.bad_values.tolist(), strict=True)),
        is_one_of_many,
    )  # fmt: skip


def _shapes(shown: Drawn, x: Axis, y: Axis) -> tuple[str, str, tuple[tuple[float, float], ...]]:
    """Return the band, the path through the middle, and the points that stand alone, stretch by stretch."""
    line = shown.line
    across = [px(share) for share in x.shares(line.xs).tolist()]
    lows, mids, highs = (
        [py(share) for share in y.shares(values).tolist()]
        for values in (line.lows, shown.mids, line.highs)
    )
    ends = [0, *(np.flatnonzero(line.breaks) + 1).tolist(), len(across)]
    band, path, dots = "", "", []
    for start, end in pairwise(ends):
        upper, middle, lower = (
            list(zip(across[start:end], ys[start:end], strict=True)) for ys in (highs, mids, lows)
        )
        path += _through(middle)
        is_alone = len(middle) == 1 and upper == lower
        dots += (
            middle if is_alone or line.mids is not None else []
        )  # of intervals it is to be seen where they were measured
        band += _through([*upper, *reversed(lower)]) + "Z" if upper != lower else ""
    return band, path, tuple(dots)


def _through(points: Points) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if points else ""


def _marks(line: Line, label: str, x: Axis, is_log_x: bool) -> list[NonFiniteMark]:
    found: dict[tuple[int, str], NonFiniteMark] = {}
    xs, values = bad_points(line)
    steps = steps_of(xs, is_log_x=is_log_x).tolist()
    for step, share, value in zip(steps, x.shares(xs).tolist(), values.tolist(), strict=True):
        kind = "nan" if value != value else "inf" if value > 0 else "-inf"
        at = px(share)
        words = f"{format_number(value)} at {step:g}{', ' + label if label else ''}"
        found.setdefault(
            (int(at / _MARK_EVERY), kind),
            NonFiniteMark(at, BOTTOM - 5 if kind == "-inf" else TOP - 8, kind, words),
        )
    return list(found.values())


def _words(values: Floats, digits: int = 6) -> str:
    return " ".join(_word(value, digits) for value in values.tolist())


def _word(value: float, digits: int = 6) -> str:
    """Return a number in the fewest characters that so many digits take; a step exactly."""
    if value != value or abs(value) == float("inf"):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.{digits}g}"
