"""Name the points of a sweep, place them along its settings, and say where a claim holds."""

import math
from collections.abc import Collection, Mapping, Sequence

from tuilab.catalogue.params import spell
from tuilab.record.events import Scalar, Sweep
from tuilab.record.summary import RunSummary
from tuilab.text.display import join, show

Point = Mapping[str, Scalar]

_NAME_LENGTH = 40  # characters
_VALUE_LENGTH = 60
_MAX_LISTED = 6  # points in a sentence


# ---- points and settings


def point_words(point: Point, varied: Collection[str] = ()) -> str:
    """Return a point as `name=value` pairs, as users type them.

    With `varied`, the pairs of all other settings are left out.
    """
    pairs = []
    for name, value in point.items():
        if not varied or name in varied:
            pairs.append(f"{show(name, _NAME_LENGTH)}={show(spell(value), _VALUE_LENGTH)}")
    return "  ".join(pairs)


def describe_settings(sweep: Sweep) -> list[str]:
    """Return each setting with its values."""
    settings = []
    for name, values in sweep.values.items():
        words = [show(spell(value), _VALUE_LENGTH) for value in values]
        settings.append(f"{show(name, _NAME_LENGTH)} = {', '.join(words)}")
    return settings


def varied_settings(sweep: Sweep) -> list[str]:
    """Return the settings that take several values."""
    return [name for name, values in sweep.values.items() if len(values) > 1]


def axis_of(sweep: Sweep) -> str:
    """Return the first setting that takes several numbers, or an empty string.

    Claims are shown along this setting.
    """
    for name in varied_settings(sweep):
        if None not in map(number_of, sweep.values[name]):
            return name
    return ""


def number_of(value: Scalar) -> float | None:
    """Return the number that a value is or spells: the arguments of a command are text.

    None for true and false, for other text, and for NaN and Inf, which have no place on an axis.
    """
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    return number


def x_of(point: Point, axis: str) -> float:
    """Return the place of a point along a setting of numbers; 0 if there is no such setting."""
    if not axis:
        return 0.0
    return number_of(point[axis]) or 0.0


def final_values(summary: RunSummary) -> dict[str, float]:
    """Return the last value of each curve; if several processes have it, that of the first."""
    values: dict[str, float] = {}
    for series in summary.series.values():
        if series.count:
            values.setdefault(series.name, series.last)
    return values


def group_points(
    points: Sequence[Point], axis: str, varied: Collection[str]
) -> dict[str, list[int]]:
    """Return the indices of the points that differ along the axis alone.

    They are grouped by the words of their other settings.
    """
    other_settings: list[str] = []
    if axis:
        other_settings = [name for name in varied if name != axis]
    groups: dict[str, list[int]] = {}
    for index, point in enumerate(points):
        words = ""
        if other_settings:
            words = point_words(point, other_settings)
        groups.setdefault(words, []).append(index)
    return groups


# ---- where a claim holds


def describe_where_it_holds(
    outcomes: Sequence[tuple[str, bool | None]], *, is_ordered: bool
) -> str:
    """Return where a claim holds, in one phrase.

    `outcomes` are the words of each point, such as `rows=10`, with None if it is not decided
    there. If the points are ordered, the phrase may say "from ... on" or "up to ...": then the
    claim is decided alike at every point on that side.
    """
    holding = [words for words, holds in outcomes if holds is True]
    failing = [words for words, holds in outcomes if holds is False]
    undecided = [words for words, holds in outcomes if holds is None]
    not_decided = ""
    if undecided:
        not_decided = f"not decided at {_list_words(undecided)}"
    if not holding and not failing:
        if len(outcomes) > 1:
            return f"decided at none of {len(outcomes)} values"
        return not_decided
    turns = [holds for _, holds in outcomes]
    if not failing:
        phrase = _describe_throughout("holds", "all", holding, is_complete=not undecided)
    elif not holding:
        phrase = _describe_throughout(
            "does not hold", "none of", failing, is_complete=not undecided
        )
    elif is_ordered and _turns_once(turns, first=False):
        phrase = f"holds from {holding[0]} on, not at {_list_words(failing)}"
    elif is_ordered and _turns_once(turns, first=True):
        phrase = f"holds up to {holding[-1]}, not at {_list_words(failing)}"
    else:
        phrase = f"holds at {_list_words(holding)}, not at {_list_words(failing)}"
    if not_decided:
        phrase += f"; {not_decided}"
    return phrase


def _turns_once(turns: Sequence[bool | None], *, first: bool) -> bool:
    """Return whether the first points are all `first` and the last ones all its opposite.

    The points between may be undecided.
    """
    begin = 0
    while begin < len(turns) and turns[begin] is first:
        begin += 1
    end = len(turns)
    while end > 0 and turns[end - 1] is (not first):
        end -= 1
    is_undecided_between = all(holds is None for holds in turns[begin:end])
    return begin > 0 and end < len(turns) and is_undecided_between


def _list_words(words: Sequence[str]) -> str:
    listed = list(words[:_MAX_LISTED])
    if len(words) > _MAX_LISTED:
        listed.append(f"{len(words) - _MAX_LISTED} more")
    return join(listed)


def _describe_throughout(
    verb: str, quantity: str, words: Sequence[str], *, is_complete: bool
) -> str:
    """Return that a claim holds, or does not hold, wherever it is decided."""
    if is_complete and len(words) > 1:
        return f"holds at {quantity} {len(words)} values"
    return f"{verb} at {_list_words(words)}"
