"""Exact claims: numbers, texts, shapes, counts. They hold or they do not, on every machine."""

import json
import math
from collections.abc import Callable, Mapping

from tuilab.judging.judgement import Judgement
from tuilab.record import events
from tuilab.record.events import ClaimMeasured
from tuilab.record.holding import is_as_claimed
from tuilab.record.parts import Claim
from tuilab.record.plain_value import Leaf, Value, is_number, leaves
from tuilab.record.verdicts import Verdict
from tuilab.text import plural, show

_SHOWN = 8  # parts of a list
_EXCERPT = 200  # characters of a text
_LONG = 1e9  # from here on a number that is no count has a power of ten

Spelling = Callable[[Leaf], str]


def judge_exact(claim: Claim, repeats: Mapping[str, int] | None = None) -> Judgement | None:
    """Judge an exact claim, which must hold wherever it was measured; None where it was not.

    `repeats` are the run's by their workers: with them the verdict says in how many of them it was measured, and failed.
    """
    if claim.last is None:
        return None
    told = _counts(claim, repeats or {})
    if claim.missed is None:
        return Judgement(Verdict.SUPPORTED, "; ".join([_support(claim.last), *told]), _single(claim.last.got.value))
    got = claim.missed.got.value
    return Judgement(Verdict.REFUTED, "; ".join([_refutation(claim.missed), *told]), _single(got))


def in_words(value: Value, room: int = _SHOWN) -> str:
    """Return a measured value for people: a number in four digits, a count in all of them; of a list so many parts."""
    return _spelled(value, lambda leaf: _brief(leaf, 4), room)


def _counts(claim: Claim, repeats: Mapping[str, int]) -> list[str]:
    """Return in how many repeats a claim failed and was measured, where that is not in all."""
    measured, missed = ({repeats.get(writer) for writer in names} - {None} for names in (claim.measured_in, claim.missed_in))
    told = []
    if missed and missed != measured:
        told.append(f"it failed in {len(missed)} of {plural(len(measured), 'repeat')}")
    if measured and not claim.is_once and len(measured) < len(set(repeats.values())):
        told.append(f"measured in {len(measured)} of {plural(len(set(repeats.values())), 'repeat')}")
    return told


def _support(event: ClaimMeasured) -> str:
    """Return what was measured, and what was claimed if that may be another value."""
    got, want = event.got.value, event.want.value
    truths = [*leaves(got)]
    if event.op == "equals" and truths and all(leaf is True for leaf in truths):
        return "holds" if len(truths) == 1 else f"all {len(truths)} hold"
    measured = f"measured {_spelled(got, _believable(event))}{_unit_of(got, event)}"
    if event.op == "equals" and not event.tolerance:
        return measured
    return f"{measured}, claimed {_bound(event, want, _believable(event))}{_unit_of(want, event)}"


def _refutation(event: ClaimMeasured) -> str:
    """Return what was measured and what was claimed, such that one sees how they differ."""
    got, want, place = event.got.value, event.want.value, ""
    if max(len([*leaves(got)]), len([*leaves(want)])) > _SHOWN:
        got, want, place = _first_miss(got, event.op, want, event.tolerance)
    at = f" at {place}" if place else ""
    if got is False and want is True:
        return f"does not hold{at}"
    if isinstance(got, str) and isinstance(want, str) and max(len(got), len(want)) > _EXCERPT:
        return _texts(got, want, at)
    for spelling in (_believable(event), _full):
        shown, bound = _spelled(got, spelling), _bound(event, want, _brief if spelling is not _full else _full)
        if shown != _spelled(want, spelling) and not _would_hold(got, event, want, spelling):
            break
    return f"measured {shown}{_unit_of(got, event)}{at}, claimed {bound}{_unit_of(want, event)}"


def _unit_of(value: Value, event: ClaimMeasured) -> str:
    """Return the unit of the numbers of a value, as it stands behind them."""
    return f" {show(event.unit, 20)}" if event.unit and any(map(is_number, leaves(value))) else ""


def _would_hold(got: Value, event: ClaimMeasured, want: Value, spelling: Spelling) -> bool:
    """Say whether the claim would hold of the numbers as they are shown."""
    got, want, tolerance = (_rounded(value, spelling) for value in (got, want, event.tolerance))
    return is_as_claimed(got, event.op, want, tolerance)  # type: ignore[arg-type]


def _rounded(value: Value, spelling: Spelling) -> Value:
    if isinstance(value, list):
        return [_rounded(part, spelling) for part in value]
    return float(spelling(value)) if isinstance(value, float) else value


def _first_miss(got: Value, op: events.Operator, want: Value, tolerance: float, place: str = "") -> tuple[Value, Value, str]:
    """Return the first parts that are not as claimed, and where they stand."""
    if isinstance(got, list) and (op != "equals" or (isinstance(want, list) and len(got) == len(want))):
        for at, part in enumerate(got):
            bound = want[at] if op == "equals" and isinstance(want, list) else want
            if not is_as_claimed(part, op, bound, tolerance):
                return _first_miss(part, op, bound, tolerance, f"{place}[{at}]")
    return got, want, place


def _texts(got: str, want: str, at: str) -> str:
    """Return how two texts differ that are too long to be shown."""
    pairs = enumerate(zip(got, want, strict=False))
    first = next((place for place, (one, other) in pairs if one != other), min(len(got), len(want)))
    start = max(first - 20, 0)
    shown, bound = (json.dumps(text[start : start + 60], ensure_ascii=False) for text in (got, want))
    return f"from character {start} on measured {shown}{at}, claimed {bound}; of {len(got)} and {len(want)} characters"


def _bound(event: ClaimMeasured, want: Value, spelling: Spelling) -> str:
    """Return what a claim asks for, for people."""
    if event.op == "between":
        return " to ".join(map(spelling, leaves(want)))
    sign = {"equals": "", "at_most": "at most ", "at_least": "at least "}[event.op]
    spread = f" ± {spelling(event.tolerance)}" if event.tolerance and event.op == "equals" else ""
    return f"{sign}{_spelled(want, spelling)}{spread}"


def _spelled(value: Value, spelling: Spelling, room: int = _SHOWN) -> str:
    if _is_pair(value):
        return " and ".join(map(spelling, leaves(value)))
    if isinstance(value, list):
        return _listed(value, spelling, room)[0]
    return spelling(value) if len(str(value)) <= _EXCERPT else f"{str(value)[:_EXCERPT]}…"


def _is_pair(value: Value) -> bool:
    """Say whether a value is two measured numbers, which in brackets would look like an interval; two counts may be a shape."""
    parts = value if isinstance(value, list) and len(value) == 2 else []
    are_finite = bool(parts) and all(is_number(part) and math.isfinite(part) for part in parts)
    return are_finite and any(isinstance(part, float) and not _is_count(part) for part in parts)


def _listed(value: Value, spelling: Spelling, room: int) -> tuple[str, int]:
    """Return a list with as many parts as there is room for, and how much room is left."""
    if not isinstance(value, list):
        return (_full(value) if isinstance(value, str) else spelling(value)), room - 1
    shown: list[str] = []
    for part in value:
        if room <= 0:
            shown.append(f"… {len(value) - len(shown)} more")
            break
        text, room = _listed(part, spelling, room)
        shown.append(text)
    return f"[{', '.join(shown)}]", room


def _believable(event: ClaimMeasured) -> Spelling:
    """Return how what was measured for a claim is spelt: to four digits, and to six where its tolerance is as small."""
    return lambda leaf: _brief(leaf, 6 if _is_finer(event.tolerance, leaf) else 4)


def _is_finer(tolerance: float, leaf: Leaf) -> bool:
    return isinstance(leaf, float) and 0 < tolerance < 1e-3 * abs(leaf)


def _brief(leaf: Leaf, digits: int = 6) -> str:
    """Return a text as it is, a count in full, and any other number to so many digits, but each of a whole part."""
    if not isinstance(leaf, float) or _is_count(leaf):
        return _plain(leaf)
    digits = max(digits, len(f"{abs(leaf):.0f}") if abs(leaf) < _LONG else 0)
    return f"{leaf:.{digits}g}"


def _full(leaf: Leaf) -> str:
    """Return a text in quotes, and a number with every digit that tells it from its neighbours."""
    if isinstance(leaf, str):
        return json.dumps(leaf if len(leaf) <= _EXCERPT else f"{leaf[:_EXCERPT]}…", ensure_ascii=False)
    return _plain(leaf)


def _plain(leaf: Leaf) -> str:
    return str(int(leaf) if isinstance(leaf, float) and _is_count(leaf) else leaf)


def _is_count(number: float) -> bool:
    return number.is_integer() and abs(number) <= 2**53


def _single(value: Value) -> float | None:
    """Return the only number of a value, which is its estimate."""
    found = [*leaves(value)]
    return float(found[0]) if len(found) == 1 and is_number(found[0]) else None
