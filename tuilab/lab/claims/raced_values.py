"""Make the record of `lab.advise`, which compares the values of a setting."""

from collections.abc import Mapping, Set
from typing import Any

from tuilab.lab.arguments import LEAST, MOST_CORES, checked, describe_value, number, whole, words
from tuilab.probes.settings import VARIABLES, read_setting
from tuilab.record.events import Candidate, SettingRaced

_MOST_VALUES = 20  # of a setting
_ABOUT_LIMIT = 500  # characters


def setting_raced(
    name: str,
    values: Mapping[Any, Any],
    raced: Set[str],
    *,
    default: Any,
    about: str,
    against: str,
    ranks: int,
    cores: int,
    unit: str,
) -> SettingRaced:
    """Return the record of the values, each with an arm that has not raced, or a measured cost.

    An arm is a function that a race times. `raced` are those that have raced. Raises TypeError or
    ValueError for wrong arguments.
    """
    if not isinstance(values, Mapping) or not 2 <= len(values) <= _MOST_VALUES:
        raise TypeError(
            f"values takes a dict of 2 to {_MOST_VALUES} values, each with its arm or its measured"
            f" cost, not {describe_value(values)}"
        )
    if not words("about", about, _ABOUT_LIMIT):
        raise ValueError(
            'about is empty; name the work that is compared, for example "products of large'
            ' matrices"'
        )
    if words("name", name) not in VARIABLES:
        raise ValueError(
            "name takes a known variable of threads, allocators or pinning, not"
            f" {describe_value(name)}"
        )
    candidates = [_candidate(name, value, judged_by) for value, judged_by in values.items()]
    default = _spelled("default", default)
    if default not in [candidate.value for candidate in candidates]:
        raise ValueError(
            f"default takes one of the values, not {describe_value(default)}; name the value of a"
            " program that sets none"
        )
    if len({candidate.cost is None for candidate in candidates}) > 1:
        raise TypeError("values takes either arms or measured costs, not both")
    early = raced & {candidate.arm for candidate in candidates}
    if early:
        raise ValueError(
            f"{' and '.join(sorted(early))} were raced before lab.advise; advise first, then"
            " measure"
        )
    return checked(
        SettingRaced(
            name=name,
            candidates=candidates,
            default=default,
            about=about,
            against=words("against", against, _ABOUT_LIMIT),
            ranks=whole("ranks", ranks, 0, MOST_CORES),
            cores=whole("cores", cores, 0, MOST_CORES),
            unit=words("unit", unit, 20),
        )
    )


def _candidate(name: str, value: Any, judged_by: Any) -> Candidate:
    """Return a value of a setting with its arm, if `judged_by` is a text, else with its cost.

    Raises TypeError or ValueError if either is wrong.
    """
    try:
        setting = read_setting(f"{name}={_spelled('values', value)}")
    except ValueError as problem:
        raise ValueError(
            f"values takes plain values, for example 4 or close, not {describe_value(value)}"
        ) from problem
    if not isinstance(judged_by, str):
        return Candidate(setting.value, cost=number("values", judged_by))
    arm = words("values", judged_by, _ABOUT_LIMIT)
    if not arm:
        raise ValueError("values takes the name of an arm for each value, not an empty text")
    return Candidate(setting.value, arm=arm)


def _spelled(argument: str, value: Any) -> str:
    """Return a value of a variable as text; it may be a text or a whole number."""
    if isinstance(value, str):
        return words(argument, value)
    return str(whole(argument, value, LEAST))
