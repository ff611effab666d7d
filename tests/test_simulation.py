"""The rules on simulated boxes: how often a verdict is false, and how often a difference is seen.

tests/simulated_machines.py has the boxes. A rate may be two standard errors above its level; the long form, with `-m slow`, has small ones.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest

from tests.simulated_machines import (
    CLAIMS,
    MACHINES,
    PROCESSES,
    QUIET,
    count_false_rates,
    declare_claim,
    drift,
    luck,
    measure_false_rates,
    noise,
    offset,
    reach_simulated_verdict,
    simulate_command_runs,
    simulate_runs,
    slow_warm_up,
    states,
)
from tests.slow_cases import slow_cases
from tests.test_verdict import LOOKS, recorded
from tuilab.commands.ab.forecast import smallest_seen
from tuilab.judging import stats
from tuilab.judging.evidence import Evidence
from tuilab.judging.interim_analyses import InterimAnalysis, decisive_analysis, latest_analysis
from tuilab.judging.ratio import judge_ratio, judge_ratios
from tuilab.record.verdicts import DECISIONS, Verdict

SEEN = [[math.log(1.05)]] * 6
# The base is timed twice in a round, so that the ratio to it varies less than that of two single arms.
ONE_OF_TWO = math.sqrt(4 / 3)
FALSE_AT_THE_MARGIN = frozenset({Verdict.NO_DIFFERENCE, Verdict.WEAKER, Verdict.SUPPORTED})


def at_most(level: float, count: int) -> float:
    """Return the highest rate that is no sign of a level above `level`: two standard errors more."""
    return level + 2 * math.sqrt(level * (1 - level) / count)


def rarely(*cases: tuple[float, ...]) -> list[Any]:
    """Return the same for cases of several values as `slow_cases` for those of one."""
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]


def verdicts(evidence: Sequence[Evidence], bound: float) -> Counter[str]:
    return Counter(
        reach_simulated_verdict(declare_claim("at_least", bound), one) for one in evidence
    )


def share(found: Counter[str], *wanted: str) -> float:
    return sum(found[verdict] for verdict in wanted) / found.total()


# ---- false verdicts


@pytest.mark.parametrize(
    "box",
    [
        "quiet",
        "luck of the process",
        "first slot slower",
        "an instance is off by 0.5 %",
        "outliers",
    ],
)
def test_no_kind_of_claim_is_falsely_decided_more_often_than_it_may_be(box: str) -> None:
    """The short form: a rate of 20 % would be seen."""
    rates = measure_false_rates(MACHINES[box], 1, 100)

    assert [(name, rate) for name, rate in rates.items() if rate > at_most(0.05, 100)] == []


@pytest.mark.parametrize("repeats", [6, *slow_cases(12)])
@pytest.mark.parametrize(
    "box", ["quiet", *slow_cases(*(box for box in PROCESSES if box != "quiet"))]
)
def test_races_of_commands_need_no_known_delay_to_decide_seldom_falsely(
    box: str, repeats: int
) -> None:
    """Hardly ever no difference where there is one of 5 %: the spread of the processes says what they could have seen."""
    rates = count_false_rates(list(simulate_command_runs(PROCESSES[box], 3, 400, repeats=repeats)))
    other = [
        reach_simulated_verdict(declare_claim("at_least", 1.3), one)
        for one in simulate_command_runs(PROCESSES[box], 4, 400, repeats=repeats, ratio=1.05)
    ]

    assert [(name, rate) for name, rate in rates.items() if rate > at_most(0.05, 400)] == []
    assert other.count(Verdict.NO_DIFFERENCE) <= 400 * at_most(0.01, 400)


@pytest.mark.parametrize("repeats", [6, *slow_cases(12, 20)])
def test_what_is_foretold_of_a_race_of_commands_is_seen_four_times_in_five(repeats: int) -> None:
    look, count = decisive_analysis(repeats, []), 500
    ratio = math.exp(smallest_seen(look, 0.02))
    found = Counter(
        reach_simulated_verdict(declare_claim("at_least", 1.0), one, look)
        for one in simulate_command_runs([noise(0.02)], 6, count, repeats=repeats, ratio=ratio)
    )

    # More often with many repeats: the first arm, which is timed twice in each, varies less than is foretold.
    assert 0.74 < found[Verdict.SUPPORTED] / count < 0.96


def test_equal_commands_on_a_quiet_box_come_out_as_no_meaningful_difference() -> None:
    found = Counter(
        reach_simulated_verdict(declare_claim("at_least", 1.3), one)
        for one in simulate_command_runs(PROCESSES["quiet"], 5, 200)
    )

    assert found[Verdict.NO_DIFFERENCE] >= 160


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"processes": 12, "rounds": 8}, {"rounds": 4}], ids=str)
@pytest.mark.parametrize("box", MACHINES)
def test_on_no_box_any_kind_of_claim_is_falsely_decided_more_often_than_it_may_be(
    box: str, shape: dict[str, int]
) -> None:
    """A standard error of 5 % is 0.7 % here."""
    rates = measure_false_rates(MACHINES[box], 2, 400, **shape)

    assert list(rates) == list(CLAIMS)
    assert [(name, rate) for name, rate in rates.items() if rate > at_most(0.05, 400)] == []


@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, *slow_cases(1.5, 2.0, 3.0, 4.0, 8.0)])
def test_whatever_moves_an_arm_against_itself_is_held_against_the_arms(size: float) -> None:
    """In every process alike, by so many standard errors: worst is what is hardly seen."""
    box = (luck(0.01), offset(size * 0.01 / math.sqrt(6)))
    found = verdicts(list(simulate_runs(box, 3, 600, rounds=2)), 1.0)

    assert share(found, "SUPPORTED", "REFUTED") <= at_most(0.05, 600)


@pytest.mark.parametrize(
    ("start", "rounds"), [(0.1, 30.0), *rarely((0.5, 10.0), (0.5, 20.0), (0.5, 50.0))]
)
def test_a_slow_warm_up_is_not_taken_for_a_difference(start: float, rounds: float) -> None:
    """Of 50 rounds; at its end there is none or hardly any."""
    found = verdicts(
        list(simulate_runs((QUIET, slow_warm_up(start, rounds)), 4, 60, rounds=50)), 1.03
    )

    assert share(found, "SUPPORTED", "WEAKER THAN CLAIMED") == 0


def test_where_nothing_changes_in_a_race_hardly_any_is_said_to_change() -> None:
    evidence = list(simulate_runs((noise(0.05),), 5, 400, rounds=16))
    said = sum(
        judge_ratio(declare_claim("at_least", 1.3), one).why.startswith("still changing")
        for one in evidence
    )

    assert said <= 400 * at_most(0.01, 400)


@pytest.mark.parametrize(
    ("share_of", "least", "most"), [(0.1, 0.4, 0.65), *rarely((0.3, 0.05, 0.2))]
)
def test_a_state_that_one_arm_seldom_has_is_missed_as_often_as_the_page_says(
    share_of: float, least: float, most: float
) -> None:
    """A known weakness: six processes of which none has it look like a box without it."""
    box = (QUIET, states(share_of, 0.2, 0))
    mean = share_of * 0.2  # of the log, over all processes
    found = verdicts(list(simulate_runs(box, 6, 400, ratio=1.3 * math.exp(-mean))), 1.3)

    assert least < share(found, "SUPPORTED", "WEAKER THAN CLAIMED") < most


def test_arms_that_are_disturbed_alike_are_seldom_said_not_to_be() -> None:
    draw = np.random.default_rng(7)
    marks = draw.integers(-1, 2, (400, 6, 16)).tolist()
    evidence = [Evidence(SEEN, delayed=SEEN, marks=one) for one in marks]
    said = sum(
        "disturbed more" in judge_ratio(declare_claim("at_least", 1.0), one).why for one in evidence
    )

    assert said <= 400 * at_most(0.01, 400)


PLAIN = {  # what may look plain and is not: the ratio is that of the bound
    "two states, one five times as slow": (QUIET, states(0.5, math.log(5))),
    "a tenth of the processes is thirty times as slow": (QUIET, states(0.1, math.log(30))),
    "heavy tails": (QUIET, luck(1.0, 2)),
    "slow warm-up": (QUIET, slow_warm_up(3.0, 10)),
    "slow warm-up, half hidden": (noise(0.5), slow_warm_up(3.0, 10)),
    "drift": (noise(0.3), drift(3.0, 2)),
}


@pytest.mark.parametrize(
    ("processes", "count"), [(1, 60), (2, 60), (6, 60), *rarely((3, 1000), (6, 1000), (12, 1000))]
)
@pytest.mark.parametrize("box", PLAIN)
def test_on_which_side_of_a_bound_a_noisy_ratio_lies_by_all_signs_is_seldom_said_falsely(
    box: str, processes: int, count: int
) -> None:
    """On the bound, where each word of it is false: at 1, 2 and 3 processes some 20, 10 and 3 % of runs look plain."""
    found = simulate_runs(PLAIN[box], 17, count, processes=processes, disturbed_share=0.5)
    said = sum(
        "by all signs" in judge_ratio(declare_claim("at_least", 1.0), one).why for one in found
    )

    assert said <= count * at_most(0.01, count)


# ---- one process


@pytest.mark.parametrize("size", [0.0, 0.01, *slow_cases(0.005, 0.03)])
@pytest.mark.parametrize("bound", [1.0, 1.3])
def test_one_process_is_wrong_no_more_often_than_several_where_its_luck_is_known(
    size: float, bound: float
) -> None:
    """However many rounds agree, the next process does not: at 1 % it would be 26 and 49 %."""
    evidence = list(
        simulate_runs((QUIET, luck(size)), 8, 600, processes=1, ratio=bound, process_sd=size)
    )

    assert share(
        verdicts(evidence, bound), "SUPPORTED", "REFUTED", "WEAKER THAN CLAIMED"
    ) <= at_most(0.05, 600)


def test_one_process_of_a_box_that_was_never_calibrated_tells_what_is_large() -> None:
    found = {
        ratio: verdicts(
            list(simulate_runs((QUIET, luck(0.02)), 9, 100, processes=1, ratio=ratio)), 1.0
        )
        for ratio in (1.03, 2.0)
    }

    assert share(found[1.03], "SUPPORTED") == 0
    assert share(found[2.0], "SUPPORTED") == 1


# ---- whoever watches


def looked_at(looks: tuple[int, ...], planned: int, most: int) -> dict[int, InterimAnalysis]:
    """Return the looks at a run that goes on until so many repeats, by the number of repeats that have ended."""
    analyses = {}
    for count in range(6, most + 1):
        run = recorded(count, 1.0, looks=looks, planned=planned, is_empty=True)
        analyses[count] = latest_analysis(run)
    return analyses


def ever(
    at: dict[int, InterimAnalysis],
    bound: float,
    ratio: float,
    spread: float,
    wanted: frozenset[Verdict],
    count: int,
) -> tuple[float, float]:
    """Return the share of runs that say what is wanted at one of their looks: by the rule, and at 95 % every time."""
    draw = np.random.default_rng(10).normal(math.log(ratio), spread, (count, max(at)))
    question = declare_claim("at_least", bound)
    planned = naive = 0
    for values in draw.tolist():
        parts = {
            n: Evidence([[value] for value in values[: len(look.workers or ())]], delayed=SEEN)
            for n, look in at.items()
        }
        planned += any(
            reach_simulated_verdict(question, parts[n], look) in wanted for n, look in at.items()
        )
        naive += any(reach_simulated_verdict(question, part) in wanted for part in parts.values())
    return planned / count, naive / count


@pytest.mark.parametrize(("looks", "planned"), [((), 7), ((), 10), ((), 12), ((), 20), (LOOKS, 40)])
def test_the_edges_of_the_looks_are_left_as_seldom_as_they_may_be(
    looks: tuple[int, ...], planned: int
) -> None:
    """By Student's t alone, so that many runs are soon drawn: a level of 5.3 % would be seen."""
    count = 60_000
    draw = np.random.default_rng(12).normal(size=(count, planned))
    has_left = np.zeros(count, bool)
    for repeats, look in looked_at(looks, planned, planned).items():
        if repeats in (looks or range(6, planned + 1)):
            part = draw[:, :repeats]
            distance = np.abs(part.mean(1)) / part.std(1, ddof=1) * math.sqrt(repeats)
            has_left |= distance > stats.t_quantile((1 + look.confidence(0.95)) / 2, repeats - 1)

    assert has_left.mean() <= at_most(0.05, count)


@pytest.mark.parametrize(
    ("repeats", "count"), [(12, 200), *rarely((8, 600), (12, 500), (20, 300), (40, 150))]
)
def test_who_watches_a_run_and_stops_when_it_suits_is_wrong_as_often_as_planned(
    repeats: int, count: int
) -> None:
    """The claim is that there is a difference, and there is none."""
    planned, naive = ever(looked_at((), repeats, repeats), 1.0, 1.0, 0.3, DECISIONS, count)

    assert planned <= at_most(0.05, count)
    assert naive > 0.06


@pytest.mark.parametrize(
    ("repeats", "count"), [(12, 200), *rarely((8, 600), (12, 500), (20, 300), (40, 150))]
)
def test_who_watches_does_not_get_no_difference_where_there_is_one_either(
    repeats: int, count: int
) -> None:
    """The difference is as large as the margin."""
    planned, _ = ever(looked_at((), repeats, repeats), 2.0, 1.03, 0.02, FALSE_AT_THE_MARGIN, count)

    assert planned <= at_most(0.05, count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "ratio", "spread", "wanted"),
    [(1.0, 1.0, 0.3, DECISIONS), (2.0, 1.03, 0.02, FALSE_AT_THE_MARGIN)],
)
def test_the_looks_of_a_budget_keep_the_confidence_that_stopping_when_significant_does_not(
    bound: float, ratio: float, spread: float, wanted: frozenset[Verdict]
) -> None:
    at = {count: look for count, look in looked_at(LOOKS, 40, 40).items() if count in LOOKS}
    planned, naive = ever(at, bound, ratio, spread, wanted, 200)

    assert planned <= at_most(0.05, 200)
    assert naive > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [7, 10, 12, 23, 35])
def test_when_the_time_is_over_the_last_look_keeps_the_confidence_wherever_it_is(
    repeats: int,
) -> None:
    """The looks on the way are as planned, and the end spends what is left."""
    at = {count: look for count, look in looked_at(LOOKS, 40, repeats).items() if count in LOOKS}
    at[repeats] = latest_analysis(
        recorded(repeats, 1.0, looks=LOOKS, is_budget_spent=True, is_empty=True)
    )
    planned, _ = ever(at, 1.0, 1.0, 0.3, DECISIONS, 1000)

    assert planned <= at_most(0.05, 1000)


@pytest.mark.parametrize(
    ("effect", "repeats"), [(1.5, 12.5), *rarely((1.0, 18.0), (2.0, 9.5), (3.0, 7.5))]
)
def test_a_budget_ends_early_where_the_effect_is_large(effect: float, repeats: float) -> None:
    """The effect is a multiple of the spread; five looks of O'Brien and Fleming took 16.3, 20, 15.8, 14.7."""
    at = {count: look for count, look in looked_at(LOOKS, 40, 40).items() if count in LOOKS}
    draw = np.random.default_rng(11).normal(effect * 0.05, 0.05, (200, 40)).tolist()

    def length(values: list[float]) -> int:
        for count, look in at.items():
            measured = Evidence([[value] for value in values[:count]], delayed=SEEN)
            if (
                reach_simulated_verdict(declare_claim("at_least", 1.0), measured, look)
                == Verdict.SUPPORTED
            ):
                return count
        return 40

    assert sum(map(length, draw)) / 200 < repeats


# ---- power


@pytest.mark.parametrize("ratio", [1.05, 1.2])
def test_a_quiet_box_sees_five_and_twenty_percent_every_time(ratio: float) -> None:
    found = [
        judge_ratio(declare_claim("at_least", 1.02), one)
        for one in simulate_runs((QUIET, luck(0.005)), 12, 200, processes=8, ratio=ratio)
    ]

    assert [one for one in found if one.verdict != "SUPPORTED"] == []


def test_on_a_quiet_box_an_arm_against_itself_is_no_meaningful_difference() -> None:
    """Nothing else but inconclusive, not even REFUTED, which would be true of a claim of 5 %."""
    found = verdicts(list(simulate_runs(MACHINES["first slot slower"], 13, 200)), 1.05)

    assert share(found, "NO MEANINGFUL DIFFERENCE") > 0.95
    assert found.keys() <= {"NO MEANINGFUL DIFFERENCE", "INCONCLUSIVE"}


@pytest.mark.parametrize("ratio", [1.05, 1.2])
@pytest.mark.parametrize(("processes", "power"), [(6, 0.74), (8, 0.77), (20, 0.8)])
def test_smallest_effect_is_seen_about_four_times_in_five(
    ratio: float, processes: int, power: float
) -> None:
    """The variation between processes is such that the effect is the smallest one.

    Few processes see it less often: their interval reaches further because they may be skewed.
    """
    size = (
        ONE_OF_TWO
        * math.log(ratio)
        / stats.smallest_effect(processes, 1 / math.sqrt(processes), 0.95)
    )
    evidence = [
        replace(one, same=[])
        for one in simulate_runs((luck(size),), 14, 500, processes=processes, rounds=2, ratio=ratio)
    ]
    found = [judge_ratio(declare_claim("at_least", 1.0), one) for one in evidence]
    promised = math.fsum(math.log1p(one.smallest_effect or 0) for one in found) / 500

    seen = sum(one.verdict == "SUPPORTED" for one in found) / 500
    assert seen == pytest.approx(power, abs=2.5 * math.sqrt(0.8 * 0.2 / 500))
    assert promised == pytest.approx(math.log(ratio), rel=0.06)


def test_as_many_repeats_as_are_said_to_be_needed_decide_four_times_in_five() -> None:
    needed = stats.units_needed(math.log(1.05), 0.08, 0.95)
    assert needed == 24
    evidence = [
        replace(one, same=[])
        for one in simulate_runs(
            (luck(ONE_OF_TWO * 0.08),), 15, 500, processes=24, rounds=2, ratio=1.05
        )
    ]

    assert share(verdicts(evidence, 1.0), "SUPPORTED") == pytest.approx(
        0.8, abs=2.5 * math.sqrt(0.8 * 0.2 / 500)
    )


# ---- what the rules protect from


def test_rounds_counted_as_units_would_mistake_the_luck_of_a_process_for_a_difference() -> None:
    """The same measurements, once as they were taken and once as if all rounds were of one process without any luck."""
    evidence = list(simulate_runs((noise(0.005), luck(0.1)), 16, 300, processes=8, rounds=8))
    pooled = [
        Evidence([list(chain(*zip(*one.rounds, strict=True)))], delayed=SEEN, process_sd=0.0)
        for one in evidence
    ]

    assert share(verdicts(evidence, 1.0), "SUPPORTED", "REFUTED") <= at_most(0.05, 300)
    assert share(verdicts(pooled, 1.0), "SUPPORTED", "REFUTED") > 0.3


@pytest.mark.parametrize(
    ("processes", "chance"), [(6, 2 / 64), (7, 2 / 128), (8, 2 / 256), (9, 2 / 512), (10, 2 / 1024)]
)
def test_two_bare_modes_decide_only_if_all_repeats_agree(processes: int, chance: float) -> None:
    """Counted exactly: a ratio that is only ever 5 % up or 5 % down fools Student's t alone in one run of eight."""
    decided = 0
    for pattern in range(2**processes):
        signs = [1 if pattern >> i & 1 else -1 for i in range(processes)]
        rounds = [[0.05 * sign + 1e-9 * i] for i, sign in enumerate(signs)]
        decided += (
            reach_simulated_verdict(declare_claim("at_least", 1.0), Evidence(rounds, delayed=SEEN))
            in DECISIONS
        )

    assert decided / 2**processes == chance


@pytest.mark.slow
def test_several_claims_together_keep_the_confidence_that_they_would_not_keep_alone() -> None:
    generator = random.Random(11)
    alone = together = 0
    for _ in range(500):
        claims = [
            (
                declare_claim("at_least", 2.0),
                Evidence([[math.log(2) + generator.gauss(0, 0.1)] for _ in range(8)]),
            )
            for _ in range(4)
        ]
        alone += any(reach_simulated_verdict(*one) in DECISIONS for one in claims)
        together += any(one.verdict in DECISIONS for one in judge_ratios(claims))

    assert together / 500 <= at_most(0.05, 500)
    assert alone / 500 > 0.15


def test_several_claims_together_keep_it_at_the_edge_of_the_margin() -> None:
    """None takes twice as long, which is sure, and each is as much longer as the margin: 10 % if the first made it a step."""
    draw = (
        np.random.default_rng(18)
        .normal(math.log(1.03), [[0.0003], [0.001], [0.01], [0.03]], (600, 4, 6))
        .tolist()
    )
    found = [
        judge_ratios(
            [
                (
                    declare_claim("at_least", 2.0),
                    Evidence([[value] for value in values], delayed=SEEN),
                )
                for values in claims
            ]
        )
        for claims in draw
    ]

    assert sum(
        any(one.verdict in FALSE_AT_THE_MARGIN for one in claims) for claims in found
    ) / 600 <= at_most(0.05, 600)
