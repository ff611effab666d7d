"""Read runs, scenario files and GPUs for the Lab screen, in threads, and post messages to it."""

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

_MAX_NAMESAKES = 200  # runs of commands with one name, searched for those of one command


class BackgroundReader:
    """Reads in a thread for each request, and posts a message to the screen at the end.

    A request is ignored while the same one is running.
    """

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
        """The statuses of scenarios, the live runs and the state of the queue were read."""

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
        """The newest past run of a scenario was read; with `is_all`, all that the Lab shows."""

        def __init__(self, scenario: Scenario, is_all: bool) -> None:
            super().__init__()
            self.scenario = scenario
            self.is_all = is_all

    def __init__(self, screen: "Screen[None]", session: "Session") -> None:
        self._screen = screen
        self._session = session
        self._past: dict[str, list[PastRun]] = {}  # by the path of the scenario
        self._scenario_being_read: Scenario | None = None  # whose past runs are being read
        self._is_reading_statuses = False
        self._is_reading_files = False
        self._has_read_statuses = False
        # The time of the last change of the folder of runs when the statuses were read.
        self._changed_at: float | None = None
        self._gpu_question: GpuQuestion | None = None

    def past(self, scenario: Scenario) -> list[PastRun] | None:
        """Return the past runs of a scenario; None until they have been read."""
        return self._past.get(scenario.path)

    def has_news(self) -> bool:
        """Return whether runs may have come or gone since they were read; False before that."""
        if not self._has_read_statuses:
            return False
        return store.changed_at(self._session.root) != self._changed_at

    def see_box(self) -> None:
        """Read the facts about this machine, then post `BoxSeen`."""
        self._start(self._see_box)

    def look_at_files(self) -> None:
        """Find out whether files of scenarios have changed; if so, post `FilesChanged`."""
        if not self._is_reading_files:
            self._is_reading_files = True
            self._start(self._look_at_files)

    def look_at_gpus(self) -> None:
        """Ask which GPUs a run can use, without waiting for the answer; then post `GpusSeen`.

        Do nothing if the last question is not answered yet or a few seconds old, or if there is no
        driver.
        """
        from tuilab.tui.state.gpus import GpuQuestion

        if self._gpu_question is None:
            self._gpu_question = GpuQuestion()
        question = self._gpu_question
        now_s = time.monotonic()
        if question.is_due(now_s):
            with suppress(OSError):  # no process can be started now: the next call tries again
                question.begin(now_s)
                self._start(partial(self._see_gpus, question))

    def close(self) -> None:
        """End the question about GPUs, which may hang."""
        if self._gpu_question:
            self._gpu_question.close()

    def look_around(self, scenario: Scenario | None) -> None:
        """Read the statuses of scenarios, the live runs, and the past runs of a scenario.

        Live runs are running or queued. Post `RunsCame`, and `PastSeen` for the past runs. Without
        a scenario, no past runs are read.
        """
        if not self._is_reading_statuses:
            self._is_reading_statuses = True
            self._start(self._look_around)
        self.look_at(scenario)

    def look_at(self, scenario: Scenario | None) -> None:
        """Read the past runs of a scenario, and post `PastSeen`.

        Do nothing without a scenario, or while past runs are being read. Then the page asks again
        when it gets the last message about them.
        """
        if self._scenario_being_read is None and scenario:
            self._scenario_being_read = scenario
            self._start(partial(self._look_at, scenario))

    def _start(self, work: Callable[[], None]) -> None:
        # An error while reading must not close the screens.
        self._screen.run_worker(work, thread=True, exit_on_error=False)

    def _see_box(self) -> None:
        from tuilab.tui.state.box_line import box_line

        self._screen.post_message(self.BoxSeen(box_line()))

    def _look_at_files(self) -> None:
        """Read the scenarios again; if one has changed, post `FilesChanged`."""
        try:
            has_changed = self._session.read_again()
        finally:
            self._is_reading_files = False
        if has_changed:
            self._screen.post_message(self.FilesChanged())

    def _see_gpus(self, question: "GpuQuestion") -> None:
        """Wait for the answer about GPUs and post it, unless there is none."""
        gpus = question.answer()
        if gpus:
            self._screen.post_message(self.GpusSeen(gpus))

    def _look_around(self) -> None:
        """Read what `look_around` asks for, and post `RunsCame`.

        If the user's commands have changed, post `FilesChanged` before it.
        """
        from tuilab.runs import queue

        # Read before the runs: what comes while they are read counts as news.
        self._changed_at = store.changed_at(self._session.root)
        self._has_read_statuses = True
        try:
            running = self._session.index.running()
        finally:
            self._is_reading_statuses = False
        if self._session.read_commands():
            self._screen.post_message(self.FilesChanged())
        statuses = self._session.statuses()
        is_paused = queue.is_paused(self._session.root)
        self._screen.post_message(self.RunsCame(statuses, running, is_paused=is_paused))

    def _look_at(self, scenario: Scenario) -> None:
        """Read the past runs of a scenario; post `PastSeen` after the first one and at the end."""
        try:
            self._past[scenario.path] = self._read_past_runs(scenario)
        finally:
            self._scenario_being_read = None
        self._screen.post_message(self.PastSeen(scenario, True))

    def _read_past_runs(self, scenario: Scenario) -> list[PastRun]:
        """Return the past runs, newest first, and post `PastSeen` after the first one.

        Of a command, only its own runs count, and at most `past_runs.NEWEST` of them.
        """
        runs: list[PastRun] = []
        command = scenario if isinstance(scenario, OwnCommand) else None
        for run_dir in self._find_past_runs(scenario):
            if command and len(runs) == past_runs.NEWEST:
                break
            past = self._session.past(run_dir)
            if command and not command.is_of(past.run):
                continue
            runs.append(past)
            if len(runs) == 1:
                self._past[scenario.path] = runs[:]
                self._screen.post_message(self.PastSeen(scenario, False))
        return runs

    def _find_past_runs(self, scenario: Scenario) -> list[Path]:
        """Return the runs to read; for a command also those of others with the same name."""
        if isinstance(scenario, OwnCommand):
            namesakes = past_runs.runs_of(scenario.kind, self._session.root)
            return namesakes[:_MAX_NAMESAKES]
        return past_runs.runs_to_show(scenario.id, self._session.root, self._session.index.entry)
