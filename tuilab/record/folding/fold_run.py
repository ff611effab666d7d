"""Folds the records of the run, its workers and the scenario."""

from itertools import zip_longest

from tuilab.record import events
from tuilab.record.events import SPAN_LIMIT
from tuilab.record.folding.limits import MOST, keep, keep_in_time
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim, Worker

# The last progress is kept for so many totals: those of stages, of epochs and of their steps.
_TOTALS_KEPT = 8


def run_started(summary: RunSummary, stream: str, event: events.RunStarted) -> None:
    summary.run = summary.run or event  # a second one would name another supervisor
    _announce_claims(summary, event)


def run_described(summary: RunSummary, stream: str, event: events.RunDescribed) -> None:
    """Add the rest of a run's description to the record of its start."""
    if summary.run is None:
        return  # the record of the start is damaged
    summary.run.params |= event.params
    for name in ("changed", "claims", "claim_keys", "argv", "command"):
        getattr(summary.run, name).extend(getattr(event, name))
    _announce_claims(summary, event)


def _announce_claims(summary: RunSummary, event: events.RunStarted | events.RunDescribed) -> None:
    """Note the claims that a run will measure; the same record has their keys, if they have any."""
    for text, key in zip_longest(event.claims, event.claim_keys[: len(event.claims)], fillvalue=""):
        summary.claims.setdefault(key or text, Claim(text, key))


def state_changed(summary: RunSummary, stream: str, event: events.StateChanged) -> None:
    """Note the new state of the run; of very many states, the last one is kept."""
    if summary.state == RunState.QUEUED and event.state != RunState.QUEUED:
        # Times count from the start (or the end) of the run, not from when it was queued.
        summary.first_t = event.t
    summary.state = event.state
    summary.reason = event.reason
    if len(summary.states) < MOST:
        summary.states.append(event)
    else:
        summary.states[-1] = event  # the last state is always kept


def worker_started(summary: RunSummary, stream: str, event: events.WorkerStarted) -> None:
    summary.workers.setdefault(event.writer, Worker()).started = event


def worker_exited(summary: RunSummary, stream: str, event: events.WorkerExited) -> None:
    """Note the end of a worker, the records it lost, and the place of a crash.

    If it ended with an error while the run was stopping, it counts as stopped, not as failed.
    """
    worker = summary.workers.setdefault(event.writer, Worker())
    worker.exited = event
    worker.is_stopped = summary.state == RunState.STOPPING and event.code != 0
    _note_lost(summary, event.writer, event.lost)
    if event.fault:
        keep(summary.faults, event.fault)


def _note_lost(summary: RunSummary, writer: str, lost: int) -> None:
    """Count the records that a worker could not write.

    The worker reports them to the supervisor, and in its own stream if that can be written.
    """
    reported = max(lost, summary.damage.lost.get(writer, 0))
    if reported:
        summary.damage.lost[writer] = reported


def streams_counted(summary: RunSummary, stream: str, event: events.StreamsCounted) -> None:
    for name, count in event.records.items():
        summary.counted[name] = count


def leftovers_ended(summary: RunSummary, stream: str, event: events.LeftoversEnded) -> None:
    summary.leftover_count += event.count
    for name in event.processes:
        keep(summary.leftovers, name)


def rank_placed(summary: RunSummary, stream: str, event: events.RankPlaced) -> None:
    summary.ranks[stream] = event


def stage_entered(summary: RunSummary, stream: str, event: events.StageEntered) -> None:
    """Note a new stage, in which the progress begins again."""
    keep_in_time(summary.stages, event)
    summary.progress = summary.first_progress = None


def progressed(summary: RunSummary, stream: str, event: events.Progressed) -> None:
    """Keep the latest progress, and the first one that it can be compared with, for the rate.

    Progress with another total or unit, or that falls back, begins a new count.
    """
    first = summary.first_progress
    if (
        first is None
        or (first.total, first.unit) != (event.total, event.unit)
        or event.done < first.done
    ):
        summary.first_progress = event
    summary.progress = event
    kept = []
    for progress in summary.progress_by_total:
        if (progress.total, progress.unit) != (event.total, event.unit):
            kept.append(progress)
    kept.append(event)
    summary.progress_by_total = kept[-_TOTALS_KEPT:]


def image_shown(summary: RunSummary, stream: str, event: events.ImageShown) -> None:
    summary.images[event.title, event.arm] = event


def budget_spent(summary: RunSummary, stream: str, event: events.BudgetSpent) -> None:
    if event.stage:
        summary.tuning.spent_stages.add(event.stage)
    else:
        summary.is_budget_spent = True


def nothing_timed(summary: RunSummary, stream: str, event: events.NothingTimed) -> None:
    summary.is_untimed = True


def axes_named(summary: RunSummary, stream: str, event: events.AxesNamed) -> None:
    if event.metric in summary.axes or len(summary.axes) < MOST:
        summary.axes[event.metric] = event


def figure_shown(
    summary: RunSummary, stream: str, event: events.BarsShown | events.TableShown
) -> None:
    """Keep the last figure of each title, by time and not by the order of reading."""
    shown = summary.figures.get(event.title)
    if shown is None:
        is_kept = len(summary.figures) < MOST
    else:
        is_kept = event.t >= shown.t
    if is_kept:
        summary.figures[event.title] = event


def span_shown(summary: RunSummary, stream: str, event: events.SpanShown) -> None:
    """Keep a span of the picture of an arm in one process, up to a limit."""
    picture = event.arm, stream
    if picture not in summary.spans and len(summary.spans) >= MOST:
        return
    spans = summary.spans.setdefault(picture, [])
    if len(spans) < SPAN_LIMIT:
        spans.append(event)


def scenario_failed(summary: RunSummary, stream: str, event: events.ScenarioFailed) -> None:
    summary.failures[stream] = event


def box_lacked(summary: RunSummary, stream: str, event: events.BoxLacked) -> None:
    summary.lacks[stream] = event.needs


def scenario_finished(summary: RunSummary, stream: str, event: events.ScenarioFinished) -> None:
    """Note the records that were lost, or the trouble with writing them."""
    _note_lost(summary, stream, event.lost)
    if event.trouble and not event.lost:
        summary.unavailable[f"records of {stream}"] = event.trouble


def output_captured(summary: RunSummary, stream: str, event: events.OutputCaptured) -> None:
    summary.outputs[event.stream] = event
