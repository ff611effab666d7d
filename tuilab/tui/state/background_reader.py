"""Reads what the Lab screen shows of runs and GPUs, in threads, and posts to the screen what it found."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from tuilab.catalogue.scenario import Scenario
from tuilab.runs import past_runs, store
from tuilab.runs.past_runs import PastRun
from tuilab.tui.state.own.own_commands import OwnCommand

if TYPE_CHECKING:
    from textual.screen import Screen

    from tuilab.runs.entry import RunEntry
    from tuilab.runs.representative import ScenarioStatus
    from tuilab.tui.state.gpus import GpuList, GpuQuestion
    from tuilab.tui.state.session import Session

_OF_KIND = 200  # runs of commands with the same name; some of them may be of the same words


class BackgroundReader:
    """One for the screen. Each question is answered in its own thread; none is asked twice at the same time."""

    class BoxSeen(Message):
        """The facts about this machine were read."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class FilesChanged(Message):
        """Files of scenarios have changed and were read again."""

    class GpusSeen(Message):
        """The GPUs that a run can have were found."""

        def __init__(self, gpus: "GpuList") -> None:
            super().__init__()
            self.gpus = gpus

    class RunsCame(Message):
        """The status of the scenarios was read, which runs are running, and whether the queue is paused."""

        def __init__(
            self,
            statuses: "Mapping[str, ScenarioStatus]",
            going_on: "Sequence[RunEntry]",
            *,
            is_paused: bool,
        ) -> None:
            super().__init__()
            self.statuses = statuses
            self.going_on = going_on
            self.is_paused = is_paused

    class PastSeen(Message):
        """Past runs of a scenario were read; more may come."""

        def __init__(self, scenario: Scenario, is_all: bool) -> None:
            super().__init__()
            self.scenario = scenario
            self.is_all = is_all

    def __init__(self, screen: "Screen[None]", desk: "Session") -> None:
        self._screen = screen
        self._desk = desk
        self._past: dict[str, list[PastRun]] = {}  # by the path of the scenario
        self._looks_at: Scenario | None = None
        self._looks_around = False
        self._seen_at: float | None = None  # when runs last came or went, as it was last seen
        self._has_seen = False
        self._gpus: GpuQuestion | None = None
        self._looks_at_files = False

    def past(self, scenario: Scenario) -> list[PastRun] | None:
        """Return the past runs of a scenario; None until they have been read."""
        return self._past.get(scenario.path)

    def has_news(self) -> bool:
        """Return whether runs may have come or gone since the last look around."""
        return self._has_seen and store.changed_at(self._desk.root) != self._seen_at

    def see_box(self) -> None:
        """Read the facts about this machine."""
        self._start(self._see_box)

    def look_at_files(self) -> None:
        """Find out whether files of scenarios have changed."""
        if not self._looks_at_files:
            self._looks_at_files = True
            self._start(self._look_at_files)

    def look_at_gpus(self) -> None:
        """Find out which GPUs a run can have; the question waits for no answer."""
        from tuilab.tui.state.gpus import GpuQuestion

        self._gpus = self._gpus or GpuQuestion()
        if self._gpus.is_due(now_s := time.monotonic()):
            with suppress(OSError):  # there can be no process now: the next look asks again
                self._gpus.begin(now_s)
                self._start(partial(self._see_gpus, self._gpus))

    def close(self) -> None:
        """Wait for nothing that may hang."""
        if self._gpus:
            self._gpus.close()

    def look_around(self, scenario: Scenario | None) -> None:
        """Read the status of the scenarios, which runs are running, and the past runs of a scenario."""
        if not self._looks_around:
            self._looks_around = True
            self._start(self._look_around)
        self.look_at(scenario)

    def look_at(self, scenario: Scenario | None) -> None:
        """Look at the past runs of a scenario, when those of the one before are done."""
        if self._looks_at is None and scenario:
            self._looks_at = scenario
            self._start(partial(self._look_at, scenario))

    def _start(self, work: Callable[[], None]) -> None:
        self._screen.run_worker(work, thread=True, exit_on_error=False)

    def _see_box(self) -> None:
        from tuilab.tui.state.box_line import box_line

        self._screen.post_message(self.BoxSeen(box_line()))

    def _look_at_files(self) -> None:
        has_changed = self._desk.read_again()
        self._looks_at_files = False
        if has_changed:
            self._screen.post_message(self.FilesChanged())

    def _see_gpus(self, question: "GpuQuestion") -> None:
        if gpus := question.answer():
            self._screen.post_message(self.GpusSeen(gpus))

    def _look_around(self) -> None:
        from tuilab.runs import queue

        self._seen_at, self._has_seen = store.changed_at(self._desk.root), True
        running = self._desk.index.running()
        self._looks_around = False
        if self._desk.read_commands():
            self._screen.post_message(self.FilesChanged())
        self._screen.post_message(
            self.RunsCame(
                self._desk.statuses(), running, is_paused=queue.is_paused(self._desk.root)
            )
        )

    def _look_at(self, scenario: Scenario) -> None:
        runs: list[PastRun] = []
        command = scenario if isinstance(scenario, OwnCommand) else None
        for run_dir in self._past_of(scenario):
            if command and len(runs) == past_runs.NEWEST:
                break
            past = self._desk.past(run_dir)
            if command and not command.is_of(past.run):
                continue
            runs.append(past)
            if len(runs) == 1:
                self._past[scenario.path] = runs[:]
                self._screen.post_message(self.PastSeen(scenario, False))
        self._past[scenario.path] = runs
        self._looks_at = None
        self._screen.post_message(self.PastSeen(scenario, True))

    def _past_of(self, scenario: Scenario) -> list[Path]:
        """Return the runs to read. The runs of a command may include some with other words, which their names do not show."""
        if isinstance(scenario, OwnCommand):
            return past_runs.runs_of(scenario.kind, self._desk.root)[:_OF_KIND]
        return past_runs.runs_to_show(scenario.id, self._desk.root, self._desk.index.entry)
