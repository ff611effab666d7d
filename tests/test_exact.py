"""Exact claims: they compare what they say, in every repeat, and tell how what was measured differs."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from tuilab.judging.judge_run import judge, judge_without_times
from tuilab.lab.claims.measured import claimed_bound, measured
from tuilab.record import events
from tuilab.record.encoding import encode_exactly
from tuilab.record.events import ClaimMeasured, Measured, Operator
from tuilab.record.exact_claims import holds
from tuilab.record.folding.fold import fold
from tuilab.record.summary import RunSummary

BIG = 2**53


def exact(
    got: object, op: Operator, want: object, tolerance: float = 0.0, **more: Any
) -> ClaimMeasured:
    """Return a claim as it is read back from its record."""
    event = ClaimMeasured(
        text="c", got=measured(got), op=op, want=measured(want), tolerance=tolerance, **more
    )
    return msgspec.json.decode(encode_exactly(event), type=ClaimMeasured, strict=False)


def recorded(*repeats: ClaimMeasured | None) -> RunSummary:
    """Return a run that measured this in its repeats; None: it ended before."""
    summary = RunSummary()
    for number, event in enumerate(repeats):
        name = f"worker-{number}"
        fold(
            [("supervisor", events.WorkerStarted(writer=name, pid=1, start=1, repeat=number))],
            summary,
        )
        if event is not None:
            event.t = number + 1
            fold([(name, event)], summary)
        fold([("supervisor", events.WorkerExited(writer=name, code=0))], summary)
    return summary


def verdict(*repeats: ClaimMeasured | None) -> tuple[str, str]:
    (found,) = judge(recorded(*repeats))
    return found.verdict, found.why


@pytest.mark.parametrize(
    ("got", "op", "want", "expected"),
    [
        (12, "equals", 12, True),
        (12, "equals", 12.0, True),
        (12, "equals", 6, False),
        ([5, 7], "equals", [5, 7], True),
        ((5, 7), "equals", [5, 7], True),
        ([5, 7], "equals", [5, 7, 9], False),
        (math.nan, "equals", math.nan, True),
        ([math.nan, 1], "equals", [math.nan, 1], True),
        (math.nan, "equals", 1, False),
        (math.inf, "equals", math.inf, True),
        (math.inf, "at_least", 1e308, True),
        (math.nan, "at_least", 0, False),
        (math.nan, "at_most", 0, False),
        ([1, 2], "at_most", 2, True),
        ([1, 3], "at_most", 2, False),
        ([], "at_most", 2, False),
        (1.5, "between", (1, 2), True),
        (2.5, "between", (1, 2), False),
        (True, "equals", True, True),
        (False, "equals", True, False),
        (True, "equals", 1, False),
        (True, "equals", "True", False),
        ([True, 1], "equals", [True, 1], True),
        ("float16", "equals", "float16", True),
        ("nan", "equals", math.nan, False),
        ("12", "equals", 12, False),
        (12, "at_most", "many", False),
        ("many", "at_least", 12, False),
        # whole numbers as whole numbers
        (BIG + 1, "equals", BIG, False),
        (BIG + 1, "equals", BIG + 1, True),
        (BIG + 1, "equals", float(BIG), False),
        (2**64 - 1, "equals", 2**64 - 2, False),
        (np.uint64(2**64 - 1), "equals", 2**64 - 1, True),
        ([1, BIG + 1], "equals", [1, BIG], False),
        (torch.tensor([2**62 + 1]), "equals", 2**62 + 1, True),
        (BIG + 1, "at_most", BIG, False),
        (BIG + 1, "between", (BIG + 1, BIG + 2), True),
        # texts as texts
        (["a b"], "equals", ["a", "b"], False),
        (["a", "b"], "equals", ["a", "b"], True),
        (["a", 1], "equals", ["a", "[1.0]"], False),
        # shapes
        (torch.ones(2, 2), "equals", [1, 1, 1, 1], False),
        (torch.ones(2, 2), "equals", [[1, 1], [1, 1]], True),
        (torch.ones(1, 2), "equals", torch.ones(2, 1), False),
        ([[1], [2, 3]], "equals", [[1, 2], [3]], False),
        ([[1], [2, 3]], "equals", [[1], [2, 3]], True),
        # one of anything, and nothing
        (torch.tensor([[3.0]]), "equals", 3, True),
        ([True], "equals", True, True),
        ([], "equals", [], True),
        ("", "equals", "", True),
        ("", "equals", [], False),
        ([], "equals", [[]], False),
        (torch.empty(0), "equals", [], True),
    ],
)
def test_an_exact_claim_holds_or_does_not(
    got: object, op: Operator, want: object, expected: bool
) -> None:
    assert holds(exact(got, op, want)) is expected


def test_a_tolerance_widens_only_equality() -> None:
    assert holds(exact(3.1, "equals", 3, tolerance=0.2))
    assert holds(exact([[1, 2], [3, 4.1]], "equals", [[1, 2], [3, 4]], tolerance=0.2))
    assert not holds(exact(3.1, "at_most", 3, tolerance=0.2))
    assert not holds(exact([1, 2], "equals", [[1], [2]], tolerance=9))


def test_a_tolerance_counts_in_whole_numbers_where_they_are_large() -> None:
    assert holds(exact(2**60 + 1, "equals", 2**60, tolerance=1))
    assert not holds(exact(2**60 + 2, "equals", 2**60, tolerance=1))
    assert not holds(exact(2**60 + 2, "equals", float(2**60), tolerance=1))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, Measured(numbers=[3.0])),
        ([1, 2], Measured(numbers=[1.0, 2.0])),
        ("a b", Measured(words="a b")),
        ([[1, 2], [3, 4]], Measured(numbers=[1.0, 2.0, 3.0, 4.0], shape=[2, 2])),
        ((1, [2, 3]), Measured(numbers=[1.0, 2.0, 3.0], exact="[1,[2,3]]")),
        (BIG + 1, Measured(numbers=[float(BIG)], exact="9007199254740993")),
        ([True, 1], Measured(words="True [1.0]", exact="[true,1]")),
        ([], Measured()),
        ("", Measured(exact='""')),
    ],
)
def test_a_record_has_beside_the_value_what_an_older_reader_shows(
    given: object, expected: Measured
) -> None:
    assert measured(given) == expected


@pytest.mark.parametrize(
    "fields",
    [
        '{"numbers":[3.0],"exact":"4"}',
        '{"words":"a b","exact":"[\\"a\\",\\"c\\"]"}',
        '{"numbers":[1.0,2.0,3.0],"shape":[2,2]}',
        '{"numbers":[1.0],"shape":[1,0]}',
        '{"exact":"{}"}',
        '{"exact":"not JSON"}',
        '{"numbers":["inf"],"exact":"1' + "0" * 400 + '"}',
        '{"exact":"' + "[" * 3000 + "]" * 3000 + '"}',
    ],
)
def test_a_record_that_says_two_things_or_none_cannot_be_read(fields: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(fields, type=Measured, strict=False)


def test_a_record_without_the_exact_value_is_read_as_it_always_was() -> None:
    old = [
        Measured(numbers=[1.0, 2.0, 3.0, 4.0]),
        Measured(words="a b"),
        Measured(words="True"),
        Measured(),
    ]

    assert [one.value for one in old] == [[1.0, 2.0, 3.0, 4.0], "a b", "True", []]
    assert all(holds(ClaimMeasured(text="c", got=one, op="equals", want=one)) for one in old)


def test_bounds_are_in_order_to_the_last_digit() -> None:
    assert claimed_bound(None, None, None, None, (BIG, BIG + 1))[1].value == [BIG, BIG + 1]
    with pytest.raises(ValueError, match="between= takes two numbers, the smaller one first"):
        claimed_bound(None, None, None, None, (BIG + 1, BIG))


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (exact(2, "equals", 1), "measured 2, claimed 1"),
        (exact(0.5, "equals", 0.25), "measured 0.5, claimed 0.25"),
        (exact(0.1 + 0.2, "equals", 0.3), "measured 0.30000000000000004, claimed 0.3"),
        (exact(0.30000001, "at_most", 0.3), "measured 0.30000001, claimed at most 0.3"),
        (exact(1 - 1e-9, "between", (1, 2)), "measured 0.999999999, claimed 1 to 2"),
        (exact(0.3500001, "equals", 0.3, 0.05), "measured 0.3500001, claimed 0.3 ± 0.05"),
        (exact([1, 0.1 + 0.2], "equals", [1, 0.3]), "measured 1 and 0.30000000000000004, claimed 1 and 0.3"),
        (exact(BIG + 1, "equals", BIG), f"measured {BIG + 1}, claimed {BIG}"),
        (exact("12", "equals", 12), 'measured "12", claimed 12'),
        (exact(True, "equals", "True"), 'measured True, claimed "True"'),
        (exact(False, "equals", True), "does not hold"),
        (exact("a", "equals", "b"), "measured a, claimed b"),
        (exact(["a b"], "equals", ["a", "b"]), 'measured a b, claimed ["a", "b"]'),
        (exact([], "at_most", 2), "measured [], claimed at most 2"),
        (exact(torch.ones(2, 2), "equals", [1] * 4), "measured [[1, 1], [1, 1]], claimed [1, 1, 1, 1]"),
        (exact([0] * 100, "equals", [0] * 70 + [1] + [0] * 29), "measured 0 at [70], claimed 1"),
        (exact([0] * 9 + [7], "at_most", 5), "measured 7 at [9], claimed at most 5"),
        (exact(torch.zeros(9, 9), "equals", torch.eye(9)), "measured 0 at [0][0], claimed 1"),
        (exact([0] * 10, "equals", [0] * 11), f"measured [{'0, ' * 8}… 2 more], claimed [{'0, ' * 8}… 3 more]"),
        (
            exact("x" * 500 + "a", "equals", "x" * 500 + "b"),
            f'from character 480 on measured "{"x" * 20}a", claimed "{"x" * 20}b"; of 501 and 501 characters',
        ),
    ],
)  # fmt: skip
def test_what_was_measured_is_told_so_that_the_difference_is_seen(
    event: ClaimMeasured, why: str
) -> None:
    assert verdict(event) == ("REFUTED", why)


@pytest.mark.parametrize(
    ("got", "why"),
    [
        (1 / 3, "measured 0.3333"),
        (12345.678, "measured 12346"),
        (1 / 3e9, "measured 3.333e-10"),
        (
            [0.967773, 0.964844],
            "measured 0.9678 and 0.9648",
        ),  # in brackets it would look like an interval
        ([64, 10], "measured [64, 10]"),
        (10**6, "measured 1000000"),
        ([], "measured []"),
        (True, "holds"),
        ([True, True], "all 2 hold"),
        ([True, False], "measured [True, False]"),
        ("word", "measured word"),
        ([[1, 2], [3, 4]], "measured [[1, 2], [3, 4]]"),
        (list(range(10)), "measured [0, 1, 2, 3, 4, 5, 6, 7, … 2 more]"),
    ],
)
def test_what_holds_is_told_in_few_digits(got: object, why: str) -> None:
    assert verdict(exact(got, "equals", got)) == ("SUPPORTED", why)


def test_the_unit_of_a_claim_stands_behind_its_numbers() -> None:
    percent = exact(0.74409, "at_most", 1, unit="%")

    assert verdict(percent) == ("SUPPORTED", "measured 0.7441 %, claimed at most 1 %")
    assert verdict(exact(2.5, "at_most", 1, unit="%")) == (
        "REFUTED",
        "measured 2.5 %, claimed at most 1 %",
    )
    assert verdict(exact("UserWarning", "equals", "UserWarning", unit="B")) == (
        "SUPPORTED",
        "measured UserWarning",
    )


def test_as_many_digits_are_told_as_the_tolerance_of_a_claim_asks_for() -> None:
    close = exact(88.722839, "equals", 88.7228, 1e-4)

    assert verdict(close) == ("SUPPORTED", "measured 88.7228, claimed 88.7228 ± 0.0001")
    assert verdict(exact(81.815124, "equals", 88.7228, 1e-4)) == (
        "REFUTED",
        "measured 81.8151, claimed 88.7228 ± 0.0001",
    )
    assert verdict(exact(88.722839, "at_least", 80)) == (
        "SUPPORTED",
        "measured 88.72, claimed at least 80",
    )


def test_an_exact_claim_must_hold_in_every_repeat_and_says_how_often_it_did_not() -> None:
    right, wrong = (exact(got, "equals", 1) for got in (1, 2))

    assert verdict(right, wrong) == (
        "REFUTED",
        "measured 2, claimed 1; it failed in 1 of 2 repeats",
    )
    assert verdict(wrong, wrong) == ("REFUTED", "measured 2, claimed 1")


def test_the_last_of_very_many_repeats_counts_as_the_first() -> None:
    repeats = [exact(1, "equals", 1) for _ in range(1001)]
    repeats[-1] = exact(3, "equals", 1)

    assert verdict(*repeats) == ("REFUTED", "measured 3, claimed 1; it failed in 1 of 1001 repeats")


def test_the_first_failure_is_told_whichever_stream_is_read_first() -> None:
    records = [
        (f"worker-{at}", msgspec.structs.replace(exact(got, "equals", 1), t=at))
        for at, got in ((1, 5), (2, 6), (3, 1))
    ]

    for order in (records, records[::-1]):
        claim = fold(order).claims["c"]
        assert claim.missed is not None and claim.last is not None
        assert (claim.missed.got.numbers, claim.last.got.numbers) == ([5.0], [1.0])


def test_a_claim_that_not_every_repeat_measured_says_so_unless_only_one_was_to() -> None:
    one, once = exact(1, "equals", 1), exact(1, "equals", 1, is_once=True)

    assert verdict(one, None, None) == ("SUPPORTED", "measured 1; measured in 1 of 3 repeats")
    assert verdict(once, None, None) == ("SUPPORTED", "measured 1")
    assert verdict(one, one) == ("SUPPORTED", "measured 1")
    failed = exact(2, "equals", 1)
    assert (
        verdict(failed, one, None)[1]
        == "measured 2, claimed 1; it failed in 1 of 2 repeats; measured in 2 of 3 repeats"
    )


def test_while_a_run_goes_on_nothing_is_said_of_repeats_to_come() -> None:
    summary = recorded(exact(1, "equals", 1), None)

    found = judge_without_times(summary.claims["c"], summary)
    assert found is not None and found.why == "measured 1"
