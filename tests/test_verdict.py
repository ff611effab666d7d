"""The verdicts: each follows from the claim and the measurements alone."""

import math
import random
import re
from dataclasses import replace
from statistics import fmean
from typing import Any

import msgspec
import pytest

from tuilab.judging.clock import ClockKind
from tuilab.judging.evidence import Evidence
from tuilab.judging.interim_analyses import InterimAnalysis, can_end_run, latest_analysis
from tuilab.judging.is_judgeable import find_flaw
from tuilab.judging.judge_run import judge
from tuilab.judging.ratio import judge_ratio, judge_ratios
from tuilab.record import events
from tuilab.record.events import BlockTimed, ClaimDeclared, Control, Operator
from tuilab.record.folding.fold import fold
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import RULE

# ---- ratios


def ratio_claim(op: Operator, bound: float, margin: float = 0.03) -> ClaimDeclared:
    return ClaimDeclared(text="c", over="a", under="b", op=op, bound=bound, margin=margin)


AT_LEAST_TWICE = ratio_claim("at_least", 2.0)


def around(ratio: float, half: float = 0.0, repeats: int = 8) -> list[list[float]]:
    """Return the rounds of repeats whose mean log is that of `ratio` and whose 95 % interval reaches `half` to either side."""
    pattern = [(-1) ** i * (1 + i // 2) for i in range(repeats - repeats % 2)] + [0] * (repeats % 2)
    deviation = math.sqrt(sum(x * x for x in pattern) / (repeats - 1))
    quantile = {
        6: 2.5706,
        7: 2.4469,
        8: 2.3646,
        9: 2.3060,
        10: 2.2622,
        12: 2.2010,
        20: 2.0930,
        40: 2.0227,
    }[repeats]
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
        (
            "at_least",
            2.0,
            1.2,
            0.3,
            "REFUTED",
        ),  # 1.2 [0.9, 1.6]: twice is excluded, a direction is not proven
        ("at_least", 2.0, 1.2, 0.6, "INCONCLUSIVE"),
        (
            "at_least",
            2.0,
            1.0,
            0.015,
            "NO MEANINGFUL DIFFERENCE",
        ),  # [0.985, 1.015]: more is known than that it is not twice
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
    rounds = (
        around(ratio, half) if half else [[math.log(ratio) + 0.01 * sign] for sign in (-1, 1) * 4]
    )

    assert verdict(ratio_claim(op, bound), controlled(rounds)) == expected


@pytest.mark.parametrize(
    ("ratio", "half", "expected"),
    [
        (1.05, 0.01, "SUPPORTED"),
        (1.025, 0.004, "SUPPORTED"),  # inside the margin of 3 %, but it is what was claimed
        (
            1.025,
            0.012,
            "INCONCLUSIVE",
        ),  # inside the margin or not: a claim of 2 % says that 2 % matters
        (1.0, 0.01, "NO MEANINGFUL DIFFERENCE"),
        (
            1.01,
            0.005,
            "NO MEANINGFUL DIFFERENCE",
        ),  # nothing that was claimed is left over to be WEAKER
        (0.95, 0.01, "REFUTED"),
    ],
)
def test_a_claim_of_less_than_the_margin_narrows_the_margin(
    ratio: float, half: float, expected: str
) -> None:
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
    assert (found.low, found.high) == pytest.approx(
        (3 * math.exp(-0.1), 3 * math.exp(0.1)), rel=1e-4
    )
    assert found.noise_floor == pytest.approx(math.expm1(0.01), rel=1e-3)
    assert (found.why, found.more_repeats) == ("8 repeats", None)


def test_the_rounds_of_a_single_process_are_the_units_and_it_says_so() -> None:
    rounds = [[1.0, 1.1, 1.2, 1.1, 1.0, 1.1]]
    found = judge_ratio(AT_LEAST_TWICE, Evidence(rounds, same=[[0.0] * 6], process_sd=0.01))

    assert (found.verdict, found.units, found.unit) == ("SUPPORTED", 6, "rounds")
    assert found.why == (
        "6 rounds within one process; interval wider by an assumed 2.5 % variation between processes, by the calibration"
    )


def test_one_process_is_no_surer_than_the_luck_of_processes_allows() -> None:
    """Rounds that agree to a thousandth say nothing of where the process landed: 3 % may be luck, six hundred times is not."""
    rounds = [0.001, -0.001] * 8
    three, huge = ([[math.log(ratio) + value for value in rounds]] for ratio in (1.03, 600))
    lucky = judge_ratio(ratio_claim("at_least", 1.0), Evidence(three, process_sd=0.002))
    unknown = judge_ratio(ratio_claim("at_least", 1.0), Evidence(three))

    assert (lucky.verdict, unknown.verdict) == ("SUPPORTED", "INCONCLUSIVE")
    assert lucky.low == pytest.approx(1.03 * math.exp(-2.57 * 2.5 * 0.002), rel=1e-3)
    assumed = "interval wider by an assumed 5 % variation between processes"
    assert f"{assumed}, as this machine was never calibrated" in unknown.why
    assert verdict(ratio_claim("at_least", 2.0), Evidence(huge)) == "SUPPORTED"


def test_the_only_process_of_several_that_were_planned_is_one_unit() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[1.0, 1.1] * 8], is_single_process=False))

    assert (found.verdict, found.units, found.unit, found.more_repeats) == (
        "INCONCLUSIVE",
        1,
        "repeats",
        5,
    )


def test_the_rounds_of_several_processes_are_not_units() -> None:
    """Two processes of a hundred rounds each are two units, however sure each one is."""
    found = judge_ratio(AT_LEAST_TWICE, controlled([[1.0, 1.1] * 50, [1.0, 1.1] * 50]))

    assert (found.verdict, found.units, found.unit, found.more_repeats) == (
        "INCONCLUSIVE",
        2,
        "repeats",
        4,
    )
    assert found.why == (
        "2 repeats are too few, 6 are needed; smallest effect it could have seen: n/a; repeats needed: at least 6 (4 more)"
    )


def test_few_rounds_of_a_single_process_are_inconclusive() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[1.1]], same=[[0.0] * 6], process_sd=0.01))

    assert (found.verdict, found.estimate, found.low, found.high) == (
        "INCONCLUSIVE",
        3.00416602,
        None,
        None,
    )
    assert found.why == (
        "1 round within one process is too few, 6 are needed; "
        "interval wider by an assumed 2.5 % variation between processes, by the calibration; "
        "smallest effect it could have seen: n/a; repeats needed: n/a from one process"
    )


def test_a_process_without_a_round_is_no_unit() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[], [1.0, 1.1] * 3, []]))

    assert (found.verdict, found.unit) == ("SUPPORTED", "rounds")
    assert judge_ratio(AT_LEAST_TWICE, Evidence([[]])).why == "no round was measured"


def test_an_inconclusive_verdict_says_what_could_have_been_seen_and_how_many_repeats_more_it_takes() -> (
    None
):
    """A spread of 0.239 at a distance of 0.134 from the bound: of 28 repeats that is 2.95 standard errors."""
    found = judge_ratio(AT_LEAST_TWICE, controlled(around(1.75, 0.2)))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", 20)
    assert found.smallest_effect == pytest.approx(0.3187, abs=1e-3)
    assert (
        found.why
        == "8 repeats; smallest effect it could have seen: about 32 %; repeats needed: about 28 (20 more)"
    )


def test_on_the_bound_no_number_of_repeats_would_decide() -> None:
    found = judge_ratio(AT_LEAST_TWICE, controlled(around(2.0, 0.2)))

    assert (found.more_repeats, found.why.endswith("repeats needed: n/a")) == (None, True)


# ---- controls


def test_a_faster_arm_that_computes_something_else_is_invalid() -> None:
    found = judge_ratio(
        AT_LEAST_TWICE,
        replace(controlled(around(3.0, 0.1)), difference="b does not give what a gives"),
    )

    assert (found.verdict, found.why) == ("INVALID", "b does not give what a gives; 8 repeats")
    assert (found.estimate, found.low is None) == (3.0, False)


def test_an_arm_that_differs_from_itself_makes_the_claim_invalid() -> None:
    found = judge_ratio(
        AT_LEAST_TWICE, Evidence(around(3.0, 0.1), same=around(0.9, 0.02), delayed=SEEN)
    )

    assert (found.verdict, found.why) == (
        "INVALID",
        "an arm against itself came out 0.9 times as long: the control failed; 8 repeats",
    )


@pytest.mark.parametrize("same", [around(1.02, 0.005), around(1.05, 0.03), around(1.2, 0.02)[:3]])
def test_a_control_within_the_margin_or_unsure_does_not_fail(same: list[list[float]]) -> None:
    assert (
        verdict(AT_LEAST_TWICE, Evidence(around(3.0, 0.1), same=same, delayed=SEEN)) == "SUPPORTED"
    )


def test_the_noise_floor_is_as_high_as_the_control_reaches() -> None:
    """1.02 [1.015, 1.025]: half of the width would be 0.5 %, and a claim of 2 % would look well above it."""
    found = judge_ratio(
        AT_LEAST_TWICE, Evidence(around(3.0, 0.1), same=around(1 / 1.02, 0.005), delayed=SEEN)
    )

    assert found.noise_floor == pytest.approx(1.02 * math.exp(0.005) - 1, rel=1e-3)


@pytest.mark.parametrize(
    ("off", "expected"), [(1.0, "SUPPORTED"), (1.002, "SUPPORTED"), (1.015, "INCONCLUSIVE")]
)
def test_the_interval_is_wider_by_how_far_an_arm_against_itself_was_off(
    off: float, expected: str
) -> None:
    """1.02 [1.01, 1.03]: if nothing but another place in memory makes 1.5 %, then this may be no difference at all."""
    found = judge_ratio(
        ratio_claim("at_least", 1.0),
        Evidence(around(1.02, 0.01), same=around(off, 0.005), delayed=SEEN),
    )

    widened = off - 1 if off > 1.01 else 0.0
    assert (found.verdict, found.estimate) == (expected, 1.02)
    assert found.low == pytest.approx(1.02 * math.exp(-0.01) / (1 + widened), rel=1e-4)
    assert ("interval wider by 1.5 %, as the A/A control was off" in found.why) == bool(widened)


def test_interval_is_wider_by_half_the_offset_of_an_arm_that_was_timed_twice() -> None:
    """The arm lies in the middle between its two instances."""
    off = 0.02
    single = Evidence(around(1.1, 0.01), same=around(math.exp(off), 0.005), delayed=SEEN)
    double = replace(single, doubled_share=1.0)
    claim = ratio_claim("at_least", 1.0)

    narrower = math.log(judge_ratio(claim, double).low or 0) - math.log(
        judge_ratio(claim, single).low or 0
    )

    assert narrower == pytest.approx(off / 2, rel=0.01)


@pytest.mark.parametrize(
    ("same", "words"),
    [
        ([], "no control: an arm against itself was not measured"),
        (around(1.0, 0.01)[:3], "no control: an arm against itself was measured in only 3 repeats"),
    ],
)
def test_a_missing_control_is_told_and_one_that_is_too_thin(
    same: list[list[float]], words: str
) -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence(around(3.0, 0.1), same=same, delayed=SEEN))

    assert (found.verdict, found.why) == ("SUPPORTED", f"8 repeats; {words}")


def test_without_the_control_there_is_no_noise_floor() -> None:
    assert judge_ratio(AT_LEAST_TWICE, Evidence(around(3.0, 0.1))).noise_floor is None


# ---- what was disturbed, and what still changed


def test_where_the_wall_is_disturbed_cpu_time_is_judged_however_many_blocks_were() -> None:
    rounds = around(3.0, 0.1)
    undisturbed = [values[0] for values in rounds]
    evidence = replace(
        controlled(rounds), disturbed_share=0.43, clock="cpu", undisturbed=undisturbed
    )
    found = judge_ratio(AT_LEAST_TWICE, evidence)

    assert (found.verdict, found.measure) == ("SUPPORTED", "cpu")
    assert found.why == "8 repeats; judged on CPU time: 43 % of the blocks were disturbed"


def on_cpu_time(rounds: list[list[float]], undisturbed: list[float], **more: Any) -> Evidence:
    """Return evidence on CPU time: of all blocks by round, and of the undisturbed ones by process."""
    evidence = replace(controlled(rounds), clock="cpu", disturbed_share=0.4)
    return replace(evidence, undisturbed=undisturbed, **more)


def test_slow_blocks_count_on_cpu_time_as_they_do_on_the_wall_clock() -> None:
    slow = [0.0] * 13 + [math.log(2)] * 3  # the geometric mean is 1.14
    rounds = [[value + 0.001 * repeat for value in slow] for repeat in range(8)]
    at_most = ratio_claim("at_most", 1.1)

    on_wall = judge_ratio(at_most, controlled(rounds))
    on_cpu = judge_ratio(at_most, on_cpu_time(rounds, [fmean(values) for values in rounds]))

    assert on_cpu.estimate == on_wall.estimate == pytest.approx(2 ** (3 / 16), rel=0.01)
    assert on_cpu.verdict != "SUPPORTED"


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_verdict_holds_of_undisturbed_blocks_as_well(clock: ClockKind) -> None:
    """Stalls of one arm alone make 2.2 of a true 1.9."""
    rounds = around(2.2, 0.02)
    undisturbed = [fmean(values) for values in around(1.9, 0.02)]
    evidence = replace(controlled(rounds), clock=clock, disturbed_share=0.1)

    assert (
        verdict(AT_LEAST_TWICE, replace(evidence, undisturbed=[math.log(2.2)] * 8)) == "SUPPORTED"
    )
    assert verdict(AT_LEAST_TWICE, replace(evidence, undisturbed=undisturbed)) == "INCONCLUSIVE"


def test_cost_of_preemption_reaches_into_the_interval() -> None:
    """All blocks say 1.4, the undisturbed ones 1.3: either may be the ratio of the arms."""
    rounds = around(1.4, 0.01)
    undisturbed = [math.log(1.3) + 0.001 * repeat for repeat in range(8)]

    found = judge_ratio(ratio_claim("at_least", 1.35), on_cpu_time(rounds, undisturbed))

    assert found.verdict == "INCONCLUSIVE"
    assert found.estimate == pytest.approx(1.4, rel=0.01)
    # Undisturbed blocks may pay, too, as much as the two estimates differ: 1.3 / (1.4 / 1.3).
    assert found.low == pytest.approx(1.3**2 / 1.4, rel=0.01)
    assert verdict(ratio_claim("at_least", 1.15), on_cpu_time(rounds, undisturbed)) == "SUPPORTED"


@pytest.mark.parametrize("undisturbed", [[], [math.log(1.06)] * 5])
def test_cost_of_preemption_is_assumed_if_too_few_blocks_were_undisturbed(
    undisturbed: list[float],
) -> None:
    found = judge_ratio(ratio_claim("at_least", 1.0), on_cpu_time(around(1.06, 0.01), undisturbed))

    words = "interval wider by 8 %, an assumed cost of interruptions"
    assert f"{words}: too few blocks were undisturbed to measure it" in found.why
    assert found.verdict == "INCONCLUSIVE"
    larger = on_cpu_time(around(1.2, 0.01), undisturbed)
    assert verdict(ratio_claim("at_least", 1.0), larger) == "SUPPORTED"


@pytest.mark.parametrize(("share", "expected"), [(0.0, "REFUTED"), (0.5, "INCONCLUSIVE")])
def test_one_process_on_a_disturbed_machine_decides_only_what_is_plain(
    share: float, expected: str
) -> None:
    rounds = [[math.log(0.8) + 0.01 * (turn % 3) for turn in range(12)]]
    evidence = Evidence(rounds, same=[[0.0] * 12], clock="cpu", disturbed_share=share)
    evidence = replace(evidence, delayed=[[math.log(1.05)] * 12])

    found = judge_ratio(ratio_claim("at_least", 1.2), evidence)

    assert found.verdict == expected
    assert ("variation of a process on a disturbed machine" in found.why) == bool(share)
    plain = replace(evidence, rounds=[[math.log(500.0) + 0.01 * (turn % 3) for turn in range(12)]])
    assert verdict(ratio_claim("at_least", 100.0), plain) == "SUPPORTED"


@pytest.mark.parametrize("sign", [1, -1])
def test_an_arm_that_is_disturbed_more_than_the_other_one_may_do_it_itself(sign: int) -> None:
    """Three blocks in eight against none: pooled that is 19 %, and no machine that is too noisy."""
    marks = [[sign * (turn < 3 - repeat % 2) for turn in range(8)] for repeat in range(8)]
    found = judge_ratio(
        AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), marks=marks, disturbed_share=0.16)
    )

    more, less = "ab" if sign > 0 else "ba"
    assert found.verdict == "INCONCLUSIVE"
    assert found.why.startswith(
        f"{more} is disturbed more than {less}: it may be its own doing; 8 repeats"
    )


def test_arms_that_are_disturbed_alike_are_judged() -> None:
    marks = [
        [generator.choice((-1, 0, 1)) for _ in range(8)]
        for generator in [random.Random(1)]
        for _ in range(8)
    ]

    assert (
        verdict(AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), marks=marks)) == "SUPPORTED"
    )


def slowing(change: float, repeats: int) -> list[list[float]]:
    """Return the rounds of a ratio of 3 that grows by a share in the course of each race."""
    return [
        [math.log(3) + change * turn / 9 + 0.001 * ((turn * 7 + repeat) % 3) for turn in range(10)]
        for repeat in range(repeats)
    ]


@pytest.mark.parametrize("repeats", [1, 8])
@pytest.mark.parametrize(
    ("change", "expected"), [(0.04, "INCONCLUSIVE"), (-0.04, "INCONCLUSIVE"), (0.01, "SUPPORTED")]
)
def test_a_ratio_that_is_still_changing_is_no_ratio_yet(
    repeats: int, change: float, expected: str
) -> None:
    found = judge_ratio(
        AT_LEAST_TWICE,
        Evidence(slowing(change, repeats), is_single_process=repeats == 1, process_sd=0.001),
    )

    assert found.verdict == expected
    assert found.why.startswith("still changing by 4.1 % in a race; ") == (
        expected == "INCONCLUSIVE"
    )


def test_a_warm_up_that_did_not_settle_is_told() -> None:
    found = judge_ratio(AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), unsettled_repeats=2))

    assert (found.verdict, found.why) == (
        "SUPPORTED",
        "8 repeats; warm-up did not settle in 2 repeats",
    )


def test_times_that_agree_to_a_tick_of_their_clock_are_no_surer_than_the_tick() -> None:
    """Eight times 2.1 to the last digit: by a clock of which one tick is a tenth of that it may as well be 1.9."""
    rounds = [[math.log(2.1)]] * 8

    assert verdict(AT_LEAST_TWICE, controlled(rounds)) == "SUPPORTED"
    assert verdict(AT_LEAST_TWICE, replace(controlled(rounds), tick_sd=0.1)) == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("delayed", "reason"),
    [
        ([], "whether a known delay is seen was not measured"),
        (SEEN[:5], "whether a known delay is seen was not measured"),
        (around(1.05, 0.06), "the known delay of 5 % was not seen"),
        (around(1.0, 0.01), "the known delay of 5 % was not seen"),
        (
            around(1.01, 0.005),
            "the known delay of 5 % was not seen",
        ),  # something was seen, but not 5 %
    ],
)
@pytest.mark.parametrize(
    ("claim", "unsaid"),
    [
        (AT_LEAST_TWICE, "no difference must not be claimed"),
        (ratio_claim("at_most", 1.0), "no difference must not be claimed"),
        (ratio_claim("at_most", 1.1), "a may be worse than it looks"),
        (ratio_claim("at_least", 0.9), "b may be worse than it looks"),
    ],
)
def test_neither_no_difference_nor_that_it_is_small_is_said_where_the_known_delay_was_not_seen(
    claim: ClaimDeclared, unsaid: str, delayed: list[list[float]], reason: str
) -> None:
    found = judge_ratio(claim, replace(controlled(around(1.0, 0.01)), delayed=delayed))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", None)
    assert found.why == (
        f"{reason}, so that {unsaid}; 8 repeats; smallest effect it could have seen: about 1.4 %; repeats needed: n/a"
    )


def test_commands_are_said_not_to_differ_where_one_against_itself_ran_along() -> None:
    evidence = replace(controlled(around(1.0, 0.01)), delayed=[], needs_delay=False)

    assert verdict(AT_LEAST_TWICE, evidence) == "NO MEANINGFUL DIFFERENCE"
    assert judge_ratio(AT_LEAST_TWICE, replace(evidence, same=[])).why == (
        "no control: an arm against itself was not measured, so that no difference must not be claimed; 8 repeats; "
        "smallest effect it could have seen: about 1.4 %; repeats needed: n/a"
    )


@pytest.mark.parametrize(
    ("op", "bound", "ratio"),
    [("at_least", 2.0, 3.0), ("at_most", 1.1, 0.8), ("at_least", 0.9, 1.5)],
)
def test_a_difference_that_was_seen_needs_no_known_delay(
    op: Operator, bound: float, ratio: float
) -> None:
    assert verdict(ratio_claim(op, bound), Evidence(around(ratio, 0.05))) == "SUPPORTED"


def test_a_recording_that_costs_more_than_a_hundredth_of_a_step_is_invalid() -> None:
    evidence = controlled(around(3.0, 0.1))

    assert (
        judge_ratio(AT_LEAST_TWICE, replace(evidence, observer_share=0.02)).why
        == "recording took 2 % of a step; 8 repeats"
    )
    assert verdict(AT_LEAST_TWICE, replace(evidence, observer_share=0.02)) == "INVALID"
    assert verdict(AT_LEAST_TWICE, replace(evidence, observer_share=0.01)) == "SUPPORTED"
    assert verdict(AT_LEAST_TWICE, replace(evidence, observer_share=math.nan)) == "INVALID"


def test_a_noisy_machine_is_inconclusive_at_most() -> None:
    evidence = controlled(around(3.0, 0.1))
    found = judge_ratio(AT_LEAST_TWICE, replace(evidence, disturbed_share=0.41))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", None)
    assert found.why.startswith(
        "the machine is too noisy: 41 % of the blocks were disturbed; 8 repeats; smallest effect"
    )
    assert verdict(AT_LEAST_TWICE, replace(evidence, disturbed_share=0.3)) == "SUPPORTED"


NOISY: dict[str, Any] = {"disturbed_share": 0.47}


@pytest.mark.parametrize(
    ("ratio", "bound", "side"), [(0.0857, 1.0, "below"), (0.0857, 0.01, "above")]
)
def test_what_is_plain_though_nothing_carries_a_verdict_is_told_beside_it(
    ratio: float, bound: float, side: str
) -> None:
    found = judge_ratio(
        ratio_claim("at_least", bound), replace(controlled(around(ratio, 0.1)), **NOISY)
    )

    assert found.verdict == "INCONCLUSIVE"
    reason = "the machine is too noisy: 47 % of the blocks were disturbed"
    assert found.why.startswith(
        f"{reason}; by all signs far {side} {bound:g}, though not to be sized; "
    )


@pytest.mark.parametrize(
    ("rounds", "more"),
    [
        (around(0.6), NOISY),  # less than a factor of two off
        (around(0.2, 0.9), NOISY),  # off by less than twice its width
        (around(1.0, 0.9), NOISY),  # around the bound
        (around(0.08)[:5], {}),  # processes may agree by luck
        ([[math.log(0.08)] * 16], {**NOISY, "is_single_process": True}),  # and its rounds have no other than its own
        (around(0.08), {"marks": [[1] * 16] * 8}),  # what disturbs one arm moves all processes alike
        (slowing(3.0, 8), NOISY),  # so does a warm-up
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_at_its_verdict(
    rounds: list[list[float]], more: dict[str, Any]
) -> None:
    found = judge_ratio(ratio_claim("at_least", 1.0), replace(controlled(rounds), **more))

    assert found.verdict == "INCONCLUSIVE" and "by all signs" not in found.why


def test_what_the_box_did_not_give_is_inconclusive() -> None:
    found = judge_ratio(
        AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), lacks="the box is too busy")
    )

    assert (found.verdict, found.why.startswith("the box is too busy; 8 repeats;")) == (
        "INCONCLUSIVE",
        True,
    )


def test_failed_repeats_are_named() -> None:
    found = judge_ratio(AT_LEAST_TWICE, replace(controlled(around(3.0, 0.1)), failed_repeats=1))

    assert (found.verdict, found.why) == ("SUPPORTED", "8 repeats; 1 repeat failed")


def test_where_more_than_a_third_of_the_repeats_failed_nothing_is_concluded() -> None:
    evidence = controlled(around(3.0, 0.1))
    found = judge_ratio(AT_LEAST_TWICE, replace(evidence, failed_repeats=5))

    assert (found.verdict, found.more_repeats) == ("INCONCLUSIVE", None)
    assert found.why.startswith(
        "only 8 of 13 repeats were measured; 8 repeats; 5 repeats failed; smallest effect"
    )
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
    rounds = [[math.log(3.0) + 0.001 * (i % 7)] for i in range(36)] + [
        [math.log(2.0)] for _ in range(4)
    ]
    found = judge_ratio(ratio_claim("at_least", 1.5), controlled(rounds))

    assert found.verdict == "INCONCLUSIVE"
    assert found.why.startswith("the mean and the Hodges-Lehmann estimate disagree; 40 repeats")


def test_ratios_beyond_all_floats_have_no_ends() -> None:
    found = judge_ratio(AT_LEAST_TWICE, Evidence([[800.0], [-800.0]] * 4))

    assert (found.verdict, found.estimate, found.low, found.high) == (
        "INCONCLUSIVE",
        1.0,
        None,
        None,
    )


# ---- what cannot be claimed


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (
            ratio_claim("equals", 2.0),
            "a ratio is claimed with at_least= or at_most=, not equals=: no measured ratio is exact",
        ),
        (
            ratio_claim("between", 2.0),
            "a ratio is claimed with at_least= or at_most=, not between=: no measured ratio is exact",
        ),
        (
            ratio_claim("at_least", 0.0),
            "the claimed bound of a ratio has to be above 0 and finite, not 0",
        ),
        (
            ratio_claim("at_least", math.nan),
            "the claimed bound of a ratio has to be above 0 and finite, not nan",
        ),
        (
            ratio_claim("at_least", 2.0, margin=-0.1),
            "the margin of a ratio has to be 0 or more and finite, not -0.1",
        ),
        (
            msgspec.structs.replace(AT_LEAST_TWICE, confidence=1.0),
            "the confidence has to be between 0.5 and 1, not 1",
        ),
        (
            ClaimDeclared(text="c", over="a", under="a", op="at_least", bound=1.0),
            "a ratio needs two different arms; both are a",
        ),
    ],
)
def test_a_claim_that_nothing_measured_could_decide_is_refused(
    claim: ClaimDeclared, why: str
) -> None:
    assert find_flaw(claim) == why
    with pytest.raises(ValueError, match=re.escape(why)):
        judge_ratio(claim, controlled(around(3.0, 0.1)))


# ---- several claims, several looks


def test_several_claims_are_judged_by_holms_steps() -> None:
    """Alone each is sure at 95 %. Of three the surest is judged at 98.3 %, the next at 97.5 %, the last at 95 % again."""
    claims = [
        (AT_LEAST_TWICE, controlled(around(2 * math.exp(distance), 0.1)))
        for distance in (0.11, 0.2, 0.14)
    ]

    found = judge_ratios(claims)

    assert [one.verdict for one in found] == ["SUPPORTED"] * 3
    assert [one.confidence for one in found] == [0.95, 0.983333333, 0.975]


def test_once_a_claim_fails_in_holms_steps_the_level_stays() -> None:
    """p = 0.025, 0.030, 0.040: each would do alone, but the first is more than a third of 5 %."""
    claims = [
        (AT_LEAST_TWICE, controlled(around(2 * math.exp(distance), 0.1)))
        for distance in (0.105, 0.12, 0.113)
    ]

    found = judge_ratios(claims)

    assert [one.verdict for one in found] == ["INCONCLUSIVE"] * 3
    assert [one.confidence for one in found] == [0.983333333] * 3
    assert found[0].why.startswith(
        "8 repeats; interval of 98.33 %; smallest effect it could have seen: about 1"
    )
    assert [verdict(*one) for one in claims] == ["SUPPORTED"] * 3


def test_a_claim_that_cannot_be_decided_takes_no_step() -> None:
    invalid = replace(controlled(around(3.0, 0.01)), difference="b does not give what a gives")
    claims = [
        (AT_LEAST_TWICE, invalid),
        (AT_LEAST_TWICE, controlled(around(2 * math.exp(0.2), 0.1))),
    ]

    assert [(one.verdict, one.confidence) for one in judge_ratios(claims)] == [
        ("INVALID", 0.975),
        ("SUPPORTED", 0.975),
    ]


def test_a_claim_that_could_still_be_wrong_about_the_margin_takes_no_step() -> None:
    """Both are surely not twice as long; whether the first one is 3 % longer or not, nobody knows."""
    open_still = controlled(around(1.03, 0.02))
    claims = [(AT_LEAST_TWICE, open_still), (AT_LEAST_TWICE, controlled(around(1.5, 0.02)))]

    found = judge_ratios(claims)

    assert [(one.verdict, one.confidence) for one in found] == [
        ("REFUTED", 0.95),
        ("WEAKER THAN CLAIMED", 0.975),
    ]
    assert [one.confidence for one in judge_ratios([claims[0], claims[0]])] == [0.975, 0.975]


def test_an_early_look_asks_for_more() -> None:
    """The second of six looks has a level of 0.2 %, what is left for the end is 3 %."""
    summary = recorded(8, 3.0, looks=LOOKS)
    early, late = latest_analysis(summary), InterimAnalysis(LOOKS, (0.05, 0.1, 0.2, 0.3, 0.5, 1.0))

    found = [
        judge_ratio(AT_LEAST_TWICE, controlled(around(3.0, 0.22)), look) for look in (early, late)
    ]

    assert [one.verdict for one in found] == ["INCONCLUSIVE", "SUPPORTED"]
    assert [one.confidence for one in found] == [0.998297893, 0.970769218]


# ---- whole runs


LOOKS = (6, 8, 12, 16, 24, 40)


def recorded(
    repeats: int,
    ratio: float,
    looks: tuple[int, ...] = (),
    crashed: int = -1,
    texts: tuple[str, ...] = ("c",),
    *,
    planned: int = 0,
    is_budget_spent: bool = False,
    is_empty: bool = False,
    exit_code: int = 0,
) -> RunSummary:
    """Return the summary of a run: eight rounds a repeat, with controls; the crashed repeat measures nothing.

    `exit_code` is that of the crashed repeat.

    It was planned to have as many repeats, unless it is said how many.
    """
    run = started(looks=list(looks))
    run.repeats = planned or max(looks, default=repeats)
    items: list[tuple[str, events.Record]] = [("supervisor", run)]
    for repeat in range(repeats):
        writer = f"worker-{repeat}"
        items.append(
            ("supervisor", events.WorkerStarted(writer=writer, pid=1, start=1, repeat=repeat))
        )
        if repeat != crashed and not is_empty:
            items += [(writer, event) for event in race(ratio, repeat, texts)]
        code = exit_code if repeat == crashed else 0
        items.append(("supervisor", events.WorkerExited(writer=writer, code=code)))
    items += [("supervisor", events.BudgetSpent(repeats=repeats))] * is_budget_spent
    return fold(items)


def started(looks: list[int]) -> events.RunStarted:
    return events.RunStarted(
        format=1, run="r", scenario="s", topic="t", title="", source_sha256="", params={}, tuilab="0", wall_ns=0,
        supervisor=events.Identity("h", "b", 1, 1), claims=["c"], looks=looks,
    )  # fmt: skip


def race(ratio: float, repeat: int, texts: tuple[str, ...]) -> list[events.Record]:
    generator = random.Random(repeat)
    found: list[events.Record] = [
        ClaimDeclared(text=text, over="a", under="b", op="at_least", bound=2.0) for text in texts
    ]
    found.append(
        events.RaceStarted(
            arms=["a", "b"], threads=1, device="cpu", loops={"a": 1, "b": 1}, base="b", delay=0.05
        )
    )
    slots: list[tuple[str, Control, float]] = [
        ("a", "", ratio),
        ("b", "", 1),
        ("b", "same", 1),
        ("b", "delayed", 1.05),
    ]
    for number in range(8):
        for slot, (arm, control, length) in enumerate(slots):
            wall_ns = int(1e7 * length * generator.gauss(1, 0.002))
            block = BlockTimed(
                arm=arm, round=number, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns
            )
            block.control = control
            found.append(block)
    return [*found, events.RaceFinished(arms=["a", "b"], is_same=True)]


def test_a_run_is_judged_from_its_records() -> None:
    (reached,) = judge(recorded(8, ratio=3.0))

    assert (reached.text, reached.verdict, reached.rule) == ("c", "SUPPORTED", RULE)
    assert (reached.units, reached.unit, reached.confidence, reached.more_repeats) == (
        8,
        "repeats",
        0.964138746,
        None,
    )
    assert reached.estimate == pytest.approx(3.0, abs=0.01)
    assert reached.noise_floor is not None and 0 < reached.noise_floor < 0.005
    assert reached.smallest_effect is not None and 0 < reached.smallest_effect < 0.005


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.0, "NO MEANINGFUL DIFFERENCE"), (1.5, "WEAKER THAN CLAIMED"), (0.5, "REFUTED")],
)
def test_a_run_reaches_the_other_verdicts(ratio: float, expected: str) -> None:
    assert [reached.verdict for reached in judge(recorded(6, ratio))] == [expected]


def test_a_crash_in_the_third_repeat_is_named_and_the_others_count() -> None:
    (reached,) = judge(recorded(8, ratio=3.0, crashed=2))

    assert (reached.verdict, reached.units, reached.why) == (
        "SUPPORTED",
        7,
        "7 repeats; 1 repeat failed; interval of 96.41 %",
    )


def test_a_run_of_two_repeats_needs_four_more() -> None:
    (reached,) = judge(recorded(2, ratio=3.0))

    assert (reached.verdict, reached.units, reached.more_repeats) == ("INCONCLUSIVE", 2, 4)


def test_judging_again_gives_the_same_bytes() -> None:
    summary = recorded(8, ratio=3.0, texts=("c", "d", "e"))
    once, again = (msgspec.json.encode(judge(summary)) for _ in range(2))

    assert (
        once == again == msgspec.json.encode(judge(recorded(8, ratio=3.0, texts=("c", "d", "e"))))
    )


def test_the_claims_of_a_run_are_judged_together_and_in_their_order() -> None:
    found = judge(recorded(6, ratio=3.0, texts=("c", "d")))

    assert [(reached.text, reached.confidence) for reached in found] == [("c", 0.975), ("d", 0.95)]


@pytest.mark.parametrize(
    ("repeats", "counts", "counted"),
    [
        (1, (6,), 1),
        (6, (6,), 6),
        (7, (6,), 6),
        (8, (6, 8), 8),
        (39, LOOKS[:5], 24),
        (40, LOOKS, 40),
        (41, LOOKS, 40),
    ],
)
def test_with_a_budget_the_present_look_is_the_last_one_that_was_reached(
    repeats: int, counts: tuple[int, ...], counted: int
) -> None:
    look = latest_analysis(recorded(repeats, 3.0, looks=LOOKS))

    assert (look.counts, look.workers) == (
        counts,
        tuple(f"worker-{repeat}" for repeat in range(counted)),
    )


def test_the_looks_of_a_budget_spend_what_hwang_shih_and_decani_give_them() -> None:
    shares = latest_analysis(recorded(40, 3.0, looks=LOOKS)).spent_shares

    assert [round(0.05 * share, 5) for share in shares] == [
        0.00274,
        0.00385,
        0.00643,
        0.00959,
        0.01816,
        0.05,
    ]


@pytest.mark.parametrize(("repeats", "counts"), [(1, (1,)), (5, (5,)), (6, (6,)), (8, (6, 7, 8))])
def test_a_run_of_so_many_repeats_may_be_watched_from_the_sixth_on(
    repeats: int, counts: tuple[int, ...]
) -> None:
    look = latest_analysis(recorded(repeats, 3.0))

    assert (look.counts, look.spent_shares[-1], look.early_stop) == (counts, 1.0, "")


def test_a_run_whose_time_is_over_spends_all_that_is_left() -> None:
    summary = recorded(12, 3.0, looks=LOOKS, is_budget_spent=True)

    assert (latest_analysis(summary).counts, latest_analysis(summary).spent_shares[-1]) == (
        (6, 8, 12),
        1.0,
    )
    assert [reached.confidence for reached in judge(summary)] == [0.957407935]
    assert (
        len(latest_analysis(recorded(10, 3.0, looks=LOOKS, is_budget_spent=True)).workers or ())
        == 10
    )


def test_a_run_that_is_stopped_is_judged_as_it_stood() -> None:
    """As surely as its plan had spent by then, and not as if eight had been meant."""
    (stopped,) = judge(recorded(8, 3.0, planned=40))
    (whole,) = judge(recorded(8, 3.0))

    assert stopped.verdict == "SUPPORTED"
    assert stopped.confidence == pytest.approx(0.9995, abs=2e-4)
    assert stopped.why.startswith("8 repeats; stopped after 8 of 40 repeats; interval of 99.9")
    assert (whole.why, whole.confidence) == ("8 repeats; interval of 96.41 %", 0.964138746)


def test_a_run_with_a_budget_that_is_stopped_is_judged_as_of_the_last_look() -> None:
    (reached,) = judge(recorded(11, 3.0, looks=LOOKS))

    assert (reached.units, reached.confidence) == (8, 0.998297893)
    assert reached.why.startswith(
        "8 repeats; stopped after 11 of 40 repeats: judged as after 8; interval of 99.8"
    )


@pytest.mark.parametrize("looks", [LOOKS, ()])
def test_a_run_that_is_stopped_before_the_first_look_is_inconclusive(
    looks: tuple[int, ...],
) -> None:
    (reached,) = judge(recorded(5, 3.0, looks=looks, planned=40))

    assert reached.verdict == "INCONCLUSIVE"
    assert reached.why.startswith(
        "5 repeats are too few, 6 are needed; stopped after 5 of 40 repeats, before the first look; "
    )


def test_where_there_is_no_interval_nobody_tells_of_how_many_percent_it_is() -> None:
    one, other = judge(recorded(1, 3.0, planned=40, texts=("c", "d")))

    assert (one.low, other.low) == (None, None)
    assert "interval of" not in one.why + other.why


def test_a_repeat_that_was_stopped_with_the_run_has_not_failed_and_does_not_count() -> None:
    summary = recorded(7, 3.0, planned=40)
    last = [("worker-7", event) for event in race(3.0, 7, ("c",))]
    fold(
        [
            ("supervisor", events.WorkerStarted(writer="worker-7", pid=1, start=1, repeat=7)),
            *last,
            ("supervisor", events.StateChanged(state="stopping", reason="stop requested")),
            ("supervisor", events.WorkerExited(writer="worker-7", signal=15)),
        ],
        summary,
    )

    (reached,) = judge(summary)
    assert (reached.units, "failed" in reached.why) == (7, False)


def test_a_killed_repeat_counts_with_its_whole_race_only() -> None:
    """Half a race has half of the order in which the arms take turns."""
    summary = recorded(8, 3.0)
    del summary.differences[3]

    (reached,) = judge(summary)
    assert (reached.units, "1 repeat failed" in reached.why) == (7, True)


def test_times_of_a_worker_that_nobody_started_count_for_nothing() -> None:
    summary = fold([("worker-77", event) for event in race(9.0, 77, ("c",))], recorded(8, 3.0))

    assert [reached.units for reached in judge(summary)] == [8]


@pytest.mark.parametrize(
    ("op", "bound", "low", "high", "expected"),
    [
        ("at_least", 2.0, 0.90, 1.10, False),  # no difference may follow
        ("at_least", 2.0, 1.01, 1.90, False),  # or WEAKER
        ("at_least", 2.0, 0.90, 0.96, True),  # slower: nothing but REFUTED is left
        ("at_least", 1.0, 0.95, 0.99, False),
        ("at_least", 0.9, 0.80, 0.89, True),
        ("at_most", 0.5, 0.60, 1.10, False),
        ("at_most", 0.5, 1.04, 1.10, True),
        ("at_most", 1.1, 1.20, 1.30, True),
    ],
)
def test_a_refutation_ends_a_run_only_where_nothing_that_says_more_can_follow(
    op: Operator, bound: float, low: float, high: float, expected: bool
) -> None:
    reached = events.VerdictReached(text="c", verdict="REFUTED", rule="r", low=low, high=high)

    assert can_end_run(ratio_claim(op, bound), reached) is expected


def test_what_is_open_says_not_all_and_every_other_decision_does() -> None:
    found = {
        verdict: can_end_run(
            AT_LEAST_TWICE,
            events.VerdictReached(text="c", verdict=verdict, rule="r", low=1.1, high=1.2),
        )
        for verdict in (
            "SUPPORTED",
            "WEAKER THAN CLAIMED",
            "NO MEANINGFUL DIFFERENCE",
            "INVALID",
            "INCONCLUSIVE",
        )
    }

    assert [verdict for verdict, is_all in found.items() if not is_all] == ["INCONCLUSIVE"]


def test_a_claim_that_is_declared_after_its_race_is_invalid() -> None:
    claim, *raced = race(3.0, 0, ("c",))
    worker = events.WorkerStarted(writer="worker-0", pid=1, start=1)
    items: list[tuple[str, events.Record]] = [
        ("supervisor", started(looks=[])),
        ("supervisor", worker),
    ]

    (reached,) = judge(fold([*items, *(("worker-0", event) for event in (*raced, claim))]))
    assert (reached.verdict, reached.why.split(":")[0]) == (
        "INVALID",
        "it was declared after its race had begun",
    )


def test_claim_that_some_repeats_did_not_declare_is_invalid() -> None:
    """A scenario that declares it in the last repeat alone may have seen what the others measured."""
    run = started(looks=[])
    run.repeats = 6
    items: list[tuple[str, events.Record]] = [("supervisor", run)]
    for repeat in range(6):
        writer = f"worker-{repeat}"
        items.append(
            ("supervisor", events.WorkerStarted(writer=writer, pid=1, start=1, repeat=repeat))
        )
        items += [(writer, event) for event in race(3.0, repeat, ("c",) if repeat == 5 else ())]
        items.append(("supervisor", events.WorkerExited(writer=writer, code=0)))

    (reached,) = judge(fold(items))
    assert (reached.verdict, reached.why) == (
        "INVALID", "it was declared in 1 of 6 repeats that raced its arms, and has to be in all of them",
    )  # fmt: skip


def test_a_claim_that_has_another_bound_in_a_later_repeat_is_invalid() -> None:
    later = events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.9)
    summary = fold([("worker-8", later)], recorded(8, 3.0))

    (reached,) = judge(summary)
    assert (reached.verdict, reached.why) == (
        "INVALID", "it was declared again as something else: at least 2 at first, then at least 2.9",
    )  # fmt: skip


def test_an_arm_that_computes_something_else_makes_claims_about_it_invalid_and_no_others() -> None:
    summary = recorded(6, 3.0)
    for _, finished in summary.differences:
        finished.is_same, finished.difference, finished.arms = (
            False,
            "c does not compute what a does",
            ["a", "b", "c"],
        )
    others = recorded(6, 3.0)
    for _, finished in others.differences:
        finished.is_same, finished.difference = False, "b does not compute what a does"

    assert [reached.verdict for reached in (*judge(summary), *judge(others))] == [
        "SUPPORTED",
        "INVALID",
    ]


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
    (reached,) = judge(
        fold(
            [
                ("supervisor", started(looks=[])),
                ("worker-0", events.BoxLacked(needs="a CUDA device")),
            ]
        )
    )

    assert (reached.verdict, reached.why) == ("NOT TESTABLE HERE", "a CUDA device")


@pytest.mark.parametrize(
    ("looks", "repeats", "counts"), [((), 8, (6, 7)), (LOOKS, 40, (6, 8, 12, 16, 24, 39))]
)
def test_run_with_a_failed_repeat_spends_all_of_its_error(
    looks: tuple[int, ...], repeats: int, counts: tuple[int, ...]
) -> None:
    failed = recorded(repeats, 3.0, looks=looks, crashed=3, exit_code=1, is_empty=True)

    look = latest_analysis(failed)

    assert (look.counts, look.spent_shares[-1], look.early_stop) == (counts, 1.0, "")


def test_run_that_goes_on_after_a_failed_repeat_keeps_its_error() -> None:
    look = latest_analysis(recorded(7, 3.0, crashed=3, exit_code=1, planned=8, is_empty=True))

    assert look.counts == (6,)
    assert look.spent_shares[-1] < 0.5


def drifting(change: float, rounds: int, seed: int) -> list[float]:
    """Return the log ratios of a race in which the ratio falls by `change`."""
    generator = random.Random(seed)
    values = []
    for turn in range(rounds):
        drift = change * (1 - turn / (rounds - 1))
        values.append(math.log(3.0) + drift + generator.gauss(0, 0.002))
    return values


def test_warm_up_of_some_processes_is_inconclusive() -> None:
    """The mean of the changes hides it: they differ as much from each other as from zero."""
    rounds = [drifting(0.2 * (repeat % 3 == 0), 16, repeat) for repeat in range(8)]

    found = judge_ratio(AT_LEAST_TWICE, replace(controlled(rounds), delayed=SEEN))

    assert found.verdict == "INCONCLUSIVE"
    assert found.why.startswith("still changing by ")


def test_warm_up_of_races_of_two_rounds_is_inconclusive() -> None:
    rounds = [drifting(0.1, 2, repeat) for repeat in range(8)]

    found = judge_ratio(AT_LEAST_TWICE, controlled(rounds))

    assert found.verdict == "INCONCLUSIVE"
    assert found.why.startswith("still changing by 11 %")


def test_noise_of_one_process_is_no_warm_up() -> None:
    rounds = [drifting(0.0, 16, repeat) for repeat in range(8)]

    assert verdict(AT_LEAST_TWICE, controlled(rounds)) == "SUPPORTED"
