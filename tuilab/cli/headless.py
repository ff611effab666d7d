"""Follows a run without a screen: talk on stderr while it goes on, and the code that it ends in."""

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
from tuilab.errors import ExitCode
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
from tuilab.record.verdicts import Verdict
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.runs.disk_room import DiskRoom
from tuilab.runs.run_name import RunName
from tuilab.text.display import show

OnSummary = Callable[[RunSummary], object]
Pause = Callable[[float], object]

_POLL_S = 0.1
_PLAIN_PERIOD_S = 10.0
_NOTICES = ("notice", "alert")  # kinds of news


_SHOW_CURSOR = "\x1b[?25h"  # the live line hides it


class Talk(Protocol):
    """Somebody who says what goes on."""

    def update(self, watch: Watch, warning: str = "") -> None: ...

    def close(self) -> None: ...


def pause_beside(pid: int) -> Pause:
    """Return what waits for so many seconds, or until a process ends, if that comes before."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox, or it has ended
        return time.sleep
    end = select.poll()
    end.register(handle, select.POLLIN)

    def pause(seconds: float) -> None:
        if end.poll(1000 * seconds):
            end.unregister(handle)  # once: from here on it would not wait at all
            os.close(handle)

    return pause


def follow(
    watch: Watch,
    talk: Talk,
    on_items: Callable[[Portion], None],
    *,
    is_ours: bool,
    on_summary: OnSummary | None = None,
    pause: Pause = time.sleep,
) -> str:
    """Follow a run to its end and return its state; `on_summary` gets what is known of it at each look.

    Ctrl-C stops a run of ours in order, a second one at once; of another's run it only ends the following.
    """
    gc.enable()  # off while modules load; a long run wants it
    with OneByOne() as turns, says_that_it_continues(watch.run_dir):
        return _follow(
            watch, talk, on_items, turns, is_ours=is_ours, on_summary=on_summary, pause=pause
        )


def _follow(
    watch: Watch,
    talk: Talk,
    on_items: Callable[[Portion], None],
    turns: OneByOne,
    *,
    is_ours: bool,
    on_summary: OnSummary | None,
    pause: Pause,
) -> str:
    stops = 0
    is_news = False  # of a run that is over already there is nothing to tell but its result
    disk = DiskRoom(watch.run_dir)
    while True:
        try:
            turns.be_ready()
            watch.catch_up(on_items)
            if on_summary is not None:
                on_summary(watch.summary)
            state = watch.state(on_items)
            is_over = watch.summary.is_over or state == RunState.LOST
            if is_news or not is_over:
                talk.update(watch, disk.warning(watch))
            if is_over:
                talk.close()
                return state
            is_news = True
            pause(_POLL_S)
        except KeyboardInterrupt:
            watch.was_interrupted = True
            if not is_ours:
                talk.close()
                return watch.summary.state
            stops += 1
            launch.stop(watch.run_dir, at_once=stops > 1)
            print(
                "\nstopping; Ctrl-C again stops at once" if stops == 1 else "\nstopping at once",
                file=sys.stderr,
            )


def exit_code(summary: RunSummary, state: str, *, is_strict: bool = False) -> ExitCode:
    """Return the exit code that a run amounts to."""
    if state != RunState.SUCCEEDED:
        return ExitCode.FAILED
    claims = summary.claims.values()
    verdicts = {claim.verdict.verdict if claim.verdict else "" for claim in claims}
    if any(claim.is_contradicted for claim in claims) or (
        is_strict and verdicts & {Verdict.INCONCLUSIVE, ""}
    ):
        return ExitCode.REFUTED
    if summary.box_lacks and verdicts <= {Verdict.NOT_TESTABLE, ""}:
        return ExitCode.BOX_LACKS
    return ExitCode.DONE


def worst(codes: list[ExitCode]) -> ExitCode:
    """Return the one code for several runs: lacking something counts only when every run lacks it."""
    for code in (
        ExitCode.INTERRUPTED,
        ExitCode.CANNOT_RECORD,
        ExitCode.FAILED,
        ExitCode.REFUTED,
        ExitCode.USAGE,
    ):
        if code in codes:
            return code
    return ExitCode.BOX_LACKS if codes and set(codes) == {ExitCode.BOX_LACKS} else ExitCode.DONE


def json_line(run_dir: Path, stream: str, item: Item) -> str:
    """Return a record as one line of JSON for `--jsonl`."""
    fields: dict[str, Any] = (
        {"k": type(item).__name__.lower(), **item._asdict()}
        if isinstance(item, tuple)
        else msgspec.to_builtins(item)
    )
    return for_programs({"run": run_dir.name, **fields, "stream": stream}, indent=None)


class Quiet:
    """Says nothing."""

    def update(self, watch: Watch, warning: str = "") -> None:
        pass

    def close(self) -> None:
        pass


class Alerts:
    """Tells what a run is alerted of, as it happens, and nothing else: the rest of the talk is the command's own."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._told = 0
        self._warning = ""

    def update(self, watch: Watch, warning: str = "") -> None:
        for alert in watch.summary.alerts[self._told :]:
            print(self._style.fit(f"tuilab: {alert_words(alert)}"), file=sys.stderr, flush=True)
        self._told = len(watch.summary.alerts)
        if warning and warning != self._warning:
            print(self._style.fit(f"tuilab: {warning}"), file=sys.stderr, flush=True)
        self._warning = warning

    def close(self) -> None:
        pass


class Plain:
    """One line for each stage, claim and change of state, and now and then how far it is: for pipes and logs.

    After each repeat, one for each claim about a ratio: how it stands. A warning is told when it comes.
    """

    def __init__(self, style: Style, where: str = "") -> None:
        self._style = style
        self._where = where
        self._standings = InterimJudge()
        self._said: set[tuple[str, str]] = set()
        self._warning = ""
        self._progress = ""
        self._last = time.monotonic()

    def update(self, watch: Watch, warning: str = "") -> None:
        name = self._where or (
            show(watch.summary.run.scenario) if watch.summary.run else watch.run_dir.name
        )
        standing = [
            ("standing", line)
            for line in standing_lines(watch.summary, self._standings, self._style)
        ]
        for kind, line in news(watch.summary, self._style) + standing:
            if (kind, line) not in self._said:
                self._said.add((kind, line))
                if (
                    not self._where or kind in _NOTICES
                ):  # of a point of a sweep, the result tells the rest
                    self._say(f"{name}: {line}")
        if warning and warning != self._warning:
            self._say(f"{name}: {warning}")
        self._warning = warning
        if time.monotonic() - self._last > _PLAIN_PERIOD_S and watch.summary.progress:
            words = [repeat_words(watch.summary), progress_words(watch.summary)]
            progress = "  ".join(filter(None, words))
            if progress != self._progress:
                self._progress = progress
                self._say(f"{name}: {progress}")

    def close(self) -> None:
        pass

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        print(self._style.fit(line), file=sys.stderr, flush=True)


class Live:
    """A live line with stage, step, rate, time left and last values, and above it how the claims about ratios stand.

    Other claims scroll by as they come. A warning stands there as long as it holds.
    """

    def __init__(self, style: Style, where: str = "") -> None:
        from rich.console import Console, Group
        from rich.live import Live as RichLive
        from rich.text import Text

        self._text = Text
        self._group = Group
        self._style = style
        self._where = where
        self._standings = InterimJudge()
        self._said: set[tuple[str, str]] = set()
        self._console = Console(stderr=True, highlight=False)
        self._live = RichLive(console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def update(self, watch: Watch, warning: str = "") -> None:
        for kind, line in news(watch.summary, self._style):
            if (kind, line) not in self._said:
                self._said.add((kind, line))
                if kind in _NOTICES or not (self._where or kind == "state"):
                    self._live.console.print(self._text.from_ansi(self._style.fit(line)))
        standing = standing_lines(watch.summary, self._standings, self._style)
        shown = [self._text.from_ansi(self._style.fit(line)) for line in standing]
        shown += (
            [self._text.from_ansi(self._style.fit(self._style.paint(warning, 31)))]
            if warning
            else []
        )
        line = "  ".join(filter(None, (self._where, live_line(watch))))
        last = self._text(self._style.fit(line), overflow="ellipsis", no_wrap=True)
        self._live.update(self._group(*shown, last))

    def close(self) -> None:
        self._live.stop()


def news(summary: RunSummary, style: Style) -> list[tuple[str, str]]:
    """Return everything worth a line so far, as (kind, line)."""
    lines = [("state", _state_words(event)) for event in summary.states]
    lines += [("notice", f"notice: {words}") for words in device_notices(summary)]
    lines += [("alert", f"notice: {alert_words(alert)}") for alert in summary.alerts]
    lines += [("stage", f"{style.dot} {show(stage.name)}") for stage in summary.stages]
    for claim in summary.claims.values():
        if claim.measured or claim.needs:
            found = judge_without_times(claim, summary)
            if found is not None:
                why = show(reason_words(found.verdict, found.why))
                lines.append(
                    ("claim", f"{style.mark(found.verdict)} {show(claim.text)}  {style.dim(why)}")
                )
    return lines


def _state_words(event: StateChanged) -> str:
    """Return a new state and its reason. A run that lacks something ends as succeeded: then the reason is enough."""
    if event.state == RunState.SUCCEEDED and event.reason:
        return show(event.reason)
    return show(f"{event.state}: {event.reason}" if event.reason else event.state)


def standing_lines(summary: RunSummary, known: InterimJudge, style: Style) -> list[str]:
    """Return a line for each claim about a ratio that is still open; none once only the verdict is left to come."""
    found = [] if summary.is_over else known.results(summary)
    return [_standing_line(one, style) for one in found if one.repeats < one.planned_repeats]


def _standing_line(one: InterimResult, style: Style) -> str:
    return f"{style.mark(one.judgement.verdict)} {show(one.claim.text)}: {style.dim(show(describe_interim_result(one)))}"


def live_line(watch: Watch) -> str:
    """Return the one line that says where a run is."""
    summary = watch.summary
    run = summary.run
    parts = [
        f"{show(run.topic)}/{show(run.scenario)}" if run else watch.run_dir.name,
        summary.state,
    ]
    parts.append("" if summary.state == RunState.QUEUED else show(summary.reason, 60))
    parts.append(repeat_words(summary))
    if summary.stages:
        parts.append(show(summary.stages[-1].name, 40))
    if summary.progress:
        parts.append(progress_words(summary))
    parts += last_values(summary)
    parts.append(f"{max(watch.now_ns - summary.first_t, 0) / 1e9:.0f} s" if summary.first_t else "")
    return "  ".join(part for part in parts if part)


@contextmanager
def says_that_it_continues(run_dir: Path) -> Iterator[None]:
    """Within, a signal that ends this process also prints how to come back to the run.

    Signals that are ignored (nohup) or handled otherwise (exec passes SIGTERM on, in a container they stop the run) stay so.
    """
    name = RunName(run_dir.name)
    command = hint(run_dir.parent, "attach", store.short_id(run_dir.name))
    words = f"tuilab: {show(name.scenario or name.text)} continues; show it again: {command}\n"

    def leave(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # the terminal may be gone
            start = f"{_SHOW_CURSOR}\n" if sys.stderr.isatty() else ""
            os.write(sys.stderr.fileno(), f"{start}{words}".encode())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    replaced = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in replaced:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
