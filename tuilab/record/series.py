"""A series of numbers that stays small however long it gets, and never averages a spike away."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from tuilab.record.events import AxesNamed, Logged
from tuilab.text.words import unit_of

LIMIT = 4096  # buckets; reached, neighbours are merged and each bucket covers twice the points
BAD_LIMIT = 1000  # non-finite points kept with their place; all are counted
_LOG_FROM = 50.0
_FEW = 64  # records of an arm: to take fewer together costs more than each by itself
_NUMBERS = re.compile(r"\d+")
_NEVER_LOG = ("bytes", "%")  # twice as much shall look twice as high


@dataclass(slots=True)
class Bad:
    """A point that is no number."""

    step: int | float
    t: int
    value: float


@dataclass(slots=True)
class Series:
    """Points of one name, arm and writer: the least and the greatest of each bucket, and every NaN and Inf apart.

    A step is where a point stands on the axis: mostly a whole number, and in a sweep whatever the scenario logged it at.
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
    gaps: list[int] = field(
        default_factory=list
    )  # when it was looked for and could not be told: the line is broken there
    _stride: int = 1
    _room: int = 0  # points that the last bucket still takes
    _least: float = math.inf  # of all
    _most: float = -math.inf

    def __post_init__(self) -> None:
        if self.lows and self._least > self._most:  # made of points that somebody has
            self._least, self._most = min(self.lows), max(self.highs)

    def add(self, step: float, t: int, value: float) -> None:
        """Append a point."""
        self.count += 1
        self.last, self.last_step, self.last_t = value, step, t
        if value - value != 0.0:
            self._add_bad(step, t, value)
        elif self._room:
            self._room -= 1
            if value < self.lows[-1] or value > self.highs[-1]:
                self._widen(value, value)
        else:
            self._open_bucket(step, t, value)

    def leave_gap(self, t: int) -> None:
        """Have the line broken behind its last point, once; before its first one there is nothing to break."""
        if (
            self.count
            and (not self.gaps or self.gaps[-1] <= self.last_t)
            and len(self.gaps) < BAD_LIMIT
        ):
            self.gaps.append(t)

    def add_many(self, points: Sequence[Logged], values: Sequence[float]) -> None:
        """Append the values of points: what `add` does with each of them, several times as fast."""
        if not math.isfinite(sum(values)):  # or too large for a sum, which does no harm
            for point, value in zip(points, values, strict=True):
                self.add(point.place, point.logged_at, value)
            return
        at = 0
        while at < len(values):
            if not self._room:
                self._open_bucket(points[at].place, points[at].logged_at, values[at])
                at += 1
            if taken := values[at : at + self._room]:
                self._widen(min(taken), max(taken))
                self._room -= len(taken)
                at += len(taken)
        if values:
            self.count += len(values)
            self.last, self.last_step, self.last_t = (
                values[-1],
                points[-1].place,
                points[-1].logged_at,
            )

    @property
    def first_t(self) -> int:
        """When its first point was, be it a number or not."""
        first = self.times[0] if self.times else self.last_t
        return min(first, self.bad[0].t) if self.bad else first

    @property
    def low(self) -> float | None:
        """The least finite value."""
        return self._least if self.lows else None

    @property
    def high(self) -> float | None:
        """The greatest finite value."""
        return self._most if self.highs else None

    @property
    def first_bad_step(self) -> int | float | None:
        """Where the first value stands that is NaN or infinite."""
        return self.bad[0].step if self.bad else None

    def _add_bad(self, step: float, t: int, value: float) -> None:
        self.bad_count += 1
        if len(self.bad) < BAD_LIMIT:
            self.bad.append(Bad(step, t, value))

    def _open_bucket(self, step: float, t: int, value: float) -> None:
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
        """Take numbers into the last bucket."""
        if low < self.lows[-1]:
            self.lows[-1] = low
            self._least = min(self._least, low)
        if high > self.highs[-1]:
            self.highs[-1] = high
            self._most = max(self._most, high)

    def _merge_neighbours(self) -> None:
        self.steps = self.steps[::2]
        self.times = self.times[::2]
        self.lows = list(map(min, self.lows[::2], self.lows[1::2]))
        self.highs = list(map(max, self.highs[::2], self.highs[1::2]))
        self._stride *= 2


SeriesByKey = dict[tuple[str, str, str], Series]  # name, arm, writer


def add_logged(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Add the records that one writer logged, in their order."""
    arms = by_arm(logged)
    if len(arms) > len(logged) / _FEW:
        _add_each(series, writer, logged)
        return
    if len(arms) > 1:
        _open_in_order(series, writer, logged)
    for arm, records in arms.items():
        for name, (chosen, values) in columns(records).items():
            key = (name, arm, writer)
            found = series.get(key) or series.setdefault(key, Series(*key))
            found.add_many(chosen, values)


def _add_each(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Add records one by one, where arms have so few each that to take them together costs more."""
    for record in logged:
        step, t = record.place, record.logged_at
        for name, value in record.v.items():
            key = (name, record.a, writer)
            found = series.get(key) or series.setdefault(key, Series(*key))
            found.add(step, t, value)


def by_arm(logged: Sequence[Logged]) -> Mapping[str, Sequence[Logged]]:
    """Return the records of each arm."""
    if len({record.a for record in logged}) == 1:
        return {logged[0].a: logged}
    found: dict[str, list[Logged]] = {}
    for record in logged:
        found.setdefault(record.a, []).append(record)
    return found


def _open_in_order(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Make series in the order in which they were first logged, whatever the arm: the first one becomes the chart."""
    for name, arm in dict.fromkeys((name, record.a) for record in logged for name in record.v):
        key = (name, arm, writer)
        series.setdefault(key, Series(*key))


def columns(records: Sequence[Logged]) -> dict[str, tuple[Sequence[Logged], list[float]]]:
    """Return by name the records that have it and its values; mostly all have the same names."""
    values = [record.v for record in records]
    names = list(values[0])
    try:
        if sum(map(len, values)) == len(names) * len(values):
            return {name: (records, [value[name] for value in values]) for name in names}
    except KeyError:
        pass
    having = {
        name: [r for r in records if name in r.v]
        for name in dict.fromkeys(chain.from_iterable(values))
    }
    return {
        name: (chosen, [record.v[name] for record in chosen]) for name, chosen in having.items()
    }


def first_of_each_arm(series: SeriesByKey, name: str) -> list[Series]:
    """Return the series of a name, each arm's of the first process that has it."""
    firsts: dict[str, Series] = {}
    for line in series.values():
        if line.name == name:
            firsts.setdefault(line.arm, line)
    return list(firsts.values())


def siblings(series: SeriesByKey, name: str) -> list[Series]:
    """Return all series that are the same of another part: of the same unit, as `layer.3/norm` and `layer.12/norm`."""
    kind = _kind_of(name)
    return [one for one in series.values() if one.name == name or _kind_of(one.name) == kind]


def _kind_of(name: str) -> tuple[str, str]:
    """Return unit and last part of a name, without its numbers."""
    return unit_of(name), _NUMBERS.sub("#", name.rpartition("/")[2])


def ends_of(found: Iterable[Series]) -> list[float]:
    """Return the least and the greatest number of each series that has one."""
    return [end for one in found for end in (one.low, one.high) if end is not None]


def wants_log(values: Iterable[float], unit: str) -> bool:
    """Say whether values belong on a logarithmic axis: all above zero, and more than a factor of 50 from end to end."""
    known = list(values)
    return (
        unit not in _NEVER_LOG
        and min(known, default=0.0) > 0
        and max(known) / min(known) > _LOG_FROM
    )


def spreads_of(found: Iterable[Series]) -> list[float]:
    """Return the end of the lowest tenth of each series that has a number, and its greatest; where any is not above 0, that.

    A few points that nearly touch 0 are none of what an axis is chosen for.
    """
    spreads = []
    for one in found:
        if one.lows:
            lows = sorted(one.lows)
            spreads += [lows[len(lows) // 10] if lows[0] > 0 else lows[0], max(one.highs)]
    return spreads


def wants_log_y(series: Iterable[Series], unit: str) -> bool:
    """Say whether the values of series suggest a logarithmic axis; where the ends of all are near, that is no."""
    found = list(series)
    return wants_log(ends_of(found), unit) and wants_log(spreads_of(found), unit)


def is_log_y(axes: AxesNamed, series: Iterable[Series]) -> bool:
    """Say whether the values of a metric are on a logarithmic axis at first: as the scenario said, or as they suggest."""
    return wants_log_y(series, unit_of(axes.metric)) if axes.log is None else "y" in axes.log


def is_log_x(axes: AxesNamed, series: Iterable[Series]) -> bool:
    """Say whether the steps of a metric are on a logarithmic axis at first: the scenario said so, and one of them can be."""
    return "x" in (axes.log or "") and can_be_log_x(series)


def can_be_log_x(series: Iterable[Series]) -> bool:
    """Say whether any point stands where a logarithm can show it."""
    return any(
        step > 0 for one in series for step in chain(one.steps, (bad.step for bad in one.bad))
    )
