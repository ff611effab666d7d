"""Lines of a chart: what a `Series` holds, as arrays along steps or time, with its gaps and the points that are no numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tuilab.arrays import NDArray, np
from tuilab.record.series import Series
from tuilab.text.display import NAME_LIMIT, show

Floats = NDArray[np.float64]
ArrayCache = dict[tuple[int, str], tuple[Sequence[float], Floats]]
"""Lists of series that grow, each with the array that was made of it, by the place of its series and what it is."""
_GAP = 5.0  # times the usual spacing in time: the line is broken there
_FLOOD = 1000  # marks, more than there are columns
_MANY = 8  # points that make a spacing usual
PATIENCE = 2.5  # times that: so long the last point before a break counts
_NONE: Floats = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Line:
    """The least and the greatest value from each x to the next; x never falls.

    On a logarithmic axis x are the powers of ten of the steps, so that all that moves along the axis can add and compare.
    """

    label: str
    xs: Floats
    lows: Floats
    highs: Floats
    bad_xs: Floats
    bad_values: Floats
    breaks: NDArray[np.bool_]  # after each x but the last
    style: int = 0  # lines of one look belong together, as the repeats of an arm do
    bad_count: int = 0
    last: float = math.nan
    last_x: float = 0.0
    off_axis: int = 0  # places that a logarithmic x axis cannot show
    mids: Floats | None = None  # where the middle was measured by itself, as that of an interval
    gaps: Floats = field(
        default_factory=lambda: _NONE
    )  # where it was looked for first and could not be told
    owner: str = ""  # whose it is, among lines of one name
    is_merged: bool = False  # whether points share a place: which of them came before what is no number is not known

    @property
    def is_empty(self) -> bool:
        return not len(self.xs) and not len(self.bad_xs)


@dataclass(frozen=True)
class LineReading:
    """What a line has at some x; `low` and `high` differ where several points share a place."""

    low: float
    high: float


def lines_of(
    series: Sequence[Series],
    names: Sequence[str] = (),
    *,
    is_timed: bool = False,
    is_log_x: bool = False,
    starts: Sequence[int] = (),
    order: Sequence[str] = (),
    owners: Sequence[str] = (),
    array_cache: ArrayCache | None = None,
) -> tuple[Line, ...]:
    """Return a line for each series, called by `names` or its arm; those of one name, however long, share a look.

    Names in `order` have the look of their place there, so that an arm looks the same in every chart.

    `is_timed` puts them along seconds instead of steps, each since its moment in `starts` (or since 0); `is_log_x` along the
    logarithms of the steps. What `known` has of an earlier call is not made an array again.
    """
    called = names or [one.arm for one in series]
    looks = {name: look for look, name in enumerate(dict.fromkeys([*order, *called]))}
    starts = starts or [0] * len(series)
    array_cache = {} if array_cache is None else array_cache
    found = tuple(
        _line(
            one,
            place,
            array_cache,
            show(name, NAME_LIMIT),
            looks[name],
            is_timed,
            is_log_x,
            start_t,
        )
        for place, (one, name, start_t) in enumerate(zip(series, called, starts, strict=True))
    )
    if len(found) == 1:
        return found
    owners = owners or [""] * len(found)
    shared: dict[
        bytes, Floats
    ] = {}  # lines whose points stand at the same places share them, and are drawn at once
    return tuple(
        replace(
            line, xs=shared.setdefault(line.xs.tobytes(), line.xs), owner=show(owner, NAME_LIMIT)
        )
        for line, owner in zip(found, owners, strict=True)
    )


def _line(
    series: Series,
    place: int,
    array_cache: ArrayCache,
    label: str,
    look: int,
    is_timed: bool,
    is_log_x: bool,
    start_t: int,
) -> Line:
    xs = (
        _grown(array_cache, (place, "times"), series.times)
        if is_timed
        else _grown(array_cache, (place, "steps"), series.steps)
    )
    bad_xs = np.array([bad.t if is_timed else bad.step for bad in series.bad], np.float64)
    last = series.last_t if is_timed else series.last_step

    def placed(found: Floats) -> Floats:
        return (found - float(start_t)) / 1e9 if is_timed else found

    line = Line(
        label,
        placed(xs),
        _grown(array_cache, (place, "lows"), series.lows),
        _grown(array_cache, (place, "highs"), series.highs),
        placed(bad_xs),
        np.array([bad.value for bad in series.bad], np.float64),
        np.zeros(0, np.bool_),
        look,
        series.bad_count,
        series.last,
        float(placed(np.array([last], np.float64))[0]),
    )
    line = _in_order(line)
    line = _along_powers(line) if is_log_x and not is_timed else line
    gaps = placed(np.array(series.gaps if is_timed else (), np.float64))
    is_merged = series.count - series.bad_count > len(series.lows)
    return replace(line, breaks=_breaks(line, is_timed, gaps), gaps=gaps, is_merged=is_merged)


def _grown(array_cache: ArrayCache, key: tuple[int, str], values: Sequence[float]) -> Floats:
    """Return an array of a list of buckets, whose last one may have changed; when neighbours were merged it is another list."""
    before, array = array_cache.get(key, (None, _NONE))
    kept = array[:-1] if before is values else _NONE
    array = np.concatenate([kept, np.array(values[len(kept) :], np.float64)])
    array_cache[key] = values, array
    return array


def _in_order(line: Line) -> Line:
    """Sort by x: a training may count its steps from 0 again."""
    if (line.xs[1:] < line.xs[:-1]).any():
        order = np.argsort(line.xs, kind="stable")
        line = replace(line, xs=line.xs[order], lows=line.lows[order], highs=line.highs[order])
    if (line.bad_xs[1:] < line.bad_xs[:-1]).any():
        order = np.argsort(line.bad_xs, kind="stable")
        line = replace(line, bad_xs=line.bad_xs[order], bad_values=line.bad_values[order])
    return line


def _along_powers(line: Line) -> Line:
    """Return a line along the logarithms of its x, without the places that have none."""
    kept, kept_bad = line.xs > 0, line.bad_xs > 0
    xs, bad_xs = np.log10(line.xs[kept]), np.log10(line.bad_xs[kept_bad])
    last_x = (
        math.log10(line.last_x)
        if line.last_x > 0
        else max([*xs[-1:].tolist(), *bad_xs[-1:].tolist()], default=0.0)
    )
    return replace(
        line, xs=xs, lows=line.lows[kept], highs=line.highs[kept], bad_xs=bad_xs, bad_values=line.bad_values[kept_bad],
        last_x=last_x, off_axis=int(np.count_nonzero(~kept) + np.count_nonzero(~kept_bad)),
    )  # fmt: skip


def steps_of(places: Floats, *, is_log_x: bool) -> Floats:
    """Return the steps that stand at some places of an axis; those that were whole numbers are again."""
    if not is_log_x:
        return places
    with np.errstate(over="ignore", invalid="ignore"):
        steps = 10.0**places
        wholes = np.rint(steps)
        return np.where(np.abs(steps - wholes) <= 1e-9 * wholes, wholes, steps)


def step_at(place: float, *, is_log_x: bool) -> float:
    """Return the step that stands at a place of an axis."""
    return float(steps_of(np.array([place], np.float64), is_log_x=is_log_x)[0])


def are_whole(lines: Sequence[Line]) -> bool:
    """Say whether all lines have points at whole numbers alone: then ticks between them would mean nothing."""
    return all(
        bool((part == np.rint(part)).all()) for line in lines for part in (line.xs, line.bad_xs)
    )


def _breaks(line: Line, is_timed: bool, gaps: Floats) -> NDArray[np.bool_]:
    """Say where the line is broken: at points that are no numbers, and where nothing was measured at a look or for long."""
    broken = (np.diff(np.searchsorted(line.bad_xs, line.xs)) > 0) | (
        np.diff(np.searchsorted(gaps, line.xs)) > 0
    )
    if is_timed and len(broken) >= _MANY:
        spacing = np.diff(line.xs)
        broken |= spacing > _GAP * float(np.median(spacing))
    return broken


def smooth(line: Line, weight: float = 0.9) -> Line:
    """Return the moving average of a line's numbers; what is no number is passed over.

    It is taken from both ends, so that it neither lags behind a loss that falls nor runs ahead of it.
    """
    values = (line.lows / 2 + line.highs / 2).clip(-1.7e308, 1.7e308)
    values = np.nan_to_num(
        _averaged(values, weight) / 2 + _averaged(values[::-1], weight)[::-1] / 2
    )
    return replace(line, lows=values, highs=values)


def _averaged(values: Floats, weight: float) -> Floats:
    """Return the average of each value and those before it, nearer ones counting more, without the pull of the first."""
    averages = []
    average, debt = 0.0, 1.0
    for value in values.tolist():
        average = average * weight + value * (1 - weight)
        debt *= weight
        averages.append(average / (1 - debt))
    return np.array(averages, np.float64)


def group_by_style(lines: Sequence[Line]) -> dict[int, list[Line]]:
    """Return the lines of each look, in the order of looks: arms may be drawn by lot."""
    found: dict[int, list[Line]] = {}
    for line in lines:
        found.setdefault(line.style, []).append(line)
    return dict(sorted(found.items()))


def last_values(lines: Sequence[Line]) -> list[float]:
    """Return the last value of each line that has any."""
    return [line.last for line in lines if not line.is_empty]


def values_at(lines: Sequence[Line], x: float) -> list[LineReading]:
    """Return what each line has at x: the points of its bucket there, or the NaN or Inf that came last; nothing in a gap."""
    readings = (reading_at(line, x) for line in lines)
    return [reading for reading in readings if reading is not None]


def reading_at(line: Line, x: float) -> LineReading | None:
    """Return what one line has at x; None where it has nothing there."""
    bad, last, at = _last_before(line.bad_xs, x), _last_before(line.xs, x), find_point(line, x)
    has_bad = bad >= 0 and (last < 0 or line.bad_xs[bad] >= line.xs[last])
    if has_bad and (line.bad_xs[bad] == x or at is None or x >= line.last_x or not line.is_merged):
        value = float(line.bad_values[bad])
        return LineReading(value, value)
    return None if at is None else LineReading(float(line.lows[at]), float(line.highs[at]))


def find_point(line: Line, x: float) -> int | None:
    """Return which point counts at x: the last before, unless the line is broken between, or ended, for some time."""
    at = _last_before(line.xs, x)
    if at < 0 or is_in_gap(line, x):
        return None
    is_last = at == len(line.xs) - 1
    if not is_last and not line.breaks[at]:
        return at
    end = max(float(line.xs[at]), line.last_x) if is_last else float(line.xs[at])
    spacing = np.diff(line.xs[max(at - _MANY, 0) : at + 1])
    return at if not len(spacing) or x <= end + PATIENCE * float(np.median(spacing)) else None


def is_in_gap(line: Line, x: float) -> bool:
    """Say whether x is where something was looked for and could not be told."""
    gap, at = _last_before(line.gaps, x), _last_before(line.xs, x)
    return gap >= 0 and at >= 0 and bool(line.gaps[gap] > line.xs[at])


def _last_before(places: Floats, x: float) -> int:
    """Return the last of some places up to x, -1 where there is none."""
    return int(np.searchsorted(places, x, "right")) - 1


def next_bad(lines: Sequence[Line], x: float) -> float | None:
    """Return the first x after `x` where some line is no number; after the last it begins again, None when there is none."""
    places = np.concatenate([line.bad_xs for line in lines]) if lines else np.zeros(0)
    after = places[places > x]
    return float((after if len(after) else places).min()) if len(places) else None


def bad_points(line: Line) -> tuple[Floats, Floats]:
    """Return where to mark that there was no number, and which; of a flood that was not kept to its end, all the way."""
    is_flooded = 0 < len(line.bad_xs) < line.bad_count and not math.isfinite(line.last)
    if not is_flooded or (len(line.xs) and line.xs[-1] > line.bad_xs[-1]):
        return line.bad_xs, line.bad_values
    rest = np.linspace(float(line.bad_xs[-1]), line.last_x, _FLOOD)
    return np.append(line.bad_xs, rest), np.append(line.bad_values, np.full(_FLOOD, line.last))


def next_point(lines: Sequence[Line], x: float | None, wanted: float) -> float | None:
    """Return the point nearest to `wanted` that is further from x in its direction (from anywhere when x is None)."""
    places = (
        np.concatenate([part for line in lines for part in (line.xs, line.bad_xs)])
        if lines
        else np.zeros(0)
    )
    if x is not None:
        places = places[places > x] if wanted > x else places[places < x]
    return float(places[np.argmin(np.abs(places - wanted))]) if len(places) else None


def drop_nonpositive(line: Line) -> tuple[Line, int]:
    """Return a line without the points that a logarithm cannot show, broken where they were, and at how many places it was.

    Of points that share a place, the least may be one of these and the greatest not: then the greatest is shown.
    """
    hidden = int(np.count_nonzero(line.lows <= 0))
    if not hidden:
        return line, 0
    is_kept = line.highs > 0
    line = replace(line, lows=np.where(line.lows > 0, line.lows, line.highs))
    kept = np.flatnonzero(is_kept)
    broken = np.concatenate([[0], np.cumsum(line.breaks | ~is_kept[1:] | ~is_kept[:-1])])
    breaks = np.diff(broken[kept]) > 0 if len(kept) else np.zeros(0, np.bool_)
    return replace(
        line, xs=line.xs[kept], lows=line.lows[kept], highs=line.highs[kept], breaks=breaks
    ), hidden


def thin_line(line: Line, most: int) -> Line:
    """Return a line of at most `most` points: the least and the greatest of neighbours, so that no spike and no gap is lost."""
    if len(line.xs) <= most:
        return line
    starts = stretch_starts(len(line.xs), most)
    breaks = np.bitwise_or.reduceat(np.append(line.breaks, False), starts)[: len(starts) - 1]
    lows, highs = np.minimum.reduceat(line.lows, starts), np.maximum.reduceat(line.highs, starts)
    return replace(line, xs=line.xs[starts], lows=lows, highs=highs, breaks=breaks)


def stretch_starts(count: int, most: int) -> NDArray[np.int64]:
    """Return where each of at most `most` stretches of points begins."""
    return np.unique(np.linspace(0, count, most, endpoint=False).astype(np.int64))
