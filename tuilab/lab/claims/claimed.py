"""Make the record of a claim from the arguments of a call."""

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from tuilab.catalogue.params import spell
from tuilab.catalogue.scenario import Value
from tuilab.judging.is_judgeable import find_flaw
from tuilab.lab.arguments import MOST_CORES, checked, describe_value, number, whole, words
from tuilab.lab.claims.measured import claimed_bound, measured, two_arms
from tuilab.record import events
from tuilab.record.verdicts import CLAIMED_FOR
from tuilab.text.display import did_you_mean

Record = events.ClaimMeasured | events.ClaimDeclared | events.ClaimNotTestable


class About(NamedTuple):
    """The claim of a call, with the fields that all its records have."""

    key: str
    text: str
    is_once: bool = False  # the call is in a part that only the first repeat runs


class Bounds(NamedTuple):
    """The bound of a claim: at most one of these is given."""

    equals: Any = None
    at_most: float | None = None
    at_least: float | None = None
    between: tuple[float, float] | None = None


def other_values(at: Any, params: Mapping[str, Value]) -> str:
    """Return `claimed for rows=500` if `at` has other values than the run, else an empty text.

    Raises TypeError or ValueError if `at` is no dict of parameters and their values.
    """
    if at is None:
        return ""
    if not isinstance(at, Mapping) or not at:
        raise TypeError(
            'at takes a dict of parameters and their values, for example {"rows": 500}, not'
            f" {describe_value(at)}"
        )
    terms = []
    is_elsewhere = False
    for name, value in at.items():
        if name not in params:
            hint = did_you_mean(str(name), params)
            raise ValueError(
                f"at names {describe_value(name)}, which is not a parameter of run{hint}"
            )
        values = _values_at(name, value)
        if params[name] not in values:
            is_elsewhere = True
        spelled = " or ".join(spell(value) for value in values)
        terms.append(f"{name}={spelled}")
    if not is_elsewhere:
        return ""
    return f"{CLAIMED_FOR}{', '.join(terms)}"


def _values_at(name: str, value: Any) -> Sequence[Value]:
    """Return the values of a parameter for which a claim is made: one, or those of a list.

    Raises TypeError for other values, or an empty list.
    """
    values = [value]
    if isinstance(value, list | tuple):
        values = list(value)
    if not values or not all(isinstance(item, int | float | str) for item in values):
        raise TypeError(
            f"at takes numbers, texts, True or False for {name}, not {describe_value(value)}"
        )
    return values


def exact_claim(
    about: About, got: Any, bounds: Bounds, *, tolerance: float, unit: str, lacks: str
) -> Record:
    """Return the record of a claim about a value, or with `lacks` that it is not testable here.

    A wrong bound raises TypeError or ValueError in both cases. A missing value does so without
    `lacks`.
    """
    if words("lacks", lacks):
        if any(bound is not None for bound in bounds):
            claimed_bound(got, *bounds, tolerance)
        return not_testable(about, lacks)
    if got is None:
        raise TypeError(
            f'got is missing; pass the measured value: lab.claim("{about.key}", got, equals=1)'
        )
    op, want = claimed_bound(got, *bounds, tolerance)
    recorded = measured(got)
    if recorded.words and op != "equals":
        raise TypeError(
            f"got takes numbers with {op}=, not {describe_value(got)}; for two arms of a race, use"
            " lab.claim_ratio"
        )
    return checked(
        events.ClaimMeasured(
            **about._asdict(), got=recorded, op=op, want=want, tolerance=tolerance, unit=unit
        )
    )


def ratio_claim(
    about: About,
    ratio: str,
    raced: Set[str],
    *,
    at_most: float | None,
    at_least: float | None,
    margin: float,
    cores: int,
    lacks: str,
) -> Record:
    """Return the record of a claim about two arms, or with `lacks` that it is not testable here.

    An arm is one of the functions that a race times against each other. `raced` are the arms that
    have raced: a claim about one of them raises ValueError. Wrong bounds raise TypeError or
    ValueError.
    """
    over, under = two_arms(ratio)
    early = raced & {over, under}
    if early:
        raise ValueError(
            f"{' and '.join(sorted(early))} were raced before the claim “{about.key}”; claim first,"
            " then measure"
        )
    if (at_most is None) == (at_least is None):
        raise TypeError("lab.claim_ratio takes either at_least= or at_most=")
    op, want = claimed_bound(None, None, at_most, at_least, None)
    (bound,) = want.numbers
    cores = whole("cores", cores, 0, MOST_CORES)
    declared = checked(
        events.ClaimDeclared(
            **about._asdict(),
            over=over,
            under=under,
            op=op,
            bound=bound,
            margin=margin,
            cores=cores,
        )
    )
    flaw = find_flaw(declared)
    if flaw:
        raise ValueError(flaw)
    if words("lacks", lacks):
        return not_testable(about, lacks)
    return declared


def not_testable(about: About, needs: str) -> events.ClaimNotTestable:
    """Return the record of a claim that this machine cannot test."""
    return checked(events.ClaimNotTestable(**about._asdict(), needs=needs))


def answer_of(record: Record, answers: float) -> float | None:
    """Return the number that answers the question of the lesson.

    None if it is the estimate of a ratio, or unknown. Raises TypeError if the value is no single
    number.
    """
    if not isinstance(record, events.ClaimMeasured):
        return None
    if answers is not True:
        return number("answers", answers)
    if len(record.got.numbers) != 1 or record.got.words:
        raise TypeError(
            "answers=True takes a measured value that is one number; pass the number itself, for"
            " example answers=4.7"
        )
    return record.got.numbers[0]
