"""The table of a tuning: which treatments are faster, which are not, and what was not compared.

A treatment is a change to a training. Terminals, screens and reports show the same table.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tuilab.judging.judgement import Judgement
from tuilab.record.tuning.outcomes import Outcome
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.tuning.document import (
    ResultTuning,
    TunedArm,
    TunedCombination,
    TunedRatio,
    TunedTreatment,
)
from tuilab.text.display import brief, brief_beside, join_first, plural, show
from tuilab.text.words import format_number, seconds

_LEARNING = {"same": "the same", "rounding": "rounding", "other rounding": "not shown"}
_MOST_SPAN = 1e4  # of an interval as a ratio; a wider one says no more than its width
_LEAST_MEMORY_SHARE = 0.01  # processes differ by so much without any treatment
_INAPPLICABLE = (Outcome.NOT_APPLICABLE, Outcome.ALREADY_SET)
NOT_APPLICABLE = "not applicable"  # heading of the last section
# Words of outcomes for people, in which the outcome itself would say too little.
_WORDS: dict[str, str] = {
    Verdict.SUPPORTED: "faster",
    Verdict.REFUTED: "slower",
    Verdict.WEAKER: "less than claimed",
    Verdict.NO_DIFFERENCE: "no meaningful difference",
    Verdict.INCONCLUSIVE: "not decided",
    Verdict.INVALID: "invalid",
    Verdict.NOT_TESTABLE: "not testable here",
    Outcome.LEARNING_NOT_SHOWN: "faster, but learning not shown",
    Outcome.NOT_APPLICABLE: "not applicable",
    Outcome.ALREADY_SET: "already set",
    Outcome.OUT_OF_MEMORY: "out of memory",
    Outcome.OVER_TIME: "over time",
    Outcome.FAILED: Outcome.FAILED.lower(),
    Outcome.NOT_COMPARED: "not compared",
}
# Outcomes that are shown with the mark of a verdict.
_MARKS: dict[str, str] = {
    Outcome.LEARNING_NOT_SHOWN: Verdict.INCONCLUSIVE,
    Outcome.NOT_APPLICABLE: Verdict.NOT_TESTABLE,
    Outcome.ALREADY_SET: Verdict.NOT_TESTABLE,
    Outcome.NOT_COMPARED: Verdict.NOT_TESTABLE,
    Outcome.OUT_OF_MEMORY: Verdict.REFUTED,
    Outcome.OVER_TIME: Verdict.REFUTED,
    Outcome.FAILED: Verdict.REFUTED,
}
MACHINE_NOTE = (
    "These results hold for this machine, with this command. Tune again on another GPU or CPU, or"
    " with another batch size."
)


@dataclass(frozen=True)
class TuningRow:
    """A treatment or a combination in the table; texts are as the run recorded them."""

    arm: TunedArm
    title: str
    mark: str  # the verdict whose mark it has; empty while nothing is known
    outcome: str  # in words
    name: str = ""  # of a treatment, as in --only
    rank: str = ""  # of a treatment that is faster, such as "2"
    faster: str = ""  # the estimate with its interval
    learning: str = ""
    memory: str = ""
    change: str = ""  # with its place
    reason: str = ""  # of the outcome
    details: tuple[str, ...] = ()  # sentences below the row


@dataclass(frozen=True)
class TuningSection:
    """Rows of the table below a heading."""

    heading: str
    rows: tuple[TuningRow, ...]


def sections_of(
    tuning: ResultTuning, interim: Mapping[str, Judgement] | None = None
) -> list[TuningSection]:
    """Return the sections of the table, the winners first; empty sections are left out.

    `interim` has, by arm, the judgement that its claim would get if the run ended now.
    """
    judgements = interim or {}
    winners = find_winners(tuning)
    ranks = {winner.arm: str(number) for number, winner in enumerate(winners, 1)}
    compared: list[TunedTreatment] = []
    unknown: list[TunedTreatment] = []
    others: list[TunedTreatment] = []
    inapplicable: list[TunedTreatment] = []
    for treatment in tuning.treatments:
        if treatment.arm in ranks or is_measured_bound(treatment):
            continue
        if treatment.outcome is None:
            unknown.append(treatment)
        elif _has_estimate(treatment):
            compared.append(treatment)
        elif treatment.outcome in _INAPPLICABLE:
            inapplicable.append(treatment)
        else:
            others.append(treatment)
    compared.sort(key=_order_by_estimate)
    unknown.sort(key=lambda treatment: _order_by_interim(treatment, judgements))
    combined = [_combined_row(arm, ranks, judgements) for arm in tuning.combinations]
    sections = [
        ("faster", [_winner_row(winner, ranks[winner.arm]) for winner in winners]),
        ("combined", combined),
        ("no result yet", [_unknown_row(arm, judgements) for arm in unknown]),
        ("compared, no gain shown", [_compared_row(arm) for arm in compared]),
        ("not compared", [_other_row(arm) for arm in others]),
        (NOT_APPLICABLE, [_other_row(arm) for arm in inapplicable]),
    ]
    return [TuningSection(heading, tuple(rows)) for heading, rows in sections if rows]


def find_winners(tuning: ResultTuning) -> list[TunedTreatment]:
    """Return the treatments that are faster, the best first.

    Treatments that are not shown to learn as well come after the others.
    """
    shown = []
    not_shown = []
    for treatment in tuning.treatments:
        if treatment.outcome == Verdict.SUPPORTED:
            shown.append(treatment)
        elif treatment.outcome == Outcome.LEARNING_NOT_SHOWN:
            not_shown.append(treatment)
    return sorted(shown, key=_order_by_estimate) + sorted(not_shown, key=_order_by_estimate)


def is_measured_bound(treatment: TunedTreatment) -> bool:
    """Say whether a treatment is a bound that was measured: it is no row, but a sentence."""
    return treatment.learns == "bound" and treatment.tried_ratio is not None


def _has_estimate(arm: TunedArm) -> bool:
    return arm.ratio is not None and arm.ratio.estimate is not None


def _order_by_estimate(treatment: TunedTreatment) -> float:
    """Return the key that sorts treatments by their gain, the largest first."""
    if treatment.ratio is None or treatment.ratio.estimate is None:
        return math.inf
    return -treatment.ratio.estimate


def _order_by_interim(treatment: TunedTreatment, interim: Mapping[str, Judgement]) -> float:
    """Return the key that sorts treatments without an outcome by their gain so far."""
    judgement = interim.get(treatment.arm)
    if judgement is not None and judgement.estimate is not None:
        return -judgement.estimate
    if treatment.tried_ratio is not None:
        return -treatment.tried_ratio
    return math.inf


# ---- rows


def _row(arm: TunedArm) -> TuningRow:
    """Return the row of an arm without its rank and its details."""
    outcome = arm.outcome or ""
    return TuningRow(
        arm=arm,
        title=arm.title,
        mark=mark_of(outcome),
        outcome=_WORDS.get(outcome, outcome.lower()),
        faster=describe_ratio(arm.ratio),
        learning=_LEARNING.get(arm.learns, ""),
        memory=describe_memory(arm),
        reason=arm.why,
    )


def mark_of(outcome: str) -> str:
    """Return the verdict whose mark an outcome has; empty while nothing is known."""
    return _MARKS.get(outcome, outcome)


def _winner_row(treatment: TunedTreatment, rank: str) -> TuningRow:
    row = replace(_row(treatment), rank=rank, change=describe_change(treatment))
    if treatment.outcome == Verdict.SUPPORTED:
        row = replace(row, reason="")  # the numbers are reason enough
    return replace(row, details=_without_empty([_describe_compilation(treatment)]))


def _combined_row(
    combined: TunedCombination, ranks: Mapping[str, str], interim: Mapping[str, Judgement]
) -> TuningRow:
    """Return the row of a combination, whose title has the ranks of its parts if all have one."""
    row = _row(combined)
    details = []
    if combined.over_best is not None and combined.over_best.estimate is not None:
        details.append(
            f"{describe_ratio(combined.over_best)} against {_name_of(combined.best, ranks)}"
            f" alone: {_WORDS.get(combined.over_best.verdict or '', NOT_JUDGED)}"
        )
    for arm, reason in combined.left_out.items():
        details.append(f"without {_name_of(arm, ranks)}: {reason}")
    if combined.outcome == Verdict.SUPPORTED:
        row = replace(row, reason="")
    if combined.outcome is None:
        row = replace(row, faster=_describe_interim(combined.arm, interim))
    title = row.title
    if all(arm in ranks for arm in combined.parts):
        title = f"{' + '.join(ranks[arm] for arm in combined.parts)} together"
    return replace(row, title=title, details=_without_empty(details))


def _name_of(arm: str, ranks: Mapping[str, str]) -> str:
    """Return a winner as its number in the table; its arm if it has none."""
    return f"number {ranks[arm]}" if arm in ranks else arm


def _unknown_row(treatment: TunedTreatment, interim: Mapping[str, Judgement]) -> TuningRow:
    """Return the row of a treatment without an outcome, with what is known so far."""
    row = _row(treatment)
    words = _describe_interim(treatment.arm, interim)
    if words:
        return replace(row, faster=words)
    if treatment.tried_ratio is not None:
        return replace(row, faster=f"{brief(treatment.tried_ratio)}x in one process")
    return replace(row, faster="")


def _describe_interim(arm: str, interim: Mapping[str, Judgement]) -> str:
    """Return the estimate of an arm so far; empty if nothing is known."""
    if arm not in interim:
        return ""
    return interim_ratio_words(interim[arm])


def interim_ratio_words(judgement: Judgement) -> str:
    """Return the estimate of a judgement with its interval; empty if there is none."""
    if judgement.estimate is None:
        return ""
    return _spell_ratio(judgement.estimate, judgement.low, judgement.high)


def _compared_row(treatment: TunedTreatment) -> TuningRow:
    row = _row(treatment)
    if treatment.outcome == Verdict.INVALID:
        row = replace(row, learning="n/a")
    return replace(row, details=_without_empty([_describe_compilation(treatment)]))


def _other_row(treatment: TunedTreatment) -> TuningRow:
    """Return the row of a treatment that was not compared, with the reason."""
    row = replace(_row(treatment), name=treatment.name, learning="", memory="", faster="")
    details = [_describe_compilation(treatment)]
    if treatment.tried_ratio is not None:
        words = f"{brief(treatment.tried_ratio)}x"
        if words not in treatment.why:
            details.insert(0, f"{words} in one process")
    return replace(row, details=_without_empty(details))


def _without_empty(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(sentence for sentence in sentences if sentence)


# ---- words


def describe_ratio(ratio: TunedRatio | None) -> str:
    """Return a gain as `1.55x [1.41, 1.7]`; empty if none was estimated.

    The clock is named if it is not the wall clock.
    """
    if ratio is None or ratio.estimate is None:
        return ""
    words = _spell_ratio(ratio.estimate, ratio.low, ratio.high)
    if ratio.measure == "cpu":
        words += " CPU"
    return words


def _spell_ratio(estimate: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"{brief(estimate)}x, no interval"
    if not (low > 0 and high / low < _MOST_SPAN):  # an interval of two repeats may be absurd
        return f"{brief(estimate)}x [too wide]"
    return f"{brief(estimate)}x [{brief_beside(1.0, low)}, {brief_beside(1.0, high)}]"


def describe_memory(arm: TunedArm) -> str:
    """Return how much more memory an arm needs at its peak than the unchanged script."""
    if arm.peak_bytes is None or arm.base_peak_bytes is None:
        return "n/a"
    difference = arm.peak_bytes - arm.base_peak_bytes
    if abs(difference) < _LEAST_MEMORY_SHARE * arm.base_peak_bytes or not difference:
        return "within 1 %"
    sign = "+" if difference > 0 else "-"
    return sign + format_number(abs(difference), "bytes", 3)


def describe_change(treatment: TunedTreatment) -> str:
    """Return the change to the script with its place: `train.py:14: DataLoader(...)`."""
    if not treatment.change:
        return ""
    if not treatment.file:
        return treatment.change
    place = treatment.file.rpartition("/")[2]
    if treatment.line:
        place += f":{treatment.line}"
    return f"{place}: {treatment.change}"


def _describe_compilation(treatment: TunedTreatment) -> str:
    """Return how long compiling took, and from which step it pays; empty without torch.compile."""
    if treatment.graphs is None:
        return ""
    words = [plural(treatment.graphs, "graph")]
    if treatment.compile_s is not None:
        words.append(f"compiled in {seconds(treatment.compile_s)}")
    if treatment.pays_from_step is not None:
        words.append(f"pays from step {treatment.pays_from_step:,} on")
    return ", ".join(words)


def describe_watching(tuning: ResultTuning) -> str:
    """Return what one step of the unchanged script takes; empty until it was watched.

    It is the time in the comparison, if there was one, because one process alone may be slow.
    """
    if tuning.steps is None or tuning.step_s is None:
        return ""
    step_s = tuning.base_step_s or tuning.step_s
    words = f"unchanged script: {seconds(step_s)} a step"
    parts = sorted(tuning.parts.items(), key=lambda part: -part[1])
    if parts:
        shares = [f"{show(name, 40)} {share:.0f} %" for name, share in parts]
        words += f" ({', '.join(shares)})"
    return f"{words}; each process ends after {plural(tuning.steps, 'step')}"


def describe_bounds(tuning: ResultTuning) -> list[str]:
    """Return a sentence for each measured bound: how fast a step is without what it takes away."""
    sentences = []
    for treatment in tuning.treatments:
        if is_measured_bound(treatment):
            ratio = max(treatment.tried_ratio or 0.0, 1.0)  # a lower one is chance
            sentences.append(
                f"{show(treatment.title, 60)}: {brief(ratio)}x (one process, so a rough bound for"
                " what faster loading can gain)"
            )
    return sentences


def describe_files(paths: Sequence[str], most: int) -> str:
    """Return the first of some files, and how many there are."""
    return join_first([show(path, 200) for path in paths[:most]], most, len(paths))
