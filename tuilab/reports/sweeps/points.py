"""The points of a sweep: how they are called, and where they stand along its settings."""

import math
from collections.abc import Collection, Mapping, Sequence

from tuilab.catalogue.params import spell
from tuilab.record.events import Scalar, Sweep
from tuilab.record.summary import RunSummary
from tuilab.text.display import join, show

Point = Mapping[str, Scalar]


def point_words(point: Point, varied: Collection[str] = ()) -> str:
    """Return a point as it would be typed; with `varied`, without the settings that have one value throughout."""
    return "  ".join(
        f"{show(name, 40)}={show(spell(value), 60)}"
        for name, value in point.items()
        if not varied or name in varied
    )


def settings_of(sweep: Sweep) -> list[str]:
    """Return each setting with the values that it takes."""
    return [
        f"{show(name, 40)} = {', '.join(show(spell(one), 60) for one in values)}"
        for name, values in sweep.values.items()
    ]


def varied_in(sweep: Sweep) -> list[str]:
    """Return the settings that take several values."""
    return [name for name, values in sweep.values.items() if len(values) > 1]


def axis_of(sweep: Sweep) -> str:
    """Return the setting that claims are told along: the first that goes through several numbers; else nothing."""
    return next(
        (name for name in varied_in(sweep) if None not in map(number_of, sweep.values[name])), ""
    )


def number_of(value: Scalar) -> float | None:
    """Return the number that a value is; what a command is given is text, and may spell one."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def x_of(point: Point, axis: str) -> float:
    """Return where a point stands along a setting that goes through numbers; all at one place where there is none."""
    return (number_of(point[axis]) or 0.0) if axis else 0.0


def curve_ends(summary: RunSummary) -> dict[str, float]:
    """Return where the curves of a point ended; of several processes with one curve the first's, as of rank 0."""
    found: dict[str, float] = {}
    for one in summary.series.values():
        if one.count:
            found.setdefault(one.name, one.last)
    return found


def groups_of(points: Sequence[Point], axis: str, varied: Collection[str]) -> dict[str, list[int]]:
    """Return which points differ along the axis alone, by the words of their other settings."""
    others = [name for name in varied if name != axis] if axis else []
    found: dict[str, list[int]] = {}
    for at, point in enumerate(points):
        found.setdefault(point_words(point, others) if others else "", []).append(at)
    return found


def holds_where(places: Sequence[tuple[str, bool | None]], *, is_ordered: bool) -> str:
    """Return where a claim holds, in one phrase; the places, as `rows=10`, come in their order where they have one.

    It holds from a place on only where every place from there on is decided so; a place without a result is not.
    """
    yes, no, open = (
        [words for words, holds in places if holds is wanted] for wanted in (True, False, None)
    )
    left = f"not decided at {_listed(open)}" if open else ""
    if not (yes or no):
        return f"decided at none of {len(places)} values" if len(places) > 1 else left
    turn = [holds for _, holds in places]
    if not (yes and no):
        found = _throughout(yes or no, is_so=bool(yes), is_all=not open)
    elif is_ordered and _is_parted(turn, False):
        found = f"holds from {yes[0]} on, not at {_listed(no)}"
    elif is_ordered and _is_parted(turn, True):
        found = f"holds up to {yes[-1]}, not at {_listed(no)}"
    else:
        found = f"holds at {_listed(yes)}, not at {_listed(no)}"
    return "; ".join(filter(None, (found, left)))


def _is_parted(holds: Sequence[bool | None], first: bool) -> bool:
    """Say whether the places begin with some that are all `first`, and end with others; what lies between is not decided."""
    begin = next((at for at, one in enumerate(holds) if one is not first), len(holds))
    end = next(
        (at for at, one in enumerate(reversed(holds)) if one is first or one is None), len(holds)
    )
    return begin > 0 and end > 0 and all(one is None for one in holds[begin : len(holds) - end])


def _listed(words: Sequence[str]) -> str:
    return join([*words[:6], *([f"{len(words) - 6} more"] if words[6:] else [])])


def _throughout(words: Sequence[str], *, is_so: bool, is_all: bool) -> str:
    """Return that a claim holds, or does not, wherever that is decided."""
    if is_all and len(words) > 1:
        return f"holds at {'all' if is_so else 'none of'} {len(words)} values"
    return f"{'holds' if is_so else 'does not hold'} at {_listed(words)}"
