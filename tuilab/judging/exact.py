"""Judge exact claims: about numbers, texts, shapes and counts.

Such a claim holds or it does not, on every machine. Most of this module writes the sentences that
show what was measured. If a claim failed, the sentence has to show how the values differ.
"""

import json
import math
from collections.abc import Callable, Mapping

from tuilab.judging.judgement import Judgement
from tuilab.record import events
from tuilab.record.events import ClaimMeasured
from tuilab.record.exact_claims import is_as_claimed
from tuilab.record.plain_value import Leaf, Value, is_number, leaves
from tuilab.record.summary_parts import Claim
from tuilab.record.verdicts import Verdict
from tuilab.text.display import plural, show

_MAX_PARTS = 8  # a longer list is cut
_MAX_CHARACTERS = 200  # a longer text is cut
_EXCERPT_BEFORE = 20  # characters that are shown before the first difference of two long texts
_EXCERPT = 60  # characters of such an excerpt
_USUAL_DIGITS = 4
_FINE_DIGITS = 6
_MIN_EXPONENTIAL = 1e9  # from here on a number is shown with an exponent, unless it is a count
_MAX_UNIT = 20  # characters
_MAX_WHOLE_FLOAT = 2**53  # up to here, a float holds every whole number

LeafFormat = Callable[[Leaf], str]  # formats a number or a text, but not a list


# ---- verdicts


def judge_exact(
    claim: Claim, repeat_of_worker: Mapping[str, int] | None = None
) -> Judgement | None:
    """Return the judgement of an exact claim; None if it was not measured.

    The claim must hold wherever it was measured. With `repeat_of_worker`, the judgement says in
    how many repeats of the run it was measured, and in how many it failed.
    """
    if claim.last is None:
        return None
    counts = _describe_counts(claim, repeat_of_worker or {})
    if claim.missed is not None:
        why = "; ".join([_describe_failure(claim.missed), *counts])
        return Judgement(Verdict.REFUTED, why, _single_number(claim.missed.got.value))
    why = "; ".join([_describe_success(claim.last), *counts])
    return Judgement(Verdict.SUPPORTED, why, _single_number(claim.last.got.value))


def _describe_counts(claim: Claim, repeat_of_worker: Mapping[str, int]) -> list[str]:
    """Return in how many repeats a claim failed and was measured, if not in all of them."""
    measured = _find_repeats(claim.measured_in, repeat_of_worker)
    failed = _find_repeats(claim.missed_in, repeat_of_worker)
    repeat_count = len(set(repeat_of_worker.values()))
    counts = []
    if failed and failed != measured:
        counts.append(f"it failed in {len(failed)} of {plural(len(measured), 'repeat')}")
    if measured and not claim.is_once and len(measured) < repeat_count:
        counts.append(f"measured in {len(measured)} of {plural(repeat_count, 'repeat')}")
    return counts


def _find_repeats(workers: set[str], repeat_of_worker: Mapping[str, int]) -> set[int]:
    """Return the repeats that these workers belong to. A worker of an arm belongs to none."""
    return {repeat_of_worker[worker] for worker in workers if worker in repeat_of_worker}


def _single_number(value: Value) -> float | None:
    """Return the number if a value consists of a single one, else None.

    It is the estimate of the verdict.
    """
    parts = list(leaves(value))
    if len(parts) == 1 and is_number(parts[0]):
        return float(parts[0])
    return None


def _describe_success(event: ClaimMeasured) -> str:
    """Return what was measured, and the bound that was claimed if it may be another value."""
    got = event.got.value
    want = event.want.value
    parts = list(leaves(got))
    if event.op == "equals" and parts and all(part is True for part in parts):
        return "holds" if len(parts) == 1 else f"all {len(parts)} hold"
    leaf_format = _tolerance_format(event)
    measured = f"measured {_format_value(got, leaf_format)}{_unit_suffix(got, event)}"
    if event.op == "equals" and not event.tolerance:
        return measured
    return (
        f"{measured}, claimed {_format_bound(event, want, leaf_format)}{_unit_suffix(want, event)}"
    )


# ---- failed claims


def _describe_failure(event: ClaimMeasured) -> str:
    """Return what was measured and what was claimed, so that a reader sees the difference.

    A long list is replaced by its first part that is not as claimed.
    """
    got = event.got.value
    want = event.want.value
    place = ""
    if max(_count_leaves(got), _count_leaves(want)) > _MAX_PARTS:
        got, want, place = _find_first_failure(got, event.op, want, event.tolerance)
    at_place = f" at {place}" if place else ""
    if got is False and want is True:
        return f"does not hold{at_place}"
    if isinstance(got, str) and isinstance(want, str) and _is_long(got, want):
        return _describe_long_texts(got, want, at_place)
    shown, bound = _format_apart(event, got, want)
    measured = f"measured {shown}{_unit_suffix(got, event)}{at_place}"
    return f"{measured}, claimed {bound}{_unit_suffix(want, event)}"


def _count_leaves(value: Value) -> int:
    return len(list(leaves(value)))


def _find_first_failure(
    got: Value, op: events.Operator, want: Value, tolerance: float, place: str = ""
) -> tuple[Value, Value, str]:
    """Return the first measured part that is not as claimed, what was claimed, and its index.

    The index is written as in Python, such as `[2][0]`. If lists have different lengths, they are
    returned as they are.
    """
    if not isinstance(got, list):
        return got, want, place
    has_same_length = isinstance(want, list) and len(got) == len(want)
    if op == "equals" and not has_same_length:
        return got, want, place
    for index, part in enumerate(got):
        wanted_part = want
        if op == "equals" and isinstance(want, list):
            wanted_part = want[index]
        if not is_as_claimed(part, op, wanted_part, tolerance):
            return _find_first_failure(part, op, wanted_part, tolerance, f"{place}[{index}]")
    return got, want, place


def _is_long(first: str, second: str) -> bool:
    return max(len(first), len(second)) > _MAX_CHARACTERS


def _describe_long_texts(got: str, want: str, at_place: str) -> str:
    """Return the first difference of two texts that are too long to be shown."""
    start = max(_find_first_difference(got, want) - _EXCERPT_BEFORE, 0)
    got_excerpt = json.dumps(got[start : start + _EXCERPT], ensure_ascii=False)
    want_excerpt = json.dumps(want[start : start + _EXCERPT], ensure_ascii=False)
    measured = f"from character {start} on measured {got_excerpt}{at_place}"
    return f"{measured}, claimed {want_excerpt}; of {len(got)} and {len(want)} characters"


def _find_first_difference(first: str, second: str) -> int:
    """Return the index of the first character that differs, or the length of the shorter text."""
    shorter = min(len(first), len(second))
    for index in range(shorter):
        if first[index] != second[index]:
            return index
    return shorter


def _format_apart(event: ClaimMeasured, got: Value, want: Value) -> tuple[str, str]:
    """Return the measured value and the bound, in enough digits to show that the claim failed.

    With few digits, two numbers may look equal, or look as if the claim held. If so, all digits are
    shown.
    """
    few_digits = _tolerance_format(event)
    shown = _format_value(got, few_digits)
    looks_equal = shown == _format_value(want, few_digits)
    if not looks_equal and not _seems_to_hold(got, event, want, few_digits):
        return shown, _format_bound(event, want, _format_leaf)
    return _format_value(got, _format_in_full), _format_bound(event, want, _format_in_full)


def _seems_to_hold(got: Value, event: ClaimMeasured, want: Value, leaf_format: LeafFormat) -> bool:
    """Return whether the claim would hold for the numbers as they are shown."""
    shown_got = _round_as_shown(got, leaf_format)
    shown_want = _round_as_shown(want, leaf_format)
    shown_tolerance = _round_as_shown(event.tolerance, leaf_format)
    return is_as_claimed(shown_got, event.op, shown_want, shown_tolerance)  # type: ignore[arg-type]


def _round_as_shown(value: Value, leaf_format: LeafFormat) -> Value:
    """Return a value with each float rounded to the digits that its format shows."""
    if isinstance(value, list):
        return [_round_as_shown(part, leaf_format) for part in value]
    if isinstance(value, float):
        return float(leaf_format(value))
    return value


def _format_bound(event: ClaimMeasured, want: Value, leaf_format: LeafFormat) -> str:
    """Return what a claim demands, such as `at most 3` or `1 to 2`."""
    if event.op == "between":
        return " to ".join(map(leaf_format, leaves(want)))
    text = _format_value(want, leaf_format)
    if event.op == "at_most":
        return f"at most {text}"
    if event.op == "at_least":
        return f"at least {text}"
    if event.tolerance:
        return f"{text} ± {leaf_format(event.tolerance)}"
    return text


# ---- values


def describe_value(value: Value, max_parts: int = _MAX_PARTS) -> str:
    """Return a measured value for people: counts in full, other numbers in four digits."""
    return _format_value(value, _format_in_four_digits, max_parts)


def _format_in_four_digits(leaf: Leaf) -> str:
    return _format_leaf(leaf, _USUAL_DIGITS)


def _unit_suffix(value: Value, event: ClaimMeasured) -> str:
    """Return the unit with a space before it; empty if the value has no numbers."""
    has_numbers = any(map(is_number, leaves(value)))
    if event.unit and has_numbers:
        return f" {show(event.unit, _MAX_UNIT)}"
    return ""


def _format_value(value: Value, leaf_format: LeafFormat, max_parts: int = _MAX_PARTS) -> str:
    """Return a value as text: a pair with "and" between, a list in brackets, a long text cut."""
    if _is_pair(value):
        return " and ".join(map(leaf_format, leaves(value)))
    if isinstance(value, list):
        text, _ = _format_list(value, leaf_format, max_parts)
        return text
    if len(str(value)) > _MAX_CHARACTERS:
        return f"{str(value)[:_MAX_CHARACTERS]}…"
    return leaf_format(value)


def _is_pair(value: Value) -> bool:
    """Return whether a value is two measured numbers. In brackets they would look like an interval.

    Two counts are no pair, because they may be a shape.
    """
    if not isinstance(value, list) or len(value) != 2:
        return False
    if not all(is_number(part) and math.isfinite(part) for part in value):
        return False
    return any(isinstance(part, float) and not _is_count(part) for part in value)


def _format_list(value: Value, leaf_format: LeafFormat, room: int) -> tuple[str, int]:
    """Return a list with at most `room` parts, and how many more parts have room after it."""
    if not isinstance(value, list):
        text = _format_in_full(value) if isinstance(value, str) else leaf_format(value)
        return text, room - 1
    texts: list[str] = []
    for part in value:
        if room <= 0:
            texts.append(f"… {len(value) - len(texts)} more")
            break
        text, room = _format_list(part, leaf_format, room)
        texts.append(text)
    return f"[{', '.join(texts)}]", room


# ---- numbers and texts


def _tolerance_format(event: ClaimMeasured) -> LeafFormat:
    """Return a format with four digits, or with six if the tolerance is less than a thousandth."""

    def format_leaf(leaf: Leaf) -> str:
        is_fine = isinstance(leaf, float) and 0 < event.tolerance < 1e-3 * abs(leaf)
        return _format_leaf(leaf, _FINE_DIGITS if is_fine else _USUAL_DIGITS)

    return format_leaf


def _format_leaf(leaf: Leaf, digits: int = _FINE_DIGITS) -> str:
    """Return a text as it is, a count in full, and other numbers in so many digits.

    Digits before the decimal point are never left out.
    """
    if not isinstance(leaf, float) or _is_count(leaf):
        return _format_whole(leaf)
    if abs(leaf) < _MIN_EXPONENTIAL:
        whole_digits = len(f"{abs(leaf):.0f}")
        digits = max(digits, whole_digits)
    return f"{leaf:.{digits}g}"


def _format_in_full(leaf: Leaf) -> str:
    """Return a text in quotes, and a number with all digits that distinguish it from others."""
    if not isinstance(leaf, str):
        return _format_whole(leaf)
    if len(leaf) > _MAX_CHARACTERS:
        leaf = f"{leaf[:_MAX_CHARACTERS]}…"
    return json.dumps(leaf, ensure_ascii=False)


def _format_whole(leaf: Leaf) -> str:
    """Return a leaf with all its digits, and a whole number without a decimal point."""
    if isinstance(leaf, float) and _is_count(leaf):
        return str(int(leaf))
    return str(leaf)


def _is_count(number: float) -> bool:
    return number.is_integer() and abs(number) <= _MAX_WHOLE_FLOAT
