"""Folds the records of a journal into a summary, by a pure function.

`fold` is incremental: a follower passes only new records. The order between streams does not
matter, so any stream may be read first. Each kind of record has a function that changes the
summary; `stream` is the name of the stream, which is that of its writer.
"""

from collections.abc import Callable, Iterable
from itertools import compress, groupby
from operator import itemgetter, not_
from typing import Any

from tuilab.record import events
from tuilab.record.events import Unknown
from tuilab.record.folding.fold_box import (
    environment_recorded,
    gpu_found,
    gpu_held,
    gpu_shared,
    sampled,
    sampler_ended,
    unavailable,
    xid_reported,
)
from tuilab.record.folding.fold_claims import (
    claim_declared,
    claim_measured,
    claim_not_testable,
    question_answered,
    setting_raced,
    verdict_reached,
)
from tuilab.record.folding.fold_races import (
    block_timed,
    cores_awaited,
    cores_measured,
    device_used,
    first_called,
    race_finished,
    race_started,
)
from tuilab.record.folding.fold_run import (
    axes_named,
    box_lacked,
    budget_spent,
    figure_shown,
    image_shown,
    leftovers_ended,
    nothing_timed,
    output_captured,
    progressed,
    rank_placed,
    run_described,
    run_started,
    scenario_failed,
    scenario_finished,
    span_shown,
    stage_entered,
    state_changed,
    streams_counted,
    worker_exited,
    worker_started,
)
from tuilab.record.folding.fold_tuning import (
    treatment_planned,
    treatment_tried,
    tuning_combined,
    tuning_planned,
)
from tuilab.record.folding.limits import keep
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.series import add_block, add_logged
from tuilab.record.summary import RunSummary


def fold(items: Iterable[tuple[str, Item]], summary: RunSummary | None = None) -> RunSummary:
    """Fold (stream, item) pairs into a summary, a new one by default, and return it."""
    summary = summary or RunSummary()
    for stream, group in groupby(items, itemgetter(0)):
        fold_stream(summary, stream, [item for _, item in group])
    return summary


def fold_stream(summary: RunSummary, stream: str, items: list[Item]) -> None:
    """Fold items of one stream; many items at once are several times as fast as one at a time."""
    # Most items are Logged records, and these are folded together.
    are_logged = [kind is events.Logged for kind in map(type, items)]
    logged: list[Any] = list(compress(items, are_logged))
    if logged:
        add_logged(summary.series, stream, logged)
        times = [event.t for event in logged]
        _note_times(summary, len(times), min(times), max(times))
    if len(logged) < len(items):
        _fold_others(summary, stream, compress(items, map(not_, are_logged)))


def _fold_others(summary: RunSummary, stream: str, items: Iterable[Item]) -> None:
    """Fold the records that are not `Logged`, and count damaged, missing and unknown ones."""
    for item in items:
        if isinstance(item, Corrupt):
            summary.damage.corrupt_count += 1
            keep(summary.damage.corrupt, item)
        elif isinstance(item, Gap):
            missing = summary.damage.missing.get(stream, 0)
            summary.damage.missing[stream] = missing + item.missing
        else:
            if isinstance(item, Unknown):
                summary.damage.unknown_count += 1
            else:
                fold_record = _FOLDS[type(item)]
                fold_record(summary, stream, item)
            _note_times(summary, 1, item.t, item.t)


def _note_times(summary: RunSummary, count: int, first: int, last: int) -> None:
    """Count records, and note the times of the first and the last of all."""
    summary.records += count
    summary.last_t = max(summary.last_t, last)
    summary.first_t = min(summary.first_t or first, first)


_FOLDS: dict[type, Callable[[RunSummary, str, Any], None]] = {
    events.RunStarted: run_started,
    events.RunDescribed: run_described,
    events.StateChanged: state_changed,
    events.BudgetSpent: budget_spent,
    events.NothingTimed: nothing_timed,
    events.WorkerStarted: worker_started,
    events.WorkerExited: worker_exited,
    events.OutputCaptured: output_captured,
    events.StopRequested: lambda summary, stream, event: None,  # the state changes as well
    events.LeftoversEnded: leftovers_ended,
    events.SamplerEnded: sampler_ended,
    events.StreamsCounted: streams_counted,
    events.EnvironmentRecorded: environment_recorded,
    events.RankPlaced: rank_placed,
    events.StageEntered: stage_entered,
    events.Progressed: progressed,
    events.ClaimMeasured: claim_measured,
    events.ClaimDeclared: claim_declared,
    events.ClaimNotTestable: claim_not_testable,
    events.SettingRaced: setting_raced,
    events.QuestionAnswered: question_answered,
    events.TextShown: lambda summary, stream, event: keep(summary.texts, event),
    events.ImageShown: image_shown,
    events.BlockLogged: lambda summary, stream, event: add_block(summary.series, stream, event),
    events.AxesNamed: axes_named,
    events.BarsShown: figure_shown,
    events.TableShown: figure_shown,
    events.SpanShown: span_shown,
    events.ArtifactSaved: lambda summary, stream, event: keep(summary.artifacts, event),
    events.MemoryMeasured: lambda summary, stream, event: keep(summary.memory, event),
    events.ArmFinished: lambda summary, stream, event: keep(summary.arms, event),
    events.RaceStarted: race_started,
    events.BlockTimed: block_timed,
    events.FirstCalled: first_called,
    events.CoresMeasured: cores_measured,
    events.CoresAwaited: cores_awaited,
    events.StepCounted: lambda summary, stream, event: keep(summary.counted_steps, event),
    events.DeviceUsed: device_used,
    events.RaceFinished: race_finished,
    events.ScenarioFailed: scenario_failed,
    events.BoxLacked: box_lacked,
    events.ScenarioFinished: scenario_finished,
    events.Sampled: sampled,
    events.GpuFound: gpu_found,
    events.GpuHeld: gpu_held,
    events.GpuShared: gpu_shared,
    events.XidReported: xid_reported,
    events.Unavailable: unavailable,
    events.Alerted: lambda summary, stream, event: keep(summary.alerts, event),
    events.VerdictReached: verdict_reached,
    events.TreatmentPlanned: treatment_planned,
    events.TuningPlanned: tuning_planned,
    events.TreatmentTried: treatment_tried,
    events.TuningCombined: tuning_combined,
}
