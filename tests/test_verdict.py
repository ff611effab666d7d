"""The verdicts: each follows from the claim and the measurements alone."""

import math
import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tuilab.judging.evidence import Evidence
from tuilab.judging.flaw import flaw
from tuilab.judging.judge_run import judge, present_look
from tuilab.judging.ratio import judge_ratio, judge_ratios
from tuilab.record import events
from tuilab.record.events import BlockTimed, ClaimDeclared, Control, Operator
from tuilab.record.summary import RunSummary, fold

# ---- ratios


def ratio_claim(op: Operator, bound: float, margin: float = 0.03) -> ClaimDeclared:
    return ClaimDeclared(text="c", over="a", under="b", op=op, bound=bound, margin=margin)


AT_LEAST_TWICE = ratio_claim("at_least", 2.0)


def around(ratio: float, half: float = 0.0, repeats: int = 8) -> list[list[float]]:
    """Return the rounds of repeats whose mean log is that of `ratio` and whose 95 % interval reaches `half` to either side."""
    pattern = [(-1) ** i * (1 + i // 2) for i in range(repeats - repeats % 2)] + [0] * (repeats % 2)
    deviation = math.sqrt(sum(x * x for x in pattern) / (repeats - 1))
    quantile = {6: 2.5706, 7: 2.4469, 8: 2.3646, 9: 2.3060, 10: 2.2622, 12: 2.2010, 20: 2.0930, 40: 2.0227}[repeats]
    scale = half * math.sqrt(repeats) / (quantile * deviation)
    return [[math.log(ratio) + scale * x + wobble for wobble in (-0.001, 0.001)] for x in pattern]


SEEN = around(1.05, 0.01)


def controlled(rounds: list[list[float]]) -> Evidence:
    """Return evidence whose controls are in order."""
    return Evidence(rounds, same=around(1.0, 0.01), delayed=SEEN)


def verdict(claim: ClaimDeclared, evidence: Evidence) -> str:
    return str(judge_ratio(claim, evidence).verdict)


@pytest.mark.parametrize(
    ("op", "bound", "ratio", "half", "expected"),
    [
        ("at_least", 2.0, 3.0, 0.1, "SUPPORTED"),
        ("at_least", 2.0, 2.0, 0.0, "INCONCLUSIVE"),
        ("at_least", 2.0, 2.0, 0.3, "INCONCLUSIVE"),
        ("at_least", 2.0, 1.5, 0.1, "WEAKER THAN CLAIMED"),
        ("at_least", 2.0, 1.05, 0.01, "WEAKER THAN CLAIMED"),
        ("at_least", 2.0, 1.05, 0.03, "REFUTED"),  # faster, but not beyond the margin
        ("at_least", 2.0, 1.2, 0.3, "REFUTED"),  # 1.2 [0.9, 1.6]: twice is excluded, a direction is not proven
        ("at_least", 2.0, 1.2, 0.6, "INCONCLUSIVE"),
        ("at_least", 2.0, 1.0, 0.015, "NO MEANINGFUL DIFFERENCE"),  # [0.985, 1.015]: more is known than that it is not twice
        ("at_least", 2.0, 0.995, 0.015, "NO MEANINGFUL DIFFERENCE"),
        ("at_least", 2.0, 1.0, 0.05, "REFUTED"),
        ("at_least", 2.0, 0.5, 0.2, "REFUTED"),
        ("at_most", 0.7, 0.5, 0.1, "SUPPORTED"),
        ("at_most", 0.7, 0.8, 0.05, "WEAKER THAN CLAIMED"),
        ("at_most", 0.7, 1.0, 0.015, "NO MEANINGFUL DIFFERENCE"),
        ("at_most", 0.7, 1.5, 0.1, "REFUTED"),
        ("at_most", 0.7, 0.7, 0.1, "INCONCLUSIVE"),
    ],
)
def test_a_ratio_is_judged_on_the_size_of_the_effect(
    op: Operator, bound: float, ratio: float, half: float, expected: str
) -> None:
    rounds = around(ratio, half) if half else [[math.log(ratio) + 0.01 * sign] for sign in (-1, 1) * 4]

    assert verdict(ratio_claim(op, bound), controlled(rounds)) == expected


@pytest.mark.parametrize(
    ("ratio", "half", "expected"),
    [
        (1.05, 0.01, "SUPPORTED"),
        (1.025, 0.004, "SUPPORTED"),  # inside the margin of 3 %, but it is what was claimed
        (1.025, 0.012, "INCONCLUSIVE"),  # inside the margin or not: a claim of 2 % says that 2 % matters
        (1.0, 0.01, "NO MEANINGFUL DIFFERENCE"),
        (1.01, 0.005, "NO MEANINGFUL DIFFERENCE"),  # nothing that was claimed is left over to be WEAKER
        (0.95, 0.01, "REFUTED"),
    ],
)
def test_a_claim_of_less_than_the_margin_narrows_the_margin(ratio: float, half: float, expected: str) -> None:
    assert verdict(ratio_claim("at_least", 1.02), controlled(around(ratio, half))) == expected


@pytest.mark.parametrize(
    ("ratio", "half", "expected"),
    [
        (1.05, 0.02, "SUPPORTED"),
        (1.01, 0.005, "SUPPORTED"),
        (1.0, 0.02, "NO MEANINGFUL DIFFERENCE"),
        (0.99, 0.005, "NO MEANINGFUL DIFFERENCE"),
        (0.9, 0.05, "REFUTED"),
        (1.0, 0.1, "INCONCLUSIVE"),
    ],
)
def test_a_claim_that_an_arm_is_slower_at_all(ratio: float, half: float, expected: str) -> None:
    assert verdict(ratio_claim("at_least", 1.0), controlled(around(ratio, half))) == expected


@pytest.mark.parametrize(
    ("op", "bound", "ratio", "half", "expected"),
    [
        ("at_most", 1.1, 1.05, 0.02, "SUPPORTED"),
        ("at_most", 1.1, 1.0, 0.01, "SUPPORTED"),
        ("at_most", 1.1, 0.5, 0.1, "SUPPORTED"),
        ("at_most", 1.1, 1.1, 0.02, "INCONCLUSIVE"),
        ("at_most", 1.1, 1.0, 0.2, "INCONCLUSIVE"),
        ("at_most", 1.1, 1.2, 0.05, "REFUTED"),
        ("at_least", 0.9, 0.95, 0.02, "SUPPORTED"),
        ("at_least", 0.9, 2.0, 0.1, "SUPPORTED"),
        ("at_least", 0.9, 0.9, 0.02, "INCONCLUSIVE"),
        ("at_least", 0.9, 0.8, 0.05, "REFUTED"),
    ],
)
def test_a_claim_that_it_is_not_much_worse_holds_or_not(
    op: Operator, bound: float, ratio: float, half: float, expected: str
) -> None:
    assert verdict(ratio_claim(op, bound), controlled(around(ratio, half))) == expected


def test_estimate_and_interval_are_those_of_the_repeats() -> None:
    """The interval reaches a tenth to either side in logs, by construction."""
    found = judge_ratio(AT_LEAST_TWICE, controlled(around(3.0, 0.1)))

    assert (found.estimate, found.units, found.unit, found.confidence) == (3.0, 8, "repeats", 0.95)
    assert (found.low, found.high) == pytest.approx((3 * math.exp(-0.1), 3 * math.exp(0.1)), rel=1e-4)
    assert found.noise_floor == pytest.approx(math.expm1(0.01), rel=1e-3)
    assert (found.why, found.more_repeats) == ("8 repeats", None)


def test_the_rounds_of_a_single_process_are_the_units_and_it_says_so() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[1.0, 1.1, 1.2, 1.1, 1.0, 1.1]]))

    assert (found.verdict, found.why, found.units, found.unit) == ("SUPPORTED", "6 rounds within one process", 6, "rounds")


def test_the_rounds_of_several_processes_are_not_units() -> None:
    """Two processes of a hundred rounds each are two units, however sure each one is."""
    found = judge_ratio(AT_LEAST_TWICE, controlled([[1.0, 1.1] * 50, [1.0, 1.1] * 50]))

    assert (found.verdict, found.units, found.unit, found.more_repeats) == ("INCONCLUSIVE", 2, "repeats", 4)
    assert found.why == (
        "2 repeats are too few, 6 are needed; smallest effect it could have seen: n/a; repeats still needed: 4"
    )


def test_few_rounds_of_a_single_process_are_inconclusive() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[1.1]]))

    assert (found.verdict, found.estimate, found.low, found.high) == ("INCONCLUSIVE", 3.00416602, None, None)
    assert found.why == (
        "1 round within one process is too few, 6 are needed; smallest effect it could have seen: n/a; "
        "repeats still needed: n/a from one process"
    )


def test_a_process_without_a_round_is_no_unit() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[], [1.0, 1.1] * 3, []]))

    assert (found.verdict, found.unit) == ("SUPPORTED", "rounds")
    assert judge_ratio(AT_LEAST_TWICE, Evidence([[]])).why == "no round was measured"


def test_an_inconclusive_verdict_says_what_could_have_been_seen_and_how_many_repeats_more_it_takes() -> None:
    """A spread of 0.239 at a distance of 0.134 from the bound: of 28 repeats that is 2.95 standard errors."""
    found = judge_ratio(AT_LEAST_TWICE, controlled(around(1.75, 0.2)))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", 20)
    assert found.smallest_effect == pytest.approx(0.3187, abs=1e-3)
    assert found.why == "8 repeats; smallest effect it could have seen: 32 %; repeats still needed: 20"


def test_on_the_bound_no_number_of_repeats_would_decide() -> None:
    found = judge_ratio(AT_LEAST_TWICE, controlled(around(2.0, 0.2)))

    assert (found.more_repeats, found.why.endswith("repeats still needed: n/a")) == (None, True)


# ---- controls


def test_a_faster_arm_that_computes_something_else_is_invalid() -> None:
    found = judge_ratio(AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), difference="b does not give what a gives"))

    assert (found.verdict, found.why) == ("INVALID", "b does not give what a gives; 8 repeats")
    assert (found.estimate, found.low is None) == (3.0, False)


def test_an_arm_that_differs_from_itself_makes_the_claim_invalid() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence(around(3.0, 0.1), same=around(0.9, 0.02), delayed=SEEN))

    assert (found.verdict, found.why) == (
        "INVALID",
        "an arm against itself came out 0.9 times as long: the control failed; 8 repeats",
    )


@pytest.mark.parametrize("same", [around(1.02, 0.005), around(1.05, 0.03), around(1.2, 0.02)[:3]])
def test_a_control_within_the_margin_or_unsure_does_not_fail(same: list[list[float]]) -> None:
    assert verdict(AT_LEAST_TWICE, Evidence(around(3.0, 0.1), same=same, delayed=SEEN)) == "SUPPORTED"


def test_without_the_control_there_is_no_noise_floor() -> None:
    assert judge_ratio(AT_LEAST_TWICE, Evidence(around(3.0, 0.1))).noise_floor is None


@pytest.mark.parametrize(
    ("delayed", "reason"),
    [
        ([], "whether a known delay is seen was not measured"),
        (SEEN[:5], "whether a known delay is seen was not measured"),
        (around(1.05, 0.06), "the known delay of 5 % was not seen"),
        (around(1.0, 0.01), "the known delay of 5 % was not seen"),
        (around(1.01, 0.005), "the known delay of 5 % was not seen"),  # something was seen, but not 5 %
    ],
)
@pytest.mark.parametrize("claim", [AT_LEAST_TWICE, ratio_claim("at_most", 1.1)])
def test_no_difference_is_not_claimed_where_the_known_delay_was_not_seen(
    claim: ClaimDeclared, delayed: list[list[float]], reason: str
) -> None:
    found = judge_ratio(claim, Evidence(around(1.0, 0.01), delayed=delayed))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", None)
    assert found.why == (
        f"{reason}, so that no difference must not be claimed; 8 repeats; "
        "smallest effect it could have seen: 1.4 %; repeats still needed: n/a"
    )


@pytest.mark.parametrize(("op", "bound", "ratio"), [("at_least", 2.0, 3.0), ("at_most", 1.1, 0.8), ("at_least", 0.9, 1.5)])
def test_a_difference_that_was_seen_needs_no_known_delay(op: Operator, bound: float, ratio: float) -> None:
    assert verdict(ratio_claim(op, bound), Evidence(around(ratio, 0.05))) == "SUPPORTED"


def test_a_recording_that_costs_more_than_a_hundredth_of_a_step_is_invalid() -> None:
    evidence = controlled(around(3.0, 0.1))

    assert judge_ratio(AT_LEAST_TWICE, replace(evidence, observer_share=0.02)).why == "recording took 2 % of a step; 8 repeats"
    assert verdict(AT_LEAST_TWICE, replace(evidence, observer_share=0.02)) == "INVALID"
    assert verdict(AT_LEAST_TWICE, replace(evidence, observer_share=0.01)) == "SUPPORTED"
    assert verdict(AT_LEAST_TWICE, replace(evidence, observer_share=math.nan)) == "INVALID"


def test_a_noisy_machine_is_inconclusive_at_most() -> None:
    evidence = controlled(around(3.0, 0.1))
    found = judge_ratio(AT_LEAST_TWICE, replace(evidence, disturbed_share=0.41))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", None)
    assert found.why.startswith("the machine is too noisy: 41 % of the blocks were disturbed; 8 repeats; smallest effect")
    assert verdict(AT_LEAST_TWICE, replace(evidence, disturbed_share=0.3)) == "SUPPORTED"


def test_what_the_box_did_not_give_is_inconclusive() -> None:
    found = judge_ratio(AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), lacks="the box is too busy"))

    assert (found.verdict, found.why.startswith("the box is too busy; 8 repeats;")) == ("INCONCLUSIVE", True)


def test_failed_repeats_are_named() -> None:
    found = judge_ratio(AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), failed_repeats=1))

    assert (found.verdict, found.why) == ("SUPPORTED", "8 repeats; 1 repeat failed")


def test_where_more_than_a_third_of_the_repeats_failed_nothing_is_concluded() -> None:
    evidence = controlled(around(3.0, 0.1))
    found = judge_ratio(AT_LEAST_TWICE, replace(evidence, failed_repeats=5))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", None)
    assert found.why.startswith("only 8 of 13 repeats were measured; 8 repeats; 5 repeats failed; smallest effect")
    assert verdict(AT_LEAST_TWICE, replace(evidence, failed_repeats=4)) == "SUPPORTED"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["rounds", "same", "delayed"])
def test_a_time_that_is_not_a_number_is_invalid_wherever_it_is(value: float, where: str) -> None:
    evidence = controlled(around(3.0, 0.1))
    changed: dict[str, Any] = {where: [[1.1, value], *around(3.0, 0.1)]}
    found = judge_ratio(AT_LEAST_TWICE, replace(evidence, **changed))

    assert (found.verdict, found.estimate, found.low, found.high) == ("INVALID", None, None, None)
    assert found.why == "a time is not a number: a block took no time, or for ever"


def test_an_outlier_that_moves_the_mean_off_the_middle_is_inconclusive() -> None:
    """One repeat in ten is at 2, the others are at 3: the mean is 2.89 [2.78, 3.005], the middle 3.008."""
    rounds = [[math.log(3.0) + 0.001 * (i % 7)] for i in range(36)] + [[math.log(2.0)] for _ in range(4)]
    found = judge_ratio(ratio_claim("at_least", 1.5), controlled(rounds))

    assert found.verdict == "INCONCLUSIVE"
    assert found.why.startswith("the mean and the Hodges-Lehmann estimate disagree; 40 repeats")


def test_ratios_beyond_all_floats_have_no_ends() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[800.0], [-800.0]] * 4))

    assert (found.verdict, found.estimate, found.low, found.high) == ("INCONCLUSIVE", 1.0, None, None)


# ---- what cannot be claimed


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (ratio_claim("equals", 2.0), "a ratio is claimed with at_least= or at_most=, not equals=: no measured ratio is exact"),
        (
            ratio_claim("between", 2.0),
            "a ratio is claimed with at_least= or at_most=, not between=: no measured ratio is exact",
        ),
        (ratio_claim("at_least", 0.0), "a ratio is above zero and finite; the claimed bound is 0"),
        (ratio_claim("at_least", math.nan), "a ratio is above zero and finite; the claimed bound is nan"),
        (ratio_claim("at_least", 2.0, margin=-0.1), "a margin is zero or more; the claimed one is -0.1"),
        (msgspec.structs.replace(AT_LEAST_TWICE, confidence=1.0), "a confidence is between 0.5 and 1; the claimed one is 1"),
    ],
)
def test_a_claim_that_nothing_measured_could_decide_is_refused(claim: ClaimDeclared, why: str) -> None:
    assert flaw(claim) == why
    with pytest.raises(ValueError, match=r"a (ratio|margin|confidence) is"):
        judge_ratio(claim, controlled(around(3.0, 0.1)))


# ---- several claims, several looks


def test_several_claims_are_judged_by_holms_steps() -> None:
    """Alone each is sure at 95 %. Of three the surest is judged at 98.3 %, the next at 97.5 %, the last at 95 % again."""
    claims = [(AT_LEAST_TWICE, controlled(around(2 * math.exp(distance), 0.1))) for distance in (0.11, 0.2, 0.14)]

    found = judge_ratios(claims)

    assert [one.verdict for one in found] == ["SUPPORTED"] * 3
    assert [one.confidence for one in found] == [0.95, 0.983333333, 0.975]


def test_once_a_claim_fails_in_holms_steps_the_level_stays() -> None:
    """p = 0.025, 0.030, 0.040: each would do alone, but the first is more than a third of 5 %."""
    claims = [(AT_LEAST_TWICE, controlled(around(2 * math.exp(distance), 0.1))) for distance in (0.105, 0.12, 0.113)]

    found = judge_ratios(claims)

    assert [one.verdict for one in found] == ["INCONCLUSIVE"] * 3
    assert [one.confidence for one in found] == [0.983333333] * 3
    assert found[0].why.startswith("8 repeats; interval of 98.33333 %; smallest effect it could have seen: 1")
    assert [verdict(*one) for one in claims] == ["SUPPORTED"] * 3


def test_a_claim_that_cannot_be_decided_takes_no_step() -> None:
    invalid = replace(controlled(around(3.0, 0.01)), difference="b does not give what a gives")
    claims = [(AT_LEAST_TWICE, invalid), (AT_LEAST_TWICE, controlled(around(2 * math.exp(0.2), 0.1)))]

    assert [(one.verdict, one.confidence) for one in judge_ratios(claims)] == [("INVALID", 0.975), ("SUPPORTED", 0.975)]


def test_an_early_look_asks_for_more() -> None:
    """The first of five looks has a level of 5 in a million, the last one of 4.1 %."""
    evidence = controlled(around(3.0, 0.12))

    found = [judge_ratio(AT_LEAST_TWICE, evidence, (look, 5)) for look in (1, 2, 5)]

    assert [one.verdict for one in found] == ["INCONCLUSIVE", "SUPPORTED", "SUPPORTED"]
    assert [one.confidence for one in found] == [0.999994927, 0.998743082, 0.958656962]


# ---- whole runs


def recorded(
    repeats: int,
    ratio: float,
    looks: tuple[int, ...] = (),
    crashed: int = -1,
    texts: tuple[str, ...] = ("c",),
    *,
    is_budget_spent: bool = False,
) -> RunSummary:
    """Return the summary of a run: eight rounds a repeat, with controls; the crashed repeat measures nothing."""
    run = started(looks=list(looks))
    items: list[tuple[str, events.Record]] = [("supervisor", run)]
    for repeat in range(repeats):
        writer = f"worker-{repeat}"
        items.append(("supervisor", events.WorkerStarted(writer=writer, pid=1, start=1, repeat=repeat)))
        if repeat != crashed:
            items += [(writer, event) for event in race(ratio, repeat, texts)]
        items.append(("supervisor", events.WorkerExited(writer=writer, code=0)))
    items += [("supervisor", events.BudgetSpent(repeats=repeats))] * is_budget_spent
    return fold(items)


def started(looks: list[int]) -> events.RunStarted:
    return events.RunStarted(
        format=1, run="r", scenario="s", topic="t", title="", source_sha256="", params={}, tuilab="0", wall_ns=0,
        supervisor=events.Identity("h", "b", 1, 1), claims=["c"], looks=looks,
    )  # fmt: skip


def race(ratio: float, repeat: int, texts: tuple[str, ...]) -> list[events.Record]:
    generator = random.Random(repeat)
    found: list[events.Record] = [ClaimDeclared(text=text, over="a", under="b", op="at_least", bound=2.0) for text in texts]
    found.append(events.RaceStarted(arms=["a", "b"], threads=1, device="cpu", loops={"a": 1, "b": 1}, base="b", delay=0.05))
    slots: list[tuple[str, Control, float]] = [("a", "", ratio), ("b", "", 1), ("b", "same", 1), ("b", "delayed", 1.05)]
    for number in range(8):
        for slot, (arm, control, length) in enumerate(slots):
            wall_ns = int(1e7 * length * generator.gauss(1, 0.002))
            block = BlockTimed(arm=arm, round=number, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns)
            block.control = control
            found.append(block)
    return [*found, events.RaceFinished(arms=["a", "b"], is_same=True)]


def test_a_run_is_judged_from_its_records() -> None:
    (reached,) = judge(recorded(8, ratio=3.0))

    assert (reached.text, reached.verdict, reached.rule, reached.why) == ("c", "SUPPORTED", "tuilab-4", "8 repeats")
    assert (reached.units, reached.unit, reached.confidence, reached.more_repeats) == (8, "repeats", 0.95, None)
    assert reached.estimate == pytest.approx(3.0, abs=0.01)
    assert reached.noise_floor is not None and 0 < reached.noise_floor < 0.005
    assert reached.smallest_effect is not None and 0 < reached.smallest_effect < 0.005


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1.0, "NO MEANINGFUL DIFFERENCE"), (1.5, "WEAKER THAN CLAIMED"), (0.5, "REFUTED")]
)
def test_a_run_reaches_the_other_verdicts(ratio: float, expected: str) -> None:
    assert [reached.verdict for reached in judge(recorded(6, ratio))] == [expected]


def test_a_crash_in_the_third_repeat_is_named_and_the_others_count() -> None:
    (reached,) = judge(recorded(8, ratio=3.0, crashed=2))

    assert (reached.verdict, reached.units, reached.why) == ("SUPPORTED", 7, "7 repeats; 1 repeat failed")


def test_a_run_of_two_repeats_needs_four_more() -> None:
    (reached,) = judge(recorded(2, ratio=3.0))

    assert (reached.verdict, reached.units, reached.more_repeats) == ("INCONCLUSIVE", 2, 4)


def test_judging_again_gives_the_same_bytes() -> None:
    summary = recorded(8, ratio=3.0, texts=("c", "d", "e"))
    once, again = (msgspec.json.encode(judge(summary)) for _ in range(2))

    assert once == again == msgspec.json.encode(judge(recorded(8, ratio=3.0, texts=("c", "d", "e"))))


def test_the_claims_of_a_run_are_judged_together_and_in_their_order() -> None:
    found = judge(recorded(8, ratio=3.0, texts=("c", "d")))

    assert [(reached.text, reached.confidence) for reached in found] == [("c", 0.975), ("d", 0.95)]


@pytest.mark.parametrize(
    ("repeats", "expected"), [(1, (1, 5)), (8, (1, 5)), (15, (1, 5)), (16, (2, 5)), (40, (5, 5)), (41, (5, 5))]
)
def test_the_present_look_is_the_last_one_that_was_reached(repeats: int, expected: tuple[int, int]) -> None:
    assert present_look(recorded(repeats, 3.0, looks=(8, 16, 24, 32, 40))) == expected
    assert present_look(recorded(repeats, 3.0)) == (1, 1)


def test_a_run_whose_time_is_over_looks_for_the_last_time() -> None:
    summary = recorded(12, 3.0, looks=(8, 16, 24, 32, 40), is_budget_spent=True)

    assert present_look(summary) == (5, 5)
    assert [reached.confidence for reached in judge(summary)] == [0.958656962]
    assert present_look(recorded(12, 3.0, is_budget_spent=True)) == (1, 1)


def test_an_early_look_at_a_run_has_a_wider_interval() -> None:
    (reached,) = judge(recorded(8, 3.0, looks=(8, 16, 24, 32, 40)))

    assert (reached.verdict, reached.confidence) == ("SUPPORTED", 0.999994927)
    assert reached.why == "8 repeats; interval of 99.99949 %"


def test_a_ratio_that_was_claimed_to_be_exact_is_invalid() -> None:
    declared = ClaimDeclared(text="c", over="a", under="b", op="equals", bound=2.0)
    (reached,) = judge(fold([("supervisor", started(looks=[])), ("worker-0", declared)]))

    assert (reached.verdict, reached.why.split(":")[0]) == (
        "INVALID", "a ratio is claimed with at_least= or at_most=, not equals=",
    )  # fmt: skip


def test_a_claim_that_was_not_measured_has_no_verdict() -> None:
    declared = ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)

    assert judge(fold([("supervisor", started(looks=[])), ("worker-0", declared)])) == []


def test_what_the_box_lacks_makes_every_open_claim_not_testable() -> None:
    (reached,) = judge(fold([("supervisor", started(looks=[])), ("worker-0", events.BoxLacked(needs="a CUDA device"))]))

    assert (reached.verdict, reached.why) == ("NOT TESTABLE HERE", "a CUDA device")
