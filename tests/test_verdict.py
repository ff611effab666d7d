"""The verdicts: each follows from the claim and the measurements alone."""

import math
import random

import pytest

from tuilab import events
from tuilab.events import ClaimDeclared, ClaimMeasured, Measured
from tuilab.lab import measured
from tuilab.stats import t_interval, t_quantile
from tuilab.summary import fold
from tuilab.verdict import holds, judge, judge_exact, judge_ratio


def exact(got: object, op: str, want: object, tolerance: float = 0.0) -> ClaimMeasured:
    return ClaimMeasured(text="c", got=measured(got), op=op, want=measured(want), tolerance=tolerance)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("got", "op", "want", "expected"),
    [
        (12, "equals", 12, True),
        (12, "equals", 6, False),
        ([5, 7], "equals", [5, 7], True),
        ([5, 7], "equals", [5, 7, 9], False),
        (math.nan, "equals", math.nan, True),
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
        ("float16", "equals", "float16", True),
        ("nan", "equals", math.nan, False),
        ("12", "equals", 12, False),
        (12, "at_most", "many", False),
    ],
)
def test_an_exact_claim_holds_or_does_not(got: object, op: str, want: object, expected: bool) -> None:
    assert holds(exact(got, op, want)) is expected


def test_a_tolerance_widens_only_equality() -> None:
    assert holds(exact(3.1, "equals", 3, tolerance=0.2))
    assert not holds(exact(3.1, "at_most", 3, tolerance=0.2))


def test_an_exact_claim_must_hold_in_every_repeat() -> None:
    found = judge_exact([exact(1, "equals", 1), exact(2, "equals", 1)])

    assert (found.verdict, found.why) == ("REFUTED", "measured 2, claimed 1")


def logs(center: float, count: int = 20, spread: float = 0.01, seed: int = 0) -> dict[str, list[float]]:
    generator = random.Random(seed)
    return {"worker-0": [math.log(center) + generator.gauss(0, spread) for _ in range(count)]}


@pytest.mark.parametrize(
    ("ratio", "op", "bound", "verdict"),
    [
        (3.0, "at_least", 2.0, "SUPPORTED"),
        (1.5, "at_least", 2.0, "WEAKER THAN CLAIMED"),
        (1.0, "at_least", 2.0, "NO MEANINGFUL DIFFERENCE"),
        (0.5, "at_least", 2.0, "REFUTED"),
        (0.5, "at_most", 0.7, "SUPPORTED"),
        (0.8, "at_most", 0.7, "WEAKER THAN CLAIMED"),
        (1.0, "at_most", 0.7, "NO MEANINGFUL DIFFERENCE"),
        (1.5, "at_most", 0.7, "REFUTED"),
        (2.0, "at_least", 2.0, "INCONCLUSIVE"),
    ],
)
def test_a_ratio_is_judged_on_the_size_of_the_effect(ratio: float, op: str, bound: float, verdict: str) -> None:
    claim = ClaimDeclared(text="c", over="a", under="b", op=op, bound=bound)  # type: ignore[arg-type]

    found = judge_ratio(claim, logs(ratio), difference="")

    assert found.verdict == verdict
    assert found.low is not None and found.high is not None and found.estimate is not None
    assert found.low < found.estimate < found.high


def test_a_faster_arm_that_computes_something_else_is_invalid() -> None:
    claim = ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)

    found = judge_ratio(claim, logs(3.0), difference="b does not give what a gives")

    assert (found.verdict, found.why) == ("INVALID", "b does not give what a gives")


def test_few_values_are_inconclusive() -> None:
    claim = ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)

    assert judge_ratio(claim, logs(3.0, count=3), difference="").verdict == "INCONCLUSIVE"


def test_what_the_box_lacks_makes_every_open_claim_not_testable() -> None:
    run = events.RunStarted(
        format=1, run="r", scenario="s", topic="t", title="", source_sha256="", params={}, tuilab="0", wall_ns=0,
        supervisor=events.Identity("h", "b", 1, 1), claims=["fast"],
    )  # fmt: skip

    (reached,) = judge(fold([("supervisor", run), ("worker-0", events.BoxLacked(needs="a CUDA device"))]))

    assert (reached.verdict, reached.why) == ("NOT TESTABLE HERE", "a CUDA device")


def test_the_t_interval_is_students() -> None:
    """Student's table: the 97.5 % quantile for 9 degrees of freedom is 2.262."""
    center, low, high = t_interval([float(x) for x in range(10)], 0.95)

    assert t_quantile(0.975, 9) == pytest.approx(2.262157, abs=1e-6)
    assert (center, high - center) == (4.5, pytest.approx(2.1659, abs=1e-4))
    assert low == pytest.approx(4.5 - 2.1659, abs=1e-4)


def test_words_and_numbers_are_measured_as_they_are() -> None:
    assert measured([True, 1]) == Measured(words="True [1.0]")
    assert measured((1, [2, 3])) == Measured(numbers=[1.0, 2.0, 3.0])
