"""Plan a tuning: one record for each treatment, with what it can gain, or why it is not tried."""

import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from tuilab.commands.tune.planning import (
    compilation,
    ddp,
    kernels,
    loader,
    memory_and_threads,
    optimizer,
    precision,
)
from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    RejectedTreatment,
    Situation,
)
from tuilab.commands.tune.planning.change import CallEdit, make_diff
from tuilab.commands.tune.planning.possible_gain import LEAST_GAIN, process_reach
from tuilab.commands.tune.planning.treatments import (
    CATALOGUE,
    IDEAL_LOADER,
    Treatment,
)
from tuilab.errors import UsageError
from tuilab.judging.intervals import UNKNOWN_SD
from tuilab.record.events import TreatmentPlanned
from tuilab.record.tuning.outcomes import Outcome
from tuilab.text.display import did_you_mean, join, show

_PLANS: dict[str, Callable[[Situation], Answer]] = {
    IDEAL_LOADER: loader.plan_ideal_loader,
    "workers": loader.plan_workers,
    "persistent": loader.plan_persistent,
    "prefetch": loader.plan_prefetch,
    "pin": loader.plan_pin,
    "fused": optimizer.plan_fused,
    "foreach": optimizer.plan_foreach,
    "set-to-none": optimizer.plan_set_to_none,
    "bf16": precision.plan_bf16,
    "tf32": precision.plan_tf32,
    "cudnn-benchmark": kernels.plan_cudnn_benchmark,
    "channels-last": kernels.plan_channels_last,
    "attention": kernels.plan_attention,
    "compile": compilation.plan_compile,
    "gc-freeze": memory_and_threads.plan_gc_freeze,
    "ddp-view": ddp.plan_view,
    "ddp-static": ddp.plan_static,
    "ddp-bucket": ddp.plan_bucket,
    "threads": memory_and_threads.plan_threads,
    "expandable-segments": memory_and_threads.plan_expandable_segments,
    "jemalloc": memory_and_threads.plan_jemalloc,
    "tcmalloc": memory_and_threads.plan_tcmalloc,
    "numa": memory_and_threads.plan_numa,
}
# The treatments that only make data arrive faster. They gain at most what the ideal loader gains.
# Pinned memory is not one of them: it makes copies to the GPU faster.
BOUNDED_BY_IDEAL_LOADER = ("workers", "persistent", "prefetch")
_MOST_TEXT = 4000  # characters of a path
_WITHOUT_BOUND = 2.0  # where a treatment without a bound is sorted: as if it gained so much


def check_names(names: Sequence[str]) -> None:
    """Raise UsageError if --only names something that is not a treatment."""
    for name in names:
        if name not in CATALOGUE:
            hint = did_you_mean(name, CATALOGUE) or f"; the treatments are {join(CATALOGUE)}"
            raise UsageError(f"--only: no treatment is named {show(name, 40)!r}{hint}")


def plan(situation: Situation, only: Collection[str] = ()) -> list[TreatmentPlanned]:
    """Return a record for each treatment, those that can gain the most first.

    The ideal loader is the first of them, as it bounds others. torch.compile is the last one that
    is tried; then come those that are not tried. If `only` names treatments, the others are left
    out, except the ideal loader if it bounds one of them.
    """
    wanted = set(only)
    if wanted.intersection(BOUNDED_BY_IDEAL_LOADER):
        wanted.add(IDEAL_LOADER)
    planned = []
    for name, treatment in CATALOGUE.items():
        if wanted and name not in wanted:
            continue
        for item in _PLANS[name](situation):
            if isinstance(item, RejectedTreatment):
                planned.append(_describe_rejected(name, treatment, item))
            else:
                planned.append(_describe_candidate(situation, name, treatment, item))
    return _sorted(planned)


def _sorted(planned: Sequence[TreatmentPlanned]) -> list[TreatmentPlanned]:
    return sorted(planned, key=_rank)


def _rank(record: TreatmentPlanned) -> tuple[bool, bool, bool, float]:
    """Return what sorts a record: `sorted` keeps the order of the catalogue among equals.

    Compiling comes last, because its process may take longer than all others together. A treatment
    without a bound comes before those that can only gain little.
    """
    return (
        record.outcome != "",
        record.name != IDEAL_LOADER,
        record.name == "compile",
        -(record.at_most or _WITHOUT_BOUND),
    )


def _arm_of(name: str, value: str) -> str:
    """Return the name of the arm of a treatment, which must differ from that of other values."""
    return f"{name}-{value}" if value else name


def _describe_rejected(
    name: str, treatment: Treatment, rejected: RejectedTreatment
) -> TreatmentPlanned:
    """Return the record of a treatment that is not tried."""
    title = treatment.title
    if rejected.value:
        title += f" ({rejected.value})"
    return TreatmentPlanned(
        arm=_arm_of(name, rejected.value),
        name=name,
        title=title,
        learns=treatment.learns,
        lesson=treatment.lesson,
        memory=treatment.memory,
        outcome=rejected.outcome,
        why=rejected.why,
    )


def _describe_candidate(
    situation: Situation, name: str, treatment: Treatment, candidate: ApplicableTreatment
) -> TreatmentPlanned:
    """Return the record of a treatment that applies. If it gains too little, it is not compared."""
    record = TreatmentPlanned(
        arm=_arm_of(name, _shown_value(name, candidate.value)),
        name=name,
        title=candidate.title or treatment.title,
        # Its process also checks what variables and words before the command have done.
        treatments=[f"{name}={candidate.value}" if candidate.value else name],
        env=candidate.env,
        prefix=candidate.prefix,
        learns=treatment.learns,
        change=candidate.change,
        diff=make_diff(candidate.edits, situation.sources),
        lesson=candidate.lesson or treatment.lesson,
        at_most=candidate.gain.at_most,
        at_most_why=candidate.gain.whole_why,
        memory=candidate.memory or treatment.memory,
    )
    if candidate.edits:
        edit = candidate.edits[0]
        record.file = show(edit.file, _MOST_TEXT)
        if isinstance(edit, CallEdit):
            record.line = edit.place.line
    return _without_small_gain(record, candidate.gain.why)


def _shown_value(name: str, value: str) -> str:
    """Return the value in the name of an arm. Users need not know that of the ideal loader."""
    return "" if name == IDEAL_LOADER else value


def _without_small_gain(record: TreatmentPlanned, reason: str) -> TreatmentPlanned:
    """Return a record; if its gain is certainly too small, with the outcome NOT COMPARED."""
    if record.outcome or record.at_most is None or record.at_most >= LEAST_GAIN:
        return record
    ratio = f"{record.at_most:.2f}"
    if float(ratio) >= LEAST_GAIN:  # only more digits show that it is smaller
        ratio = f"{record.at_most:.4f}"
    why = f"{reason}, so at most {ratio}x"
    return msgspec.structs.replace(record, outcome=Outcome.NOT_COMPARED, why=why)


def refine(
    planned: Sequence[TreatmentPlanned], ideal_ratio: float, process_sd: float = UNKNOWN_SD
) -> list[TreatmentPlanned]:
    """Return the plan after the ideal loader was tried in one process.

    `ideal_ratio` is the time of a step of the base divided by that with the ideal loader. Both come
    from one process each. Either may be off by `process_sd` because processes differ, so the upper
    end of the interval is larger than the ratio: 1.2 times as large if the standard deviation is
    the usual 5 %. This lowers the bound of the treatments of data if it is above that. It drops
    such a treatment only if the ideal loader was clearly slower, or if a calibration has shown that
    processes of this machine hardly differ. Without that, one process cannot exclude a gain of 3 %.
    """
    if not 0 < ideal_ratio < float("inf"):
        return list(planned)
    bound = max(1.0, ideal_ratio * _factor(process_sd))
    refined = []
    for record in planned:
        is_bounded = record.name in BOUNDED_BY_IDEAL_LOADER and not record.outcome
        if is_bounded and (record.at_most is None or record.at_most > bound):
            why = f"a loader that repeats its first batches was {ideal_ratio:.2f}x as fast"
            lower = msgspec.structs.replace(record, at_most=bound, at_most_why=why)
            record = _without_small_gain(lower, why)
        refined.append(record)
    return _sorted(refined)


def _factor(process_sd: float) -> float:
    """Return by which factor the ratio of two processes may be too small."""
    return math.exp(process_reach(process_sd))
