"""What a treatment of a tuning has come to, and how far the tuning is: both from its record alone."""

from pathlib import Path
from typing import Any

import pytest

from tests.made_tuning import (
    COMMAND,
    combined,
    declared,
    make_tuning,
    plan,
    planned,
    raced,
    running_tuning,
    stopped_tuning,
    tried,
    verdict,
    whole_tuning,
)
from tuilab.record import events
from tuilab.record.finding_words import repeat_words
from tuilab.record.live_run import Watch
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import LEARNING_DOUBT, Outcome, outcome_of
from tuilab.record.tuning.stages import budget_words, count_processes, is_tuning, stage_of
from tuilab.record.verdicts import Verdict

END = events.StateChanged(state="succeeded")


def summary_of(run_dir: Path) -> RunSummary:
    """Read a run."""
    watch = Watch(run_dir)
    watch.catch_up()
    watch.close()
    return watch.summary


def judged(root: Path, arm: str, *values: Any) -> str:
    """Return the outcome of an arm whose claim got this verdict, estimate and interval."""
    records = [*plan(), tried(arm), declared(arm), *raced([arm]), verdict(arm, *values), END]
    return outcome_of(arm, summary_of(make_tuning(root, *records))).outcome


def test_each_treatment_has_its_outcome(tmp_path: Path) -> None:
    summary = summary_of(whole_tuning(tmp_path))

    outcomes = {arm: outcome_of(arm, summary).outcome for arm in summary.tuning.treatments}
    assert outcomes == {
        "ideal-loader": Outcome.NOT_COMPARED,
        "workers-2": Verdict.SUPPORTED,
        "channels-last": Verdict.SUPPORTED,
        "bf16": Outcome.LEARNING_NOT_SHOWN,
        "compile": Verdict.INCONCLUSIVE,
        "foreach": Verdict.NO_DIFFERENCE,
        "gc-freeze": Verdict.INVALID,
        "jemalloc": Verdict.REFUTED,
        "attention-math": Outcome.OUT_OF_MEMORY,
        "prefetch-8": Outcome.OVER_TIME,
        "threads-8": Outcome.NOT_COMPARED,
        "ddp-static": Outcome.FAILED,
        "fused": Outcome.NOT_COMPARED,
        "pin": Outcome.NOT_APPLICABLE,
        "set-to-none": Outcome.ALREADY_SET,
    }
    assert outcome_of("combination", summary).outcome == Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("arm", "values", "outcome"),
    [
        ("bf16", ("INCONCLUSIVE", 1.2, 1.01, 1.4), Outcome.LEARNING_NOT_SHOWN),
        ("bf16", ("INCONCLUSIVE", 1.2, 1.0, 1.4), Verdict.INCONCLUSIVE),
        ("bf16", ("INCONCLUSIVE", 1.2, None, None), Verdict.INCONCLUSIVE),
        ("bf16", ("REFUTED", 0.9, 0.8, 0.95), Verdict.REFUTED),
        ("bf16", ("INVALID", 1.2, 1.1, 1.3), Verdict.INVALID),
        ("channels-last", ("INCONCLUSIVE", 1.2, 1.01, 1.4), Verdict.INCONCLUSIVE),
    ],
)
def test_only_other_rounding_that_is_faster_leaves_learning_open(
    tmp_path: Path, arm: str, values: tuple[Any, ...], outcome: str
) -> None:
    assert judged(tmp_path, arm, *values) == outcome


def test_a_treatment_of_a_disturbed_comparison_is_not_called_faster(tmp_path: Path) -> None:
    reached = verdict("bf16", "INCONCLUSIVE", 1.2, 1.01, 1.4, why="40 % of the blocks disturbed")
    records = [*plan(), tried("bf16"), declared("bf16"), *raced(["bf16"]), reached, END]

    outcome = outcome_of("bf16", summary_of(make_tuning(tmp_path, *records))).outcome
    assert outcome == Verdict.INCONCLUSIVE


def test_a_combination_with_other_rounding_leaves_learning_open(tmp_path: Path) -> None:
    record = events.TuningCombined(
        arm="both", parts=["workers-2", "bf16"], best="bf16", learns="other rounding"
    )
    reached = verdict("both", "INCONCLUSIVE", 1.5, 1.3, 1.7, why=LEARNING_DOUBT)
    run_dir = make_tuning(tmp_path, *plan(), record, declared("both"), reached, END)

    assert outcome_of("both", summary_of(run_dir)).outcome == Outcome.LEARNING_NOT_SHOWN


def test_a_stopped_tuning_says_which_treatment_was_not_tried(tmp_path: Path) -> None:
    summary = summary_of(stopped_tuning(tmp_path))

    assert outcome_of("workers-2", summary) == (
        Outcome.NOT_COMPARED,
        "the run ended before it was compared",
    )
    assert outcome_of("bf16", summary) == (
        Outcome.NOT_COMPARED,
        "the run ended before it was tried",
    )


def test_a_spent_budget_is_the_reason_if_a_treatment_was_not_tried(tmp_path: Path) -> None:
    spent = [
        events.BudgetSpent(repeats=0, stage="screening"),
        events.BudgetSpent(repeats=0, stage="comparison"),
    ]
    summary = summary_of(make_tuning(tmp_path, *plan(), tried("workers-2"), *spent, END))

    assert outcome_of("bf16", summary).why == "no budget was left to try it"
    assert outcome_of("workers-2", summary).why == "no budget was left to compare it"
    assert not summary.is_budget_spent


def test_a_running_tuning_has_no_outcome_yet(tmp_path: Path) -> None:
    summary = summary_of(running_tuning(tmp_path, 2))

    assert outcome_of("workers-2", summary) == ("", "")
    assert outcome_of("attention-math", summary).outcome == Outcome.OUT_OF_MEMORY


def test_a_process_that_fails_in_the_comparison_ends_its_treatment(tmp_path: Path) -> None:
    late = tried("compile", outcome="OUT OF MEMORY", why="2 GiB were missing")
    records = [*plan(), tried("compile"), declared("compile"), *raced(["compile"]), late]
    run_dir = make_tuning(
        tmp_path, *records, verdict("compile", "NOT TESTABLE HERE", None, None, None), END
    )

    assert outcome_of("compile", summary_of(run_dir)) == ("OUT OF MEMORY", "2 GiB were missing")


def test_the_stage_and_the_processes_follow_from_the_record(tmp_path: Path) -> None:
    running = events.StateChanged(state="running")
    stages: list[list[events.Event]] = [
        [running],
        plan(),
        [tried("ideal-loader"), tried("bf16")],
        raced(["bf16"]),
        combined(),
    ]
    words = []
    for count in range(1, len(stages) + 1):
        records = [record for stage in stages[:count] for record in stage]
        words.append(repeat_words(summary_of(make_tuning(tmp_path / str(count), *records))))

    assert words == [
        "watching, 0 processes",
        "screening, 2 processes",
        "screening, 4 processes",
        "comparison, 7 processes",
        "combination, 12 processes",
    ]


def test_a_later_record_of_a_treatment_keeps_what_was_measured(tmp_path: Path) -> None:
    early = tried("compile", did=["2 graphs"])
    late = events.TreatmentTried(arm="compile", outcome="NOT COMPARED", why="no budget")
    summary = summary_of(make_tuning(tmp_path, *plan(), early, late))

    record = summary.tuning.tried["compile"]
    assert (record.outcome, record.why) == ("NOT COMPARED", "no budget")
    assert (record.did, record.ratio, record.graphs) == (["2 graphs"], 1.05, 2)
    assert record.peak_bytes == early.peak_bytes
    assert count_processes(summary) == 3  # the later record is about no process


def test_an_ended_tuning_counts_processes_instead_of_planned_repeats(tmp_path: Path) -> None:
    summary = summary_of(whole_tuning(tmp_path))

    assert repeat_words(summary) == f"{count_processes(summary)} processes"
    assert stage_of(summary) == "combination"


@pytest.mark.parametrize(
    ("budget_s", "words"),
    [
        (900.0, "13:20 of the budget left"),
        (60.0, "0 s of the budget left"),
        (None, ""),
        (float("inf"), ""),
    ],
)
def test_the_rest_of_the_budget_is_never_negative(
    tmp_path: Path, budget_s: float | None, words: str
) -> None:
    summary = summary_of(make_tuning(tmp_path, budget_s=budget_s))

    assert budget_words(summary, 100.0) == words


def test_a_scenario_of_the_topic_tune_is_no_tuning(tmp_path: Path) -> None:
    summary = summary_of(make_tuning(tmp_path, planned("workers-2"), command=[]))

    assert not is_tuning(summary)
    assert is_tuning(summary_of(make_tuning(tmp_path / "own", command=COMMAND)))


def test_a_tuning_has_no_table_of_arms(tmp_path: Path) -> None:
    assert summary_of(whole_tuning(tmp_path)).figures == {}
