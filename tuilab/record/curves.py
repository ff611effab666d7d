"""Adds what was logged to its series, many records at once: a long run has a million."""

from collections.abc import Sequence
from itertools import chain

from tuilab.record.events import Logged
from tuilab.record.series import Series

SeriesByKey = dict[tuple[str, str, str], Series]  # name, arm, writer


def add_logged(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Add the records that one writer logged, in their order."""
    by_arm = _by_arm(logged)
    if len(by_arm) > 1:
        _open_in_order(series, writer, logged)
    for arm, records in by_arm.items():
        for name, (chosen, values) in _columns(records).items():
            key = (name, arm, writer)
            found = series.get(key) or series.setdefault(key, Series(*key))
            found.add_many(chosen, values)


def _by_arm(logged: Sequence[Logged]) -> dict[str, Sequence[Logged]]:
    arms = dict.fromkeys([record.a for record in logged])
    return {arm: logged if len(arms) == 1 else [record for record in logged if record.a == arm] for arm in arms}


def _open_in_order(series: SeriesByKey, writer: str, logged: Sequence[Logged]) -> None:
    """Make series in the order in which they were first logged, whatever the arm: the first one becomes the chart."""
    for name, arm in dict.fromkeys((name, record.a) for record in logged for name in record.v):
        key = (name, arm, writer)
        series.setdefault(key, Series(*key))


def _columns(records: Sequence[Logged]) -> dict[str, tuple[Sequence[Logged], list[float]]]:
    """Return by name the records that have it and its values; mostly all have the same names."""
    values = [record.v for record in records]
    names = list(values[0])
    try:
        if sum(map(len, values)) == len(names) * len(values):
            return {name: (records, [value[name] for value in values]) for name in names}
    except KeyError:
        pass
    having = {name: [r for r in records if name in r.v] for name in dict.fromkeys(chain.from_iterable(values))}
    return {name: (chosen, [record.v[name] for record in chosen]) for name, chosen in having.items()}
