"""Which winners of a comparison are combined."""

from typing import Any

from tuilab.commands.tune.combination import combine
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import LEARNING_DOUBT


def summary_of(*names: str) -> RunSummary:
    """Return a run whose plan has these treatments; bf16 rounds otherwise."""
    summary = RunSummary()
    for name in names:
        learns: events.Learning = "other rounding" if name == "bf16" else "rounding"
        planned = events.TreatmentPlanned(arm=name, name=name, title=name, learns=learns)
        summary.tuning.treatments[name] = planned
    return summary


def verdict(key: str, word: str, estimate: float = 1.3) -> events.VerdictReached:
    return events.VerdictReached(
        text=key,
        key=key,
        verdict=word,
        rule="tuilab-7",
        estimate=estimate,
        low=estimate - 0.1,
        high=estimate + 0.1,
        why=LEARNING_DOUBT if word == "INCONCLUSIVE" else "",
    )


def parts_of(words: dict[str, Any]) -> list[list[str]]:
    """Return the parts of each combination of treatments with these verdicts."""
    verdicts = {name: verdict(name, word) for name, word in words.items()}
    return [combined.parts for combined in combine(summary_of(*words), verdicts)]


def test_supported_treatments_are_combined_in_a_fixed_order() -> None:
    assert parts_of({"compile": "SUPPORTED", "workers": "SUPPORTED"}) == [["workers", "compile"]]


def test_one_that_only_rounds_otherwise_gets_a_combination_of_its_own() -> None:
    words = {"fused": "SUPPORTED", "workers": "SUPPORTED", "bf16": "INCONCLUSIVE"}

    assert parts_of(words) == [["workers", "fused"], ["workers", "bf16", "fused"]]


def test_a_faster_treatment_that_learns_otherwise_is_never_combined() -> None:
    assert parts_of({"workers": "SUPPORTED", "bf16": "INVALID"}) == []


def test_treatments_of_one_group_are_not_combined() -> None:
    assert parts_of({"fused": "SUPPORTED", "foreach": "SUPPORTED"}) == []
