"""The heading of the Run screen, which names the run and its progress, and the note below."""

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
from tuilab.record.tuning.stages import budget_words, is_tuning
from tuilab.runs import store
from tuilab.runs.command_line import short
from tuilab.text.display import show
from tuilab.text.words import clock, size
from tuilab.tui.looks.marks import state_words, tally
from tuilab.tui.state.run_source import Replay, RunSource

_GAP = 2  # cells between two parts of a heading
_MIN_DETAILS = 6  # cells for details; with fewer, only an ellipsis of them would be left
_NEEDED = ("reading", "repeat", "clock")  # parts for which the name of the run is shortened
_DROPPED_FIRST = ("rate", "left", "done", "others")
_STYLES = {"reading": "$text-warning", "others": "$text-accent"}
_OLD_S = 2.0  # data that is older is called old
_COST_S = 3.0  # seconds over which the cost of the screens is averaged


def heading_of(
    run_dir: Path, source: RunSource, width: int, others: str = ""
) -> tuple[Content, Content]:
    """Return the left and the right text of the heading, as much of them as fits into a width.

    The left text has the name of the run, its state, its verdicts and details; the right text has
    its progress. `others` are words about other running runs.
    """
    parts = {"others": others, **_progress(source)}
    needed_width = 0
    for name in _NEEDED:
        words = parts.get(name, "")
        if words:
            needed_width += len(words) + _GAP
    name_and_state = _name_and_state(run_dir, source, width - needed_width)
    right = _fit(parts, width - name_and_state.cell_length - _GAP)
    room = width - name_and_state.cell_length - right.cell_length - _GAP
    if room < _MIN_DETAILS:
        return name_and_state, right
    return Content.assemble(name_and_state, _details(source)), right


def _name_and_state(run_dir: Path, source: RunSource, room: int) -> Content:
    """Return the name of the run, its state and the counts of its verdicts.

    If there is no room, the id is left out of the name, then the topic. At last the name is cut.
    """
    run = source.summary.run
    scenario = "?"
    topic = ""
    if run:
        scenario = show(run.scenario)
        topic = f"{show(run.topic)}/"
    run_id = Content.styled(f" · {store.short_id(run_dir.name)}", "$text-muted")
    state = _state(source)
    verdicts = tally(claim.outcome for claim in source.summary.claims.values())
    end_parts = [Content.assemble("  ", part) for part in (state, verdicts) if part]
    end = Content("").join(end_parts)
    long_name = Content.assemble((topic + scenario, "bold"), run_id)
    name_with_id = Content.assemble((scenario, "bold"), run_id)
    short_name = Content.styled(scenario, "bold")
    for name in (long_name, name_with_id, short_name):
        if name.cell_length + end.cell_length <= room:
            return name + end
    return short_name.truncate(max(room - end.cell_length, 8), ellipsis=True) + end


def _state(source: RunSource) -> Content:
    """Return `replay`, or the state of the run; nothing until the state is known."""
    if isinstance(source, Replay):
        return Content.styled("replay", "bold $text-accent")
    if not source.state:
        return Content("")
    return state_words(source.state)


def _details(source: RunSource) -> Content:
    """Return what is known beyond name and progress, the most important first: the end is cut."""
    summary = source.summary
    parts = []  # texts with their styles
    for error in gpu_errors(summary)[-1:]:
        parts.append((error, "$text-error"))
    for notice in device_notices(summary)[:1]:
        parts.append((notice, "$text-warning"))
    parts.append((_describe_bad(summary), "$text-error"))
    if not source.is_over:
        parts.append((_stage(summary), ""))
    if source.state != RunState.QUEUED:
        parts.append((show(summary.reason, 200), "$text-muted"))
    if summary.run and summary.run.command:
        parts.append((show(short(summary.run.command), 200), "$text-secondary"))
    if summary.damage.is_any:
        parts.append(("the recorded data is incomplete", "$text-error"))
    details = [Content.styled(f"  {text}", style) for text, style in parts if text]
    return Content("").join(details)


def _stage(summary: RunSummary) -> str:
    """Return the stage of a run. Before the scenario is called, its process loads torch."""
    if summary.stages:
        return show(summary.stages[-1].name, 40)
    is_scenario = summary.run is not None and not summary.run.command
    has_begun = (
        "torch" in summary.environment or summary.series or summary.progress or summary.races
    )
    if is_scenario and summary.state == RunState.RUNNING and not has_begun:
        return "loading torch"
    return ""


def _describe_bad(summary: RunSummary) -> str:
    """Return which metrics have a NaN or an Inf: a run with them can still succeed."""
    names: list[str] = []
    kinds = set()
    for series in summary.series.values():
        if not series.bad_count:
            continue
        name = show(series.name, 30)
        if name not in names:
            names.append(name)
        for point in series.bad:
            kinds.add("NaN" if math.isnan(point.value) else "Inf")
    if not names:
        return ""
    kinds_in_order = sorted(kinds, reverse=True)
    return f"{'/'.join(kinds_in_order)} in {', '.join(names)}"


def _progress(source: RunSource) -> dict[str, str]:
    """Return the parts of the progress of a run, by name. A part that is not known is empty."""
    summary = source.summary
    if not source.is_caught_up:
        bytes_read, bytes_total = source.bytes_read
        if not bytes_total:
            return {"reading": "reading"}
        percent = 100 * bytes_read // bytes_total
        return {"reading": f"reading {percent} % of {size(bytes_total)}"}
    elapsed = clock(source.elapsed_s)
    if source.state == RunState.QUEUED:
        elapsed = f"waiting {elapsed}"
    if isinstance(source, Replay):
        elapsed += f" of {clock(source.whole_s)}"
    if source.is_over:
        return {"done": cut_words(summary), "repeat": repeat_words(summary), "clock": elapsed}
    left = ""
    if is_tuning(summary):
        left = budget_words(summary, source.elapsed_s)
    elif not isinstance(source, Replay):
        left_s = seconds_left(summary, source.elapsed_s)
        if left_s is not None:
            left = f"{clock(left_s)} left"
    return {
        "done": done_words(summary),
        "repeat": repeat_words(summary),
        "clock": elapsed,
        "left": left,
        "rate": rate_words(summary),
    }


def _fit(parts: Mapping[str, str], room: int) -> Content:
    """Return the parts that fit; the less important ones are left out first."""
    chosen = {name: words for name, words in parts.items() if words}
    for name in _DROPPED_FIRST:
        width = sum(len(words) + _GAP for words in chosen.values()) - _GAP
        if width > room:
            chosen.pop(name, None)
    styled_parts = []
    for name, words in chosen.items():
        styled_parts.append(Content.styled(words, _STYLES.get(name, "")))
    return Content("  ").join(styled_parts)


def note_of(source: RunSource, *, is_frozen: bool, is_link_slow: bool) -> Content:
    """Return how a run is shown: frozen, replayed, or live; live also the age of old data."""
    if is_frozen:
        return Content.styled("frozen", "bold $text-warning")
    if isinstance(source, Replay):
        if source.is_over:
            word = "end"
        elif source.is_playing:
            word = "playing"
        else:
            word = "paused"
        return Content.styled(f"{word}, speed {source.speed:.3g}", "$text-accent")
    if source.is_over:
        return Content("")
    note = ""
    # A queued run writes no data, so that its data is no older than it should be.
    if source.age_s > _OLD_S and source.state != RunState.QUEUED:
        note += f"data {source.age_s:.0f} s old  "
    if is_link_slow:
        note += "slow link, drawing less  "
    return Content.styled(note, "$text-warning")


class Cost:
    """Measures the cost of the screens: processor time and bytes sent, over a few seconds."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._bytes_sent = 0
        self._words: tuple[str, ...] = ()

    def words(self, bytes_sent: int) -> tuple[str, ...]:
        """Return the cost in words, then in fewer words. They change every few seconds."""
        now_s = time.monotonic()
        elapsed_s = now_s - self._since_s
        if elapsed_s > _COST_S:
            cpu_s = time.process_time()
            percent = 100 * (cpu_s - self._cpu_s) / elapsed_s
            kilobytes_per_s = (bytes_sent - self._bytes_sent) / elapsed_s / 1000
            share = f"{percent:.0f} %"
            rate = f"{kilobytes_per_s:.1f} kB/s"
            self._words = (
                f"tuilab itself: {share} of a core, {rate} sent",
                f"tuilab {share}, {rate}",
            )
            self._since_s = now_s
            self._cpu_s = cpu_s
            self._bytes_sent = bytes_sent
        return self._words
