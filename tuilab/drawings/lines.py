"""Lines of a chart: the points of a `Series` as arrays along steps or time.

A line also has the gaps of its series, and its points that are not numbers (NaN and Inf).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tuilab.arrays import NDArray, np
from tuilab.record.series import Series
from tuilab.text.display import NAME_LIMIT, show

Floats = NDArray[np.float64]
ArrayCache = dict[tuple[int, str], tuple[Sequence[float], Floats]]
"""The lists of growing series, each with the array that was made of it.

A key is the place of a series among those of a chart, and the name of the list.
"""
_LONG_SPACINGS = 5.0  # times the usual spacing in time, from which on a line is broken
_FLOOD = 1000  # marks, more than there are columns
_USUAL = 8  # points that show which spacing is usual
# An old point before a break, or at the end, still counts for this many usual spacings.
PATIENCE = 2.5
_NONE: Floats = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Line:
    """The least and the greatest value from each x to the next. x never falls.

    On a logarithmic axis, x are the powers of ten of the steps. Whatever moves along the axis can
    then add and compare.
    """

    label: str
    xs: Floats
    lows: Floats
    highs: Floats
    bad_xs: Floats  # of the points that are NaN or Inf
    bad_values: Floats
    breaks: NDArray[np.bool_]  # for each x but the last: whether the line is broken after it
    style: int = 0  # lines of one style belong together, as the repeats of an arm do
    bad_count: int = 0  # may be more than len(bad_xs): not all bad points are kept
    last: float = math.nan  # the last value, which may not be a number
    last_x: float = 0.0
    off_axis: int = 0  # points that a logarithmic x axis cannot show
    mids: Floats | None = None  # middles that were measured themselves, as those of intervals
    gaps: Floats = field(default_factory=lambda: _NONE)  # where the value could not be read
    owner: str = ""  # distinguishes lines of one name
    # Whether points share a bucket. The order of its numbers and bad points is then unknown.
    is_merged: bool = False

    @property
    def is_empty(self) -> bool:
        return not len(self.xs) and not len(self.bad_xs)


@dataclass(frozen=True)
class LineReading:
    """The values of a line at some x. `low` and `high` differ where points share a bucket."""

    low: float
    high: float


# ---- lines of series


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
    """Return a line for each series, called by `names` or its arm. Lines of one name share a style.

    The style of a name in `order` is its place there, so that an arm looks the same in every chart.

    With `is_timed`, x are seconds instead of steps, for each series since its moment in `starts`
    (default: 0). With `is_log_x`, x are the logarithms of the steps. Lists that `array_cache` has
    from an earlier call are not converted to arrays again.
    """
    names = names or [curve.arm for curve in series]
    styles = {name: style for style, name in enumerate(dict.fromkeys([*order, *names]))}
    starts = starts or [0] * len(series)
    if array_cache is None:
        array_cache = {}
    lines = []
    for place, (curve, name, start_t) in enumerate(zip(series, names, starts, strict=True)):
        line = _make_line(
            curve,
            place,
            array_cache,
            show(name, NAME_LIMIT),
            styles[name],
            start_t,
            is_timed=is_timed,
            is_log_x=is_log_x,
        )
        lines.append(line)
    if len(lines) == 1:
        return tuple(lines)
    return _share_places(lines, owners or [""] * len(lines))


def _make_line(
    series: Series,
    place: int,
    array_cache: ArrayCache,
    label: str,
    style: int,
    start_t: int,
    *,
    is_timed: bool,
    is_log_x: bool,
) -> Line:
    """Return the line of a series, sorted by x and with its breaks.

    `place` is the position of the series in the chart, by which `array_cache` knows its arrays.
    Time has no logarithmic axis, so `is_log_x` counts only without `is_timed`.
    """
    if is_timed:
        xs = _seconds_since(start_t, _grow_array(array_cache, (place, "times"), series.times))
        bad_xs = _seconds_since(start_t, [bad.t for bad in series.bad])
        gaps = _seconds_since(start_t, series.gaps)
        last_x = float(_seconds_since(start_t, [series.last_t])[0])
    else:
        xs = _grow_array(array_cache, (place, "steps"), series.steps)
        bad_xs = np.array([bad.step for bad in series.bad], np.float64)
        gaps = _NONE
        last_x = float(series.last_step)
    line = Line(
        label=label,
        xs=xs,
        lows=_grow_array(array_cache, (place, "lows"), series.lows),
        highs=_grow_array(array_cache, (place, "highs"), series.highs),
        bad_xs=bad_xs,
        bad_values=np.array([bad.value for bad in series.bad], np.float64),
        breaks=np.zeros(0, np.bool_),  # found once the points are sorted
        style=style,
        bad_count=series.bad_count,
        last=series.last,
        last_x=last_x,
        gaps=gaps,
        is_merged=series.count - series.bad_count > len(series.lows),
    )
    line = _sort_by_x(line)
    if is_log_x and not is_timed:
        line = _use_powers(line)
    return replace(line, breaks=_find_breaks(line, is_timed=is_timed))


def _seconds_since(start_t: int, times: Sequence[float] | Floats) -> Floats:
    """Return moments in nanoseconds as seconds since a moment."""
    return (np.asarray(times, np.float64) - float(start_t)) / 1e9


def _grow_array(array_cache: ArrayCache, key: tuple[int, str], values: Sequence[float]) -> Floats:
    """Return the array of a list of buckets, of which only the new ones are converted.

    The last bucket may have changed since the previous call. When a series merges its buckets, it
    has another list, which is converted as a whole.
    """
    cached_values, array = array_cache.get(key, (None, _NONE))
    unchanged = _NONE
    if cached_values is values:
        unchanged = array[:-1]
    new = np.array(values[len(unchanged) :], np.float64)
    array = np.concatenate([unchanged, new])
    array_cache[key] = values, array
    return array


def _sort_by_x(line: Line) -> Line:
    """Return a line sorted by x, because a training may count its steps from 0 again."""
    if (line.xs[1:] < line.xs[:-1]).any():
        order = np.argsort(line.xs, kind="stable")
        line = replace(line, xs=line.xs[order], lows=line.lows[order], highs=line.highs[order])
    if (line.bad_xs[1:] < line.bad_xs[:-1]).any():
        order = np.argsort(line.bad_xs, kind="stable")
        line = replace(line, bad_xs=line.bad_xs[order], bad_values=line.bad_values[order])
    return line


def _use_powers(line: Line) -> Line:
    """Return a line along the logarithms of its x, without the points that have none."""
    has_power = line.xs > 0
    bad_has_power = line.bad_xs > 0
    xs = np.log10(line.xs[has_power])
    bad_xs = np.log10(line.bad_xs[bad_has_power])
    if line.last_x > 0:
        last_x = math.log10(line.last_x)
    else:
        last_x = max([*xs[-1:].tolist(), *bad_xs[-1:].tolist()], default=0.0)
    off_axis = np.count_nonzero(~has_power) + np.count_nonzero(~bad_has_power)
    return replace(
        line,
        xs=xs,
        lows=line.lows[has_power],
        highs=line.highs[has_power],
        bad_xs=bad_xs,
        bad_values=line.bad_values[bad_has_power],
        last_x=last_x,
        off_axis=int(off_axis),
    )


def _find_breaks(line: Line, *, is_timed: bool) -> NDArray[np.bool_]:
    """Say after which points a line is broken.

    It is broken by a bad point, by a gap, and along time by a long wait for the next point.
    """
    has_bad = np.diff(np.searchsorted(line.bad_xs, line.xs)) > 0
    has_gap = np.diff(np.searchsorted(line.gaps, line.xs)) > 0
    breaks: NDArray[np.bool_] = has_bad | has_gap
    if is_timed and len(breaks) >= _USUAL:
        spacings = np.diff(line.xs)
        breaks |= spacings > _LONG_SPACINGS * float(np.median(spacings))
    return breaks


def _share_places(lines: Sequence[Line], owners: Sequence[str]) -> tuple[Line, ...]:
    """Return lines with their owners, in which equal arrays of x are one object.

    Lines that share their x are drawn together.
    """
    shared_xs: dict[bytes, Floats] = {}
    owned_lines = []
    for line, owner in zip(lines, owners, strict=True):
        xs = shared_xs.setdefault(line.xs.tobytes(), line.xs)
        owned_lines.append(replace(line, xs=xs, owner=show(owner, NAME_LIMIT)))
    return tuple(owned_lines)


# ---- steps


def steps_of(xs: Floats, *, is_log_x: bool) -> Floats:
    """Return the steps at some places of an axis. Whole steps are whole again."""
    if not is_log_x:
        return xs
    with np.errstate(over="ignore", invalid="ignore"):
        steps = 10.0**xs
        wholes = np.rint(steps)
        return np.where(np.abs(steps - wholes) <= 1e-9 * wholes, wholes, steps)


def step_at(x: float, *, is_log_x: bool) -> float:
    """Return the step at a place of an axis."""
    return float(steps_of(np.array([x], np.float64), is_log_x=is_log_x)[0])


def are_whole(lines: Sequence[Line]) -> bool:
    """Say whether all points have whole numbers as x. Ticks between these would mean nothing."""
    for line in lines:
        for xs in (line.xs, line.bad_xs):
            if not (xs == np.rint(xs)).all():
                return False
    return True


# ---- groups of lines


def group_by_style(lines: Sequence[Line]) -> dict[int, list[Line]]:
    """Return the lines of each style, in the order of styles: arms may run in a random order."""
    groups: dict[int, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.style, []).append(line)
    return dict(sorted(groups.items()))


def last_values(lines: Sequence[Line]) -> list[float]:
    """Return the last value of each line that has a value."""
    return [line.last for line in lines if not line.is_empty]


# ---- values at some x


def values_at(lines: Sequence[Line], x: float) -> list[LineReading]:
    """Return the readings at x of the lines that have one there."""
    readings = []
    for line in lines:
        reading = reading_at(line, x)
        if reading is not None:
            readings.append(reading)
    return readings


def reading_at(line: Line, x: float) -> LineReading | None:
    """Return the values of the bucket at x, or the NaN or Inf that came last; None in a gap."""
    bad = _last_before(line.bad_xs, x)
    last = _last_before(line.xs, x)
    point = find_point(line, x)
    is_bad_last = bad >= 0 and (last < 0 or line.bad_xs[bad] >= line.xs[last])
    # Merged numbers may lie on both sides of the bad point, which then counts at its own x alone,
    # and where no number counts or comes after it.
    counts_onwards = point is None or x >= line.last_x or not line.is_merged
    if is_bad_last and (line.bad_xs[bad] == x or counts_onwards):
        value = float(line.bad_values[bad])
        return LineReading(value, value)
    if point is None:
        return None
    return LineReading(float(line.lows[point]), float(line.highs[point]))


def find_point(line: Line, x: float) -> int | None:
    """Return the index of the point that counts at x, which is the last one before x.

    Once the line is broken or has ended, that point only counts for some time.
    """
    point = _last_before(line.xs, x)
    if point < 0 or is_in_gap(line, x):
        return None
    is_last = point == len(line.xs) - 1
    if not is_last and not line.breaks[point]:
        return point
    end = float(line.xs[point])
    if is_last:
        end = max(end, line.last_x)
    spacings = np.diff(line.xs[max(point - _USUAL, 0) : point + 1])
    if not len(spacings) or x <= end + PATIENCE * float(np.median(spacings)):
        return point
    return None


def is_in_gap(line: Line, x: float) -> bool:
    """Say whether the value could not be read at x, nor since the last point."""
    gap = _last_before(line.gaps, x)
    point = _last_before(line.xs, x)
    return gap >= 0 and point >= 0 and bool(line.gaps[gap] > line.xs[point])


def _last_before(xs: Floats, x: float) -> int:
    """Return the index of the last place up to x; -1 if there is none."""
    return int(np.searchsorted(xs, x, "right")) - 1


def next_bad(lines: Sequence[Line], x: float) -> float | None:
    """Return the first x after `x` with a NaN or Inf. After the last, return the first one again.

    None if no line has a NaN or Inf.
    """
    parts = [line.bad_xs for line in lines]
    bad_xs = np.concatenate([_NONE, *parts])
    if not len(bad_xs):
        return None
    after = bad_xs[bad_xs > x]
    if len(after):
        return float(after.min())
    return float(bad_xs.min())


def next_point(lines: Sequence[Line], x: float | None, target: float) -> float | None:
    """Return the x of the point nearest to `target`, of those on the side of `x` where it lies.

    Without `x`, all points count. None if there is no such point.
    """
    parts = [_NONE]
    for line in lines:
        parts += [line.xs, line.bad_xs]
    xs = np.concatenate(parts)
    if x is not None:
        xs = xs[xs > x] if target > x else xs[xs < x]
    if not len(xs):
        return None
    nearest = np.argmin(np.abs(xs - target))
    return float(xs[nearest])


# ---- other forms of a line


def smooth(line: Line, weight: float = 0.9) -> Line:
    """Return the moving average of the numbers of a line, without its NaN and Inf.

    It is the mean of the averages from both ends. So it neither lags behind a falling loss nor
    runs ahead of it.
    """
    values = (line.lows / 2 + line.highs / 2).clip(-1.7e308, 1.7e308)
    forward = _average(values, weight)
    backward = _average(values[::-1], weight)[::-1]
    averages = np.nan_to_num(forward / 2 + backward / 2)
    return replace(line, lows=averages, highs=averages)


def _average(values: Floats, weight: float) -> Floats:
    """Return the exponential moving average, corrected for its start at 0."""
    averages = []
    average = 0.0
    start_weight = 1.0
    for value in values.tolist():
        average = average * weight + value * (1 - weight)
        start_weight *= weight
        averages.append(average / (1 - start_weight))
    return np.array(averages, np.float64)


def bad_points(line: Line) -> tuple[Floats, Floats]:
    """Return the places and values of the NaN and Inf to mark.

    A series keeps only the first of them. If more came and the last value is one of them, the line
    is marked from the last that was kept to its end.
    """
    is_flooded = 0 < len(line.bad_xs) < line.bad_count and not math.isfinite(line.last)
    if not is_flooded or (len(line.xs) and line.xs[-1] > line.bad_xs[-1]):
        return line.bad_xs, line.bad_values
    rest = np.linspace(float(line.bad_xs[-1]), line.last_x, _FLOOD)
    rest_values = np.full(_FLOOD, line.last)
    return np.append(line.bad_xs, rest), np.append(line.bad_values, rest_values)


def drop_nonpositive(line: Line) -> tuple[Line, int]:
    """Return a line without the values that a logarithm cannot show, and how many places had one.

    The line is broken at the places that are left out. If only some points of a bucket can be
    shown, its greatest value stands for it.
    """
    hidden = int(np.count_nonzero(line.lows <= 0))
    if not hidden:
        return line, 0
    is_shown = line.highs > 0
    shown = np.flatnonzero(is_shown)
    lows = np.where(line.lows > 0, line.lows, line.highs)
    breaks = np.zeros(0, np.bool_)
    if len(shown):
        is_broken = line.breaks | ~is_shown[1:] | ~is_shown[:-1]
        breaks_before = np.concatenate([[0], np.cumsum(is_broken)])
        breaks = np.diff(breaks_before[shown]) > 0
    shown_line = replace(
        line, xs=line.xs[shown], lows=lows[shown], highs=line.highs[shown], breaks=breaks
    )
    return shown_line, hidden


def thin_line(line: Line, most: int) -> Line:
    """Return a line of at most `most` points, without losing a spike or a gap.

    Each is the least and the greatest value of neighbours.
    """
    if len(line.xs) <= most:
        return line
    starts = stretch_starts(len(line.xs), most)
    breaks = np.bitwise_or.reduceat(np.append(line.breaks, False), starts)
    return replace(
        line,
        xs=line.xs[starts],
        lows=np.minimum.reduceat(line.lows, starts),
        highs=np.maximum.reduceat(line.highs, starts),
        breaks=breaks[: len(starts) - 1],
    )


def stretch_starts(count: int, most: int) -> NDArray[np.int64]:
    """Return the index at which each of at most `most` stretches of `count` points begins."""
    return np.unique(np.linspace(0, count, most, endpoint=False).astype(np.int64))
