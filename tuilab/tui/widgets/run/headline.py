"""What the Run screen tells above its panes, which run that is and how far, and below them, how new what they show is."""

import math
import time
from collections.abc import Mapping
from pathlib import Path

from textual.content import Content

from tuilab.record.finding_words import (
    cut_words,
    device_notices,
    done_words,
    gpu_errors,
    rate_words,
    repeat_words,
    seconds_left,
)
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs import store
from tuilab.runs.command_line import short
from tuilab.text.display import show
from tuilab.text.words import clock, size
from tuilab.tui.looks.marks import state_words, tally
from tuilab.tui.state.run_source import Replay, RunSource

_GAP = 2  # cells between two words of a heading
_LEAST_MORE = (
    6  # cells for what may be cut; where there are less, the cut would eat what must not be
)
_NEEDED = ("reading", "repeat", "clock")
_STYLES = {"reading": "$text-warning", "others": "$text-accent"}
_OLD_S = 2.0  # data older than this is told to be
_COST_S = 3.0  # over which the cost of the screens is averaged


def heading_of(
    run_dir: Path, source: RunSource, width: int, others: str = ""
) -> tuple[Content, Content]:
    """Return which run that is, with its state and its verdicts, and how far it is, as much of it as there is room for.

    `others` tells that more runs go on.
    """
    parts = {"others": others, **_progress(source)}
    least = sum(len(parts[part]) + _GAP for part in _NEEDED if parts.get(part))
    core = _core(run_dir, source, width - least)
    right = _fitted(parts, width - core.cell_length - _GAP)
    has_room = width - core.cell_length - right.cell_length - _GAP >= _LEAST_MORE
    return Content.assemble(core, _more(source)) if has_room else core, right


def _core(run_dir: Path, source: RunSource, room: int) -> Content:
    """Return what is never left out: the run, its state, and how many claims came out how; what its name lacks then is told."""
    run = source.summary.run
    name, topic = (show(run.scenario), f"{show(run.topic)}/") if run else ("?", "")
    id = Content.styled(f" · {store.short_id(run_dir.name)}", "$text-muted")
    counts = tally(claim.outcome for claim in source.summary.claims.values())
    state = state_words(source.state) if source.state else Content("")
    if isinstance(source, Replay):  # it went on then
        state = Content.styled("replay", "bold $text-accent")
    end = Content("").join(Content.assemble("  ", part) for part in (state, counts) if part)
    names = [
        Content.assemble((topic + name, "bold"), id),
        Content.assemble((name, "bold"), id),
        Content.styled(name, "bold"),
    ]
    fitting = (one for one in names if one.cell_length + end.cell_length <= room)
    return next(fitting, names[-1].truncate(max(room - end.cell_length, 8), ellipsis=True)) + end


def _more(source: RunSource) -> Content:
    """Return what is to be known first, then the stage that a run is in or the reason why it ended."""
    summary = source.summary
    stage = "" if source.is_over else _stage(summary)
    parts = [
        (words, "$text-error") for words in gpu_errors(summary)[-1:]
    ]  # before all that may not fit
    parts += [(words, "$text-warning") for words in device_notices(summary)[:1]]
    parts += [(words, "$text-error")] if (words := _bad(summary)) else []
    parts += [(stage, "")] if stage else []
    parts += (
        [(show(summary.reason, 200), "$text-muted")]
        if summary.reason and source.state != RunState.QUEUED
        else []
    )
    parts += (
        [(show(short(run.command), 200), "$text-secondary")]
        if (run := summary.run) and run.command
        else []
    )
    parts += [("the recorded data is incomplete", "$text-error")] if summary.damage.is_any else []
    return Content("").join(Content.styled(f"  {words}", style) for words, style in parts)


def _stage(summary: RunSummary) -> str:
    """Return the stage that a run is in; before its scenario is called, that its process loads torch."""
    if summary.stages:
        return show(summary.stages[-1].name, 40)
    is_scenario = summary.run is not None and not summary.run.command
    has_begun = (
        "torch" in summary.environment or summary.series or summary.progress or summary.races
    )
    return (
        "loading torch"
        if is_scenario and summary.state == RunState.RUNNING and not has_begun
        else ""
    )


def _bad(summary: RunSummary) -> str:
    """Return which series have values that are no numbers: a run can succeed with them."""
    bad = [one for one in summary.series.values() if one.bad_count]
    kinds = dict.fromkeys(
        "NaN" if math.isnan(point.value) else "Inf" for one in bad for point in one.bad
    )
    return (
        f"{'/'.join(sorted(kinds, reverse=True))} in {', '.join(dict.fromkeys(show(one.name, 30) for one in bad))}"
        if bad
        else ""
    )


def _progress(source: RunSource) -> dict[str, str]:
    """Return how far a run is, in its parts."""
    summary = source.summary
    if not source.is_caught_up:
        done, whole_bytes = source.bytes_read
        return {
            "reading": f"reading {100 * done // whole_bytes} % of {size(whole_bytes)}"
            if whole_bytes
            else "reading"
        }
    whole = f" of {clock(source.whole_s)}" if isinstance(source, Replay) else ""
    left_s = None if source.is_over or whole else seconds_left(summary, source.elapsed_s)
    return {
        "done": cut_words(summary) if source.is_over else done_words(summary),
        "repeat": repeat_words(summary),
        "clock": f"{'waiting ' * (source.state == RunState.QUEUED)}{clock(source.elapsed_s)}{whole}",
        "left": "" if left_s is None else f"{clock(left_s)} left",
        "rate": "" if source.is_over else rate_words(summary),
    }


def _fitted(parts: Mapping[str, str], room: int) -> Content:
    """Return as many of the parts as there is room for; what matters less is left out first."""
    chosen = {name: words for name, words in parts.items() if words}
    for less in ("rate", "left", "done", "others"):
        if sum(len(words) + _GAP for words in chosen.values()) - _GAP > room:
            chosen.pop(less, None)
    return Content("  ").join(
        Content.styled(words, _STYLES.get(name, "")) for name, words in chosen.items()
    )


def note_of(source: RunSource, *, is_frozen: bool, is_link_slow: bool) -> Content:
    """Return how a run is shown: frozen, played again, or as it happens with what is old about it."""
    if is_frozen:
        return Content.styled("frozen", "bold $text-warning")
    if isinstance(source, Replay):
        word = "end" if source.is_over else "playing" if source.is_playing else "paused"
        return Content.styled(f"{word}, speed {source.speed:.3g}", "$text-accent")
    if source.is_over:
        return Content("")
    is_old = (
        source.age_s > _OLD_S and source.state != RunState.QUEUED
    )  # nothing comes while it waits
    old = f"data {source.age_s:.0f} s old  " if is_old else ""
    slow = "slow link, drawing less  " if is_link_slow else ""
    return Content.styled(old + slow, "$text-warning")


class Cost:
    """What the screens themselves cost: processor time and bytes sent, over the last few seconds."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._cpu_s = time.process_time()
        self._bytes = 0
        self._words: tuple[str, ...] = ()

    def words(self, bytes_sent: int) -> tuple[str, ...]:
        """Return the cost in words, then in fewer; they change every few seconds."""
        now = time.monotonic()
        if now - self._since > _COST_S:
            cpu_s = time.process_time()
            share = f"{100 * (cpu_s - self._cpu_s) / (now - self._since):.0f} %"
            rate = f"{(bytes_sent - self._bytes) / (now - self._since) / 1000:.1f} kB/s"
            self._words = (
                f"tuilab itself: {share} of a core, {rate} sent",
                f"tuilab {share}, {rate}",
            )
            self._since, self._cpu_s, self._bytes = now, cpu_s, bytes_sent
        return self._words
