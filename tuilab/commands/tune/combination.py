"""Choose which winners of a comparison are combined.

The parts of a combination come in the order of the catalogue. Of several treatments that exclude
each other, such as two numbers of workers, the fastest is combined.

There are up to two combinations: one of the treatments whose claim is SUPPORTED, and, if others are
faster but round otherwise, one with these as well.
"""

from collections.abc import Mapping, Sequence

from tuilab.commands.tune.planning.treatments import CATALOGUE
from tuilab.record.events import Learning, TreatmentPlanned, TuningCombined, VerdictReached
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import is_only_learning_open
from tuilab.record.verdicts import Verdict

COMBINED = "combined"
COMBINED_ROUNDING = "combined-other-rounding"

# From what changes learning least to what changes it most.
_LEARNING: tuple[Learning, ...] = ("same", "rounding", "other rounding")


def combine(summary: RunSummary, verdicts: Mapping[str, VerdictReached]) -> list[TuningCombined]:
    """Return the combinations of the winners; none if there are fewer than two winners."""
    supported = []
    otherwise = []
    for arm, planned in summary.tuning.treatments.items():
        verdict = verdicts.get(arm)
        if verdict is None:
            continue
        if verdict.verdict == Verdict.SUPPORTED:
            supported.append(planned)
        elif is_only_learning_open(verdict, planned.learns):
            otherwise.append(planned)
    combinations = []
    first = _combine_arms(COMBINED, supported, verdicts)
    if first:
        combinations.append(first)
    if otherwise:
        second = _combine_arms(COMBINED_ROUNDING, [*supported, *otherwise], verdicts)
        if second:
            combinations.append(second)
    return combinations


def group_of(planned: TreatmentPlanned) -> str:
    """Return the name of the treatments that exclude each other; its own name if none does."""
    return CATALOGUE[planned.name].group or planned.name


def _combine_arms(
    name: str, winners: Sequence[TreatmentPlanned], verdicts: Mapping[str, VerdictReached]
) -> TuningCombined | None:
    """Return the combination of these treatments; None if fewer than two go together."""

    def gain(planned: TreatmentPlanned) -> float:
        return verdicts[planned.arm].estimate or 0.0

    parts: dict[str, TreatmentPlanned] = {}  # by group
    left_out = {}
    for planned in sorted(winners, key=gain, reverse=True):
        group = group_of(planned)
        if group in parts:
            left_out[planned.arm] = f"it excludes {parts[group].arm}, which was faster"
        else:
            parts[group] = planned
    if len(parts) < 2:
        return None
    best = next(iter(parts.values()))
    order = list(CATALOGUE)
    in_order = sorted(parts.values(), key=lambda planned: order.index(planned.name))
    learns = max((planned.learns for planned in in_order), key=_LEARNING.index)
    return TuningCombined(
        arm=name,
        parts=[planned.arm for planned in in_order],
        best=best.arm,
        learns=learns,
        left_out=left_out,
    )
