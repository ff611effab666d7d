"""Reads what the Lab screen tells of runs and GPUs, beside the main path, and posts to the screen what it found."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from tuilab.catalogue.scenario import Scenario
from tuilab.runs import past_runs
from tuilab.runs.past_runs import PastRun
from tuilab.tui.state.own.own_commands import OwnCommand

if TYPE_CHECKING:
    from textual.screen import Screen

    from tuilab.runs.last_verdicts import Said
    from tuilab.runs.listing.entry import Entry
    from tuilab.runs.running import GoingOn
    from tuilab.tui.state.gpus import GpuList, GpuQuestion
    from tuilab.tui.state.session import Desk

_OF_KIND = 200  # runs of commands that are called alike, of which some may be of the same words


class Lookout:
    """One for the screen; each question is answered in a thread of its own, and none is asked twice at a time."""

    class BoxSeen(Message):
        """What this box is has been found out."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class FilesChanged(Message):
        """Files of scenarios say something else than before; what they say has been read."""

    class GpusSeen(Message):
        """The GPUs that a run can have were found."""

        def __init__(self, gpus: "GpuList") -> None:
            super().__init__()
            self.gpus = gpus

    class RunsCame(Message):
        """The last verdicts have been read, which runs go on, and whether those that wait can begin."""

        def __init__(self, verdicts: "Mapping[str, Said]", going_on: "Sequence[Entry]", *, is_paused: bool) -> None:
            super().__init__()
            self.verdicts = verdicts
            self.going_on = going_on
            self.is_paused = is_paused  # the queue

    class PastSeen(Message):
        """Past runs of a scenario have been read; more may come."""

        def __init__(self, scenario: Scenario, is_all: bool) -> None:
            super().__init__()
            self.scenario = scenario
            self.is_all = is_all

    def __init__(self, screen: "Screen[None]", desk: "Desk") -> None:
        self._screen = screen
        self._desk = desk
        self._past: dict[str, list[PastRun]] = {}  # by the path of the scenario
        self._looks_at: Scenario | None = None
        self._looks_around = False
        self._going_on: GoingOn | None = None
        self._gpus: GpuQuestion | None = None
        self._looks_at_files = False

    def past(self, scenario: Scenario) -> list[PastRun] | None:
        """Return the past runs of a scenario; None while nobody has looked."""
        return self._past.get(scenario.path)

    def pair(self, scenario: Scenario, chosen: Path | None) -> list[Path]:
        """Return the chosen run of a scenario, else the newest, after the one before it; nothing where there are not two."""
        runs = [run.run_dir for run in self.past(scenario) or []]
        at = runs.index(chosen) if chosen in runs else 0
        return [runs[at + 1], runs[at]] if len(runs) > at + 1 else []

    def has_news(self) -> bool:
        """Say whether runs may have come or gone since the last look around."""
        return self._going_on is not None and self._going_on.has_changed()

    def see_box(self) -> None:
        """Find out what this box is."""
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
        """Read the last verdicts, and which runs go on; look at the past runs of a scenario, too."""
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
        from tuilab.runs.running import GoingOn

        self._going_on = self._going_on or GoingOn(self._desk.ledger)
        going_on = self._going_on.look()
        self._looks_around = False
        if self._desk.read_commands():
            self._screen.post_message(self.FilesChanged())
        self._screen.post_message(self.RunsCame(self._desk.verdicts(), going_on, is_paused=queue.is_paused(self._desk.root)))

    def _look_at(self, scenario: Scenario) -> None:
        runs: list[PastRun] = []
        command = scenario if isinstance(scenario, OwnCommand) else None
        for run_dir in self._past_of(scenario):
            if command and len(runs) == past_runs.NEWEST:
                break
            past = self._desk.ledger.past(run_dir)
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
        """Return the runs to look at: of a command some may have other words, which their names do not tell."""
        if isinstance(scenario, OwnCommand):
            return past_runs.runs_of(scenario.kind, self._desk.root)[:_OF_KIND]
        return past_runs.telling(scenario.id, self._desk.root, self._desk.ledger.named)
