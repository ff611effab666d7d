"""What a scenario claims: the record of a claim out of a call's arguments, and the claims of a worker as they are made."""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.catalogue.source import read_stated
from tuilab.catalogue.stated import OLD_FORM, SECTION, Stated, is_key, named, new_form
from tuilab.judging.flaw import flaw
from tuilab.lab.given import checked, told, whole, words
from tuilab.lab.measured import claimed_bound, measured, two_arms
from tuilab.record import events

MOST_CORES = 4096  # processes or threads that nobody wants more of

_OF_RATIOS = {"ratio", "margin", "cores"}

Record = events.ClaimMeasured | events.ClaimDeclared | events.ClaimNotTestable


class About(NamedTuple):
    """Which claim a call is about, as its records have it."""

    key: str
    text: str
    is_old: bool  # the call is of the old form, in which the words of a claim stood in the code
    is_once: bool = False  # the call stands in a part that only the first repeat runs


class Claims:
    """The claims of one worker: what the lesson states, what was claimed, and which arms have to race for it."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._stated: Sequence[Stated] | None = None  # read with the first claim
        self._keys: set[str] = set()
        self._awaited: dict[str, set[str]] = {}  # by claim: the arms that have to race

    def about(self, key: str, *, is_old: bool = False) -> About:
        """Return the claim that a call names; ValueError where no bullet has its key, or it was claimed before."""
        if not words("key", key, events.CLAIM_LIMIT):
            raise ValueError("key takes the key of a bullet, not an empty text")
        if self._stated is None:
            self._stated = read_stated(self._source)
        found, keys = named(key, self._stated), [claim.key for claim in self._stated if claim.key]
        if found is None and keys and is_key(key):
            raise ValueError(f"no bullet under {SECTION} has the key [{key}]; the keys are {', '.join(keys)}")
        found = found or Stated("", key)
        if found.key in self._keys:
            raise ValueError(f"the key [{found.key}] was claimed before; a claim is made once in a run")
        return About(*found, is_old or found.key != key)

    def add(self, record: Record) -> None:
        """Note a claim that was made."""
        if record.key:
            self._keys.add(record.key)
        if isinstance(record, events.ClaimDeclared):
            self._awaited[record.claim_id] = {record.over, record.under}

    def check_raced(self, raced: Set[str]) -> None:
        """Raise ValueError for a claim about an arm that never raced."""
        for claim, arms in self._awaited.items():
            if missing := arms - raced:
                others = ", ".join(sorted(raced)) or "none"
                raise ValueError(
                    f"“{claim}” is about {' and '.join(sorted(missing))}, which never raced; the arms that did: {others}"
                )


def advice(about: About, method: str) -> str:
    """Return what to write instead of a call of the old form."""
    return f"{OLD_FORM}; write {new_form(about.key, about.text, method)}"


def refuse(others: Mapping[str, Any]) -> None:
    """Raise TypeError for arguments that a claim about a value does not take."""
    if others:
        hint = "; a claim about two arms of a race is lab.claim_ratio" if others.keys() & _OF_RATIOS else ""
        raise TypeError(f"claim takes no {', '.join(others)} here{hint}")


def exact_claim(
    about: About,
    got: Any,
    *,
    equals: Any,
    at_most: float | None,
    at_least: float | None,
    between: tuple[float, float] | None,
    tolerance: float,
    unit: str,
    lacks: str,
) -> Record:
    """Return the record of a claim about a value, or that the box lacks what it needs; a wrong bound is refused either way."""
    bounds = equals, at_most, at_least, between
    if words("lacks", lacks):
        if any(bound is not None for bound in bounds):
            claimed_bound(got, *bounds, tolerance)
        return _not_testable(about, lacks)
    if got is None:
        raise TypeError(f'got is missing: it takes what was measured, as in lab.claim("{about.key or "key"}", got, equals=1)')
    op, want = claimed_bound(got, *bounds, tolerance)
    found = measured(got)
    if found.words and op != "equals":
        raise TypeError(f"got takes numbers beside {op}=, not {told(got)}; two arms of a race are for lab.claim_ratio")
    return checked(events.ClaimMeasured(**about._asdict(), got=found, op=op, want=want, tolerance=tolerance, unit=unit))


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
    """Return the record of a claim about two arms that have not raced, or that the box lacks what it needs."""
    over, under = two_arms(ratio)
    if early := raced & {over, under}:
        raise ValueError(
            f"{' and '.join(sorted(early))} raced before “{about.key or about.text}” was claimed; claim first, then measure"
        )
    if (at_most is None) == (at_least is None):
        raise TypeError("claim_ratio takes one of at_least= and at_most=")
    op, want = claimed_bound(None, None, at_most, at_least, None)
    (bound,) = want.numbers
    cores = whole("cores", cores, 0, MOST_CORES)
    declared = checked(
        events.ClaimDeclared(**about._asdict(), over=over, under=under, op=op, bound=bound, margin=margin, cores=cores)
    )
    if problem := flaw(declared):
        raise ValueError(problem)
    return _not_testable(about, lacks) if words("lacks", lacks) else declared


def _not_testable(about: About, needs: str) -> events.ClaimNotTestable:
    return checked(events.ClaimNotTestable(**about._asdict(), needs=needs))
