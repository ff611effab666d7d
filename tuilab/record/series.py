"""Holds a long series of numbers in bounded memory, without averaging a spike away."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from tuilab.record.events import AxesNamed, BlockLogged, Logged, ValuesOfBlock
from tuilab.text.words import unit_of

# Buckets of a series. At the limit, neighbours are merged, and each bucket takes twice the points.
LIMIT = 4096
BAD_LIMIT = 1000  # non-finite points that are kept with their step; all are counted
_LOG_FROM = 50.0  # factor between the ends of values from which a logarithmic axis is better
_FEW = 64  # records of an arm: adding fewer of them together costs more than one by one
_NUMBERS = re.compile(r"\d+")
_NEVER_LOG = ("bytes", "%")  # units on whose axes twice as much has to look twice as high


@dataclass(slots=True)
class Bad:
    """A point that is NaN or infinite."""

    step: int | float
    t: int
    value: float


@dataclass(slots=True)
class Series:
    """The points of one name, arm and writer: the least and the greatest value of each bucket.

    NaN and Inf are kept apart. The step of a point is its place on the axis: mostly a whole number,
    but a scenario may log a point at any number.
    """

    name: str
    arm: str = ""
    writer: str = ""
    steps: list[int | float] = field(default_factory=list)  # of the first point of each bucket
    times: list[int] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    bad_count: int = 0
    count: int = 0
    last: float = math.nan
    last_step: int | float = 0
    last_t: int = 0
    gaps: list[int] = field(default_factory=list)  # times at which a value was missing
    _stride: int = 1  # points of a bucket
    _room: int = 0  # points that the last bucket still takes
    _least: float = math.inf  # of all finite values
    _most: float = -math.inf

    def __post_init__(self) -> None:
        if self.lows and self._least > self._most:  # built from buckets, not by `add`
            self._least, self._most = min(self.lows), max(self.highs)

    def add(self, step: float, t: int, value: float) -> None:
        """Append a point; one that is NaN or infinite is kept apart."""
        self.count += 1
        self.last, self.last_step, self.last_t = value, step, t
        if value - value != 0.0:  # NaN or infinite; cheaper than math.isfinite
            self._add_bad(step, t, value)
        elif self._room:
            self._room -= 1
            if value < self.lows[-1] or value > self.highs[-1]:
                self._widen(value, value)
        else:
            self._open_bucket(step, t, value)

    def leave_gap(self, t: int) -> None:
        """Break the line after its last point, once; before the first point there is no line."""
        if self.count == 0 or len(self.gaps) >= BAD_LIMIT:
            return
        if not self.gaps or self.gaps[-1] <= self.last_t:
            self.gaps.append(t)

    def add_many(self, points: Sequence[Logged], values: Sequence[float]) -> None:
        """Append the values of points: the same as `add` for each, but several times as fast."""
        if not math.isfinite(sum(values)):  # or the sum is too large, which only costs time
            for point, value in zip(points, values, strict=True):
                self.add(point.place, point.logged_at, value)
            return
        position = 0
        while position < len(values):
            if not self._room:
                point = points[position]
                self._open_bucket(point.place, point.logged_at, values[position])
                position += 1
            in_bucket = values[position : position + self._room]
            if in_bucket:
                self._widen(min(in_bucket), max(in_bucket))
                self._room -= len(in_bucket)
                position += len(in_bucket)
        if values:
            self.count += len(values)
            self.last = values[-1]
            self.last_step = points[-1].place
            self.last_t = points[-1].logged_at

    def add_block(self, step: int, t: int, values: ValuesOfBlock) -> None:
        """Append the values of a block of steps, whose first step and last moment are known."""
        if values.bad:
            self.bad_count += values.bad - 1
            self.count += values.bad - 1
            self.add(step, t, math.nan)
        if not values.count:
            return
        self.count += values.count
        self.last, self.last_step, self.last_t = values.last, step, t
        if self._room:
            self._widen(values.least, values.greatest)
            self._room = max(self._room - values.count, 0)
        else:
            self._open_bucket(step, t, values.least)
            self._widen(values.least, values.greatest)
            self._room = max(self._stride - values.count, 0)

    @property
    def first_t(self) -> int:
        """The time of the first point, finite or not."""
        first = self.times[0] if self.times else self.last_t
        if self.bad:
            first = min(first, self.bad[0].t)
        return first

    @property
    def low(self) -> float | None:
        """The least finite value; None if there is none."""
        return self._least if self.lows else None

    @property
    def high(self) -> float | None:
        """The greatest finite value; None if there is none."""
        return self._most if self.highs else None

    @property
    def first_bad_step(self) -> int | float | None:
        """The step of the first value that is NaN or infinite; None if there is none."""
        return self.bad[0].step if self.bad else None

    def _add_bad(self, step: float, t: int, value: float) -> None:
        """Count a point that is NaN or infinite, and keep the first ones."""
        self.bad_count += 1
        if len(self.bad) < BAD_LIMIT:
            self.bad.append(Bad(step, t, value))

    def _open_bucket(self, step: float, t: int, value: float) -> None:
        """Put a finite value into a new bucket; at the limit, merge all buckets in pairs first."""
        if len(self.lows) >= LIMIT:
            self._merge_neighbours()
        self.steps.append(step)
        self.times.append(t)
        self.lows.append(value)
        self.highs.append(value)
        if value < self._least:
            self._least = value
        if value > self._most:
            self._most = value
        self._room = self._stride - 1

    def _widen(self, low: float, high: float) -> None:
        """Put values with these ends into the last bucket."""
        if low < self.lows[-1]:
            self.lows[-1] = low
            self._least = min(self._least, low)
        if high > self.highs[-1]:
            self.highs[-1] = high
            self._most = max(self._most, high)

    def _merge_neighbours(self) -> None:
        """Halve the number of buckets, so that each stands for twice as many points."""
        self.steps = self.steps[::2]
        self.times = self.times[::2]
        self.lows = list(map(min, self.lows[::2], self.lows[1::2]))
        self.highs = list(map(max, self.highs[::2], self.highs[1::2]))
        self._stride *= 2


SeriesByKey = dict[tuple[str, str, str], Series]  # name, arm, writer


# ---- adding logged records


def add_logged(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Add the records that one writer logged, in their order."""
    arms = by_arm(logged)
    if len(arms) > len(logged) / _FEW:
        _add_each(series, writer, logged)
        return
    if len(arms) > 1:
        _open_in_order(series, writer, logged)
    for arm, records in arms.items():
        for name, (records_with_name, values) in columns(records).items():
            key = (name, arm, writer)
            line = series.get(key) or series.setdefault(key, Series(*key))
            line.add_many(records_with_name, values)


def _add_each(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Add records one by one."""
    for record in logged:
        step, t = record.place, record.logged_at
        for name, value in record.v.items():
            key = (name, record.a, writer)
            line = series.get(key) or series.setdefault(key, Series(*key))
            line.add(step, t, value)


def add_block(series: SeriesByKey, writer: str, block: BlockLogged) -> None:
    """Add a block of steps that one writer logged."""
    for name, values in block.v.items():
        key = (name, block.a, writer)
        line = series.get(key) or series.setdefault(key, Series(*key))
        line.add_block(block.s, block.logged_at, values)


def by_arm(logged: Sequence[Logged]) -> Mapping[str, Sequence[Logged]]:
    """Return the records of each arm."""
    if len({record.a for record in logged}) == 1:
        return {logged[0].a: logged}
    arms: dict[str, list[Logged]] = {}
    for record in logged:
        arms.setdefault(record.a, []).append(record)
    return arms


def _open_in_order(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Make the series in the order of their first records, of all arms: the first is charted."""
    keys: dict[tuple[str, str, str], None] = {}
    for record in logged:
        for name in record.v:
            keys[name, record.a, writer] = None
    for key in keys:
        series.setdefault(key, Series(*key))


def columns(records: Sequence[Logged]) -> dict[str, tuple[Sequence[Logged], list[float]]]:
    """Return, by name, the records that have it and their values."""
    by_name: dict[str, tuple[Sequence[Logged], list[float]]] = {}
    values = [record.v for record in records]
    names = list(values[0])
    if sum(map(len, values)) == len(names) * len(values):
        try:  # mostly all records have the same names
            for name in names:
                by_name[name] = (records, [value[name] for value in values])
            return by_name
        except KeyError:  # as many names, but others
            by_name = {}
    all_names = dict.fromkeys(chain.from_iterable(values))
    for name in all_names:
        records_with_name = [record for record in records if name in record.v]
        by_name[name] = (records_with_name, [record.v[name] for record in records_with_name])
    return by_name


# ---- groups of series


def first_of_each_arm(series: SeriesByKey, name: str) -> list[Series]:
    """Return the series of a name: for each arm, that of the first process that has it."""
    firsts: dict[str, Series] = {}
    for line in series.values():
        if line.name == name:
            firsts.setdefault(line.arm, line)
    return list(firsts.values())


def siblings(series: SeriesByKey, name: str) -> list[Series]:
    """Return the series of the same quantity, as `layer.3/norm` and `layer.12/norm`."""
    kind = _kind_of(name)
    return [line for line in series.values() if line.name == name or _kind_of(line.name) == kind]


def _kind_of(name: str) -> tuple[str, str]:
    """Return the unit and the last part of a name, without its numbers."""
    return unit_of(name), _NUMBERS.sub("#", name.rpartition("/")[2])


# ---- linear or logarithmic axes


def is_log_y(axes: AxesNamed, series: Iterable[Series]) -> bool:
    """Say whether the y axis of a metric is logarithmic at first.

    The scenario decides; if it said nothing, the values do.
    """
    if axes.log is None:
        return wants_log_y(series, unit_of(axes.metric))
    return "y" in axes.log


def is_log_x(axes: AxesNamed, series: Iterable[Series]) -> bool:
    """Say whether the x axis of a metric is logarithmic at first.

    It is if the scenario said so and at least one step is above 0.
    """
    return "x" in (axes.log or "") and can_be_log_x(series)


def can_be_log_x(series: Iterable[Series]) -> bool:
    """Say whether any point has a step above 0, which a logarithmic axis can show."""
    for line in series:
        if any(step > 0 for step in line.steps):
            return True
        if any(bad.step > 0 for bad in line.bad):
            return True
    return False


def wants_log_y(series: Iterable[Series], unit: str) -> bool:
    """Say whether the values of series suggest a logarithmic axis.

    Both their ends and the ends without a few lowest points have to be far apart.
    """
    lines = list(series)
    return wants_log(ends_of(lines), unit) and wants_log(spreads_of(lines), unit)


def wants_log(values: Iterable[float], unit: str) -> bool:
    """Say whether values suggest a logarithmic axis: all above 0, and their ends far apart."""
    all_values = list(values)
    if unit in _NEVER_LOG or not all_values:
        return False
    low = min(all_values)
    return low > 0 and max(all_values) / low > _LOG_FROM


def ends_of(series: Iterable[Series]) -> list[float]:
    """Return the least and the greatest value of each series that has a finite one."""
    ends = []
    for line in series:
        if line.low is not None and line.high is not None:
            ends += [line.low, line.high]
    return ends


def spreads_of(series: Iterable[Series]) -> list[float]:
    """Return two ends of each series: the end of its lowest tenth, and its greatest value.

    A few points that nearly touch 0 do not decide about an axis. If the least value is not above 0,
    it is returned instead of the end of the lowest tenth.
    """
    spreads = []
    for line in series:
        if line.lows:
            lows = sorted(line.lows)
            low = lows[0]
            if low > 0:
                low = lows[len(lows) // 10]
            spreads += [low, max(line.highs)]
    return spreads
