"""Follow a run without the screens: wait for its end, and print progress to stderr meanwhile."""

import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import msgspec

from tuilab.drawings.glyphs import Style
from tuilab.engine import launch
from tuilab.interrupts import OneByOne
from tuilab.judging.interim_results import InterimJudge, InterimResult, describe_interim_result
from tuilab.judging.judge_run import judge_without_times
from tuilab.record.encoding import for_programs
from tuilab.record.events import StateChanged
from tuilab.record.finding_words import (
    alert_words,
    device_notices,
    last_values,
    progress_words,
    reason_words,
    repeat_words,
)
from tuilab.record.journal.follower import Portion
from tuilab.record.journal.lines import Item
from tuilab.record.live_run import Watch
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.stages import budget_words, is_tuning
from tuilab.reports.tuning.rows import interim_ratio_words, mark_of
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.runs.disk_room import DiskRoom
from tuilab.runs.run_name import RunName
from tuilab.text.display import brief, plural, show

OnSummary = Callable[[RunSummary], object]
Pause = Callable[[float], object]  # waits for so many seconds, or less

_POLL_S = 0.1  # between two looks at the records of a run
_PROGRESS_PERIOD_S = 10.0  # between two lines of progress in a pipe or log
_NOTICES = ("notice", "alert")  # kinds of news that a point of a sweep prints as well
_RED = 31  # SGR code
_SHOW_CURSOR = "\x1b[?25h"  # the live line hides the cursor


class Progress(Protocol):
    """Prints the progress of a run: `update` is called at each poll, `close` once at the end."""

    def update(self, watch: Watch, warning: str = "") -> None: ...

    def close(self) -> None: ...


# ---- following a run


def follow(
    watch: Watch,
    progress: Progress,
    on_items: Callable[[Portion], None],
    *,
    is_ours: bool,
    on_summary: OnSummary | None = None,
    pause: Pause = time.sleep,
) -> str:
    """Follow a run to its end and return its state; `on_summary` gets the summary at each poll.

    If the run is ours, Ctrl-C stops it cleanly, and a second Ctrl-C kills it. Otherwise Ctrl-C ends
    only the following.
    """
    gc.enable()  # it is off while modules load, and a long run needs it
    with OneByOne() as interrupts, announce_continuation(watch.run_dir):
        return _follow_to_end(
            watch,
            progress,
            on_items,
            interrupts,
            is_ours=is_ours,
            on_summary=on_summary,
            pause=pause,
        )


def _follow_to_end(
    watch: Watch,
    progress: Progress,
    on_items: Callable[[Portion], None],
    interrupts: OneByOne,
    *,
    is_ours: bool,
    on_summary: OnSummary | None,
    pause: Pause,
) -> str:
    """Do what `follow` does; a Ctrl-C while another one is handled waits for `be_ready`.

    If Ctrl-C ends only the following, the result is the latest state that was read.
    """
    stops = 0
    has_polled = False  # a run that is over at the first poll has no progress, only a result
    disk = DiskRoom(watch.run_dir)
    while True:
        try:
            interrupts.be_ready()
            watch.catch_up(on_items)
            if on_summary is not None:
                on_summary(watch.summary)
            state = watch.state(on_items)
            is_over = watch.summary.is_over or state == RunState.LOST
            if has_polled or not is_over:
                progress.update(watch, disk.warning(watch))
            if is_over:
                progress.close()
                return state
            has_polled = True
            pause(_POLL_S)
        except KeyboardInterrupt:
            watch.was_interrupted = True
            if not is_ours:
                progress.close()
                return watch.summary.state
            stops += 1
            launch.stop(watch.run_dir, at_once=stops > 1)
            if stops == 1:
                print("\nstopping; Ctrl-C again stops at once", file=sys.stderr)
            else:
                print("\nstopping at once", file=sys.stderr)


def make_pause(pid: int) -> Pause:
    """Return a function that waits for so many seconds, or until a process ends before that."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox, or the process has ended
        return time.sleep
    end = select.poll()
    end.register(handle, select.POLLIN)

    def pause(seconds: float) -> None:
        if end.poll(1000 * seconds):
            end.unregister(handle)  # only once: a handle that stays ready would end every wait
            os.close(handle)

    return pause


@contextmanager
def announce_continuation(run_dir: Path) -> Iterator[None]:
    """Within, a signal that ends this process first prints how to come back to the run.

    Only signals with the default action are replaced. nohup ignores SIGHUP, `tuilab exec` passes
    SIGTERM on, and in a container both stop the run: those stay so.
    """
    name = RunName(run_dir.name)
    command = hint(run_dir.parent, "attach", store.short_id(run_dir.name))
    message = f"tuilab: {show(name.scenario or name.text)} continues; show it again: {command}\n"

    def leave(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # the terminal may be gone
            start = f"{_SHOW_CURSOR}\n" if sys.stderr.isatty() else ""
            os.write(sys.stderr.fileno(), f"{start}{message}".encode())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    replaced = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            replaced.append(number)
    for number in replaced:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def json_line(run_dir: Path, stream: str, item: Item) -> str:
    """Return a record as one line of JSON for `--jsonl`."""
    fields: dict[str, Any]
    if isinstance(item, tuple):  # a gap, or a line that cannot be read
        fields = {"k": type(item).__name__.lower(), **item._asdict()}
    else:
        fields = msgspec.to_builtins(item)
    return for_programs({"run": run_dir.name, **fields, "stream": stream}, indent=None)


# ---- ways to print progress


class NoProgress:
    """Prints nothing."""

    def update(self, watch: Watch, warning: str = "") -> None:
        pass

    def close(self) -> None:
        pass


class AlertLines:
    """Prints only the alerts, stages and warnings of a run, as they happen.

    `tuilab exec` uses it, because the rest of the terminal belongs to the command. A command has
    a stage only after its end, when tuilab still works.
    """

    def __init__(self, style: Style) -> None:
        self._style = style
        self._printed_alerts = 0
        self._printed_stages = 0
        self._warning = ""

    def update(self, watch: Watch, warning: str = "") -> None:
        """Print the alerts and stages that are new, and a warning if it has changed."""
        for alert in watch.summary.alerts[self._printed_alerts :]:
            self._print(alert_words(alert))
        self._printed_alerts = len(watch.summary.alerts)
        for stage in watch.summary.stages[self._printed_stages :]:
            self._print(show(stage.name))
        self._printed_stages = len(watch.summary.stages)
        if warning and warning != self._warning:
            self._print(warning)
        self._warning = warning

    def close(self) -> None:
        pass

    def _print(self, sentence: str) -> None:
        print(self._style.fit(f"tuilab: {sentence}"), file=sys.stderr, flush=True)


class PlainProgress:
    """Prints progress for pipes and logs.

    A stage, a claim, a change of state and a warning are one line each. Each repeat adds one line
    for each open claim about a ratio. Every ten seconds a line shows how far the run is. With a
    `label`, as for a point of a sweep, only notices and progress are printed.
    """

    def __init__(self, style: Style, label: str = "") -> None:
        self._style = style
        self._label = label
        self._interim_judge = InterimJudge()
        self._printed: set[tuple[str, str]] = set()
        self._warning = ""
        self._progress = ""
        self._last_print_s = time.monotonic()

    def update(self, watch: Watch, warning: str = "") -> None:
        """Print the lines that are new, a changed warning, and the progress if it is due."""
        summary = watch.summary
        name = self._label
        if not name:
            name = show(summary.run.scenario) if summary.run else watch.run_dir.name
        news = list_news(summary, self._style)
        for line in interim_lines(summary, self._interim_judge, self._style):
            news.append(("standing", line))
        for kind, line in news:
            if (kind, line) in self._printed:
                continue
            self._printed.add((kind, line))
            if not self._label or kind in _NOTICES:
                self._print(f"{name}: {line}")
        if warning and warning != self._warning:
            self._print(f"{name}: {warning}")
        self._warning = warning
        if time.monotonic() - self._last_print_s > _PROGRESS_PERIOD_S and summary.progress:
            self._print_progress(name, summary)

    def close(self) -> None:
        pass

    def _print_progress(self, name: str, summary: RunSummary) -> None:
        """Print how far the run is, unless that is what was printed last."""
        parts = [repeat_words(summary), progress_words(summary)]
        progress = "  ".join(part for part in parts if part)
        if progress != self._progress:
            self._progress = progress
            self._print(f"{name}: {progress}")

    def _print(self, line: str) -> None:
        self._last_print_s = time.monotonic()
        print(self._style.fit(line), file=sys.stderr, flush=True)


class LiveProgress:
    """Shows a line that changes in place: stage, step, rate, time left and last values.

    The open claims about ratios are above it, and a warning as long as it holds. Other claims and
    notices scroll by.
    """

    def __init__(self, style: Style, label: str = "") -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.text import Text

        self._text = Text
        self._group = Group
        self._style = style
        self._label = label
        self._interim_judge = InterimJudge()
        self._printed: set[tuple[str, str]] = set()
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def update(self, watch: Watch, warning: str = "") -> None:
        """Print new lines above the live line, and draw it and the open claims again."""
        for kind, line in list_news(watch.summary, self._style):
            if (kind, line) in self._printed:
                continue
            self._printed.add((kind, line))
            is_hidden = bool(self._label) or kind == "state"
            if kind in _NOTICES or not is_hidden:
                self._live.console.print(self._text.from_ansi(self._style.fit(line)))
        lines = interim_lines(watch.summary, self._interim_judge, self._style)
        if warning:
            lines.append(self._style.paint(warning, _RED))
        shown = [self._text.from_ansi(self._style.fit(line)) for line in lines]
        line = live_line(watch)
        if self._label:
            line = f"{self._label}  {line}"
        shown.append(self._text(self._style.fit(line), overflow="ellipsis", no_wrap=True))
        self._live.update(self._group(*shown))

    def close(self) -> None:
        self._live.stop()


# ---- lines of progress


def list_news(summary: RunSummary, style: Style) -> list[tuple[str, str]]:
    """Return everything so far that is worth a line, as pairs of its kind and the line."""
    lines = [("state", _describe_state(event)) for event in summary.states]
    lines += [("notice", f"notice: {sentence}") for sentence in device_notices(summary)]
    lines += [("alert", f"notice: {alert_words(alert)}") for alert in summary.alerts]
    lines += [("stage", f"{style.dot} {show(stage.name)}") for stage in summary.stages]
    if is_tuning(summary):
        return lines + [("claim", line) for line in _list_tried(summary, style)]
    for claim in summary.claims.values():
        if not (claim.measured or claim.needs):
            continue
        judgement = judge_without_times(claim, summary)
        if judgement is None:
            continue
        mark = style.mark(judgement.verdict)
        reason = style.dim(show(reason_words(judgement.verdict, judgement.why)))
        lines.append(("claim", f"{mark} {show(claim.text)}  {reason}"))
    return lines


def _list_tried(summary: RunSummary, style: Style) -> list[str]:
    """Return how many treatments a tuning tries, and a line for each that was tried."""
    tuning = summary.tuning
    lines = []
    if tuning.plan is not None:
        count = sum(1 for planned in tuning.treatments.values() if not planned.outcome)
        ruled_out = len(tuning.treatments) - count
        lines.append(
            f"plan: tries {plural(count, 'treatment')}; {ruled_out} others cannot help here"
        )
    for arm, tried in tuning.tried.items():
        if arm not in tuning.treatments:
            continue
        mark = style.mark(mark_of(tried.outcome))
        title = show(tuning.treatments[arm].title)
        if tried.outcome:
            reason = style.dim(show(f"{tried.outcome.lower()}: {tried.why}"))
            lines.append(f"{mark} {title}: {reason}")
        elif tried.ratio is not None:
            lines.append(f"{mark} {title}: {style.dim(f'{brief(tried.ratio)}x in one process')}")
    return lines


def _describe_state(event: StateChanged) -> str:
    """Return a new state and its reason.

    A run that cannot be tested here ends as succeeded with a reason: then the reason is enough.
    """
    if not event.reason:
        return show(event.state)
    if event.state == RunState.SUCCEEDED:
        return show(event.reason)
    return show(f"{event.state}: {event.reason}")


def interim_lines(summary: RunSummary, interim_judge: InterimJudge, style: Style) -> list[str]:
    """Return a line for each claim about a ratio that is still open.

    There is none once all repeats are done: then the verdict follows.
    """
    if summary.is_over:
        return []
    if is_tuning(summary):
        return _tuning_lines(summary, interim_judge, style)
    lines = []
    for result in interim_judge.results(summary):
        if result.repeats < result.planned_repeats:
            lines.append(_interim_line(result, style))
    return lines


def _tuning_lines(summary: RunSummary, interim_judge: InterimJudge, style: Style) -> list[str]:
    """Return a line for each treatment of a tuning, and each combination, that is compared now."""
    lines = []
    for result in interim_judge.results(summary):
        mark = style.mark(result.judgement.verdict)
        words = interim_ratio_words(result.judgement)
        if words:
            count = plural(result.repeats, "repeat")
            description = style.dim(f"so far {words} after {count}")
            lines.append(f"{mark} {show(result.claim.text)}: {description}")
    return lines


def _interim_line(result: InterimResult, style: Style) -> str:
    mark = style.mark(result.judgement.verdict)
    description = style.dim(show(describe_interim_result(result)))
    return f"{mark} {show(result.claim.text)}: {description}"


def live_line(watch: Watch) -> str:
    """Return one line that says where a run is."""
    summary = watch.summary
    run = summary.run
    name = watch.run_dir.name
    if run:
        name = f"{show(run.topic)}/{show(run.scenario)}"
    parts = [name, summary.state]
    if summary.state != RunState.QUEUED:
        parts.append(show(summary.reason, 60))
    parts.append(repeat_words(summary))
    if summary.stages:
        parts.append(show(summary.stages[-1].name, 40))
    if summary.progress:
        parts.append(progress_words(summary))
    parts += last_values(summary)
    if summary.first_t:
        elapsed_s = max(watch.now_ns - summary.first_t, 0) / 1e9
        parts.append(f"{elapsed_s:.0f} s")
        if is_tuning(summary):
            parts.append(budget_words(summary, elapsed_s))
    return "  ".join(part for part in parts if part)
