"""What every screen has at hand: the scenarios, the folder of runs, the settings, and how a run is started.

What is needed only for runs is loaded when there is one: the first picture does not wait for it.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.tui.state.settings import Settings

if TYPE_CHECKING:
    from tuilab.engine.launch import Spare
    from tuilab.engine.messages import RunOrder
    from tuilab.record.summary import RunSummary
    from tuilab.runs.ledger import Entry


class Desk:
    """One for the app; the screens ask it instead of the disk."""

    def __init__(self, root: Path, folders: Sequence[str], settings: Settings, fps: float = 2.0) -> None:
        self.root = root
        self.ledger = LedgerCache(root)  # what is known of the runs there
        self.folders = folders
        self.settings = settings
        self.fps = fps  # how often what is new is drawn
        self.is_learning = False  # the screens open at the next lesson
        self.started: list[str] = []  # the runs started from here, which may go on after we leave
        self._told_ended = 0  # how many of them were over when that was asked
        self._spare: Spare | None = None
        self.waiting: list[RunOrder] = []  # runs to be started, each when the one before is over

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """The catalogue, read once."""
        return catalog.load(self.folders)

    @cached_property
    def speak(self) -> "Callable[[RunSummary], None]":
        """What tells of a run in the language of the lessons."""
        from tuilab.catalogue.in_language import speaker

        return speaker(lambda: self.scenarios)

    @cached_property
    def topics(self) -> dict[str, str]:
        """What each topic is about."""
        return catalog.topics(self.folders)

    def verdicts(self) -> dict[str, str]:
        """Return, by scenario, the last verdict on this box."""
        return self.ledger.last_verdicts()

    def start(self, order: "RunOrder") -> Path:
        """Start a run and return its folder."""
        from tuilab.engine import launch

        spare, self._spare = self._spare, None
        run_dir, _ = launch.start(order, spare)
        self.started.append(run_dir.name)
        return run_dir

    def prepare(self) -> None:
        """Keep a spare process ready for the next run, so that it starts at once; not to be called while a run goes on."""
        if self._spare is None:
            from tuilab.engine import launch

            self._spare = launch.prepare()

    def leave(self) -> None:
        """Give back what was kept ready."""
        if self._spare is not None:
            self._spare.dismiss()
            self._spare = None

    def ended(self) -> "list[Entry]":
        """Return what is known of the runs started from here that are over since this was asked last, in their order."""
        found: list[Entry] = []
        for name in self.started[self._told_ended :]:
            entry = self.ledger.entry(self.root / name)
            if entry.is_running:
                break
            found.append(entry)
        self._told_ended += len(found)
        return found

    def is_running(self) -> bool:
        """Whether the run that was started last from here goes on."""
        return bool(self.started) and self.ledger.entry(self.root / self.started[-1]).is_running
