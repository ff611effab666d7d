"""What every screen has at hand: the scenarios, the folder of runs, the settings, and how a run is started.

What is needed only for runs is loaded when there is one: the first picture does not wait for it.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.errors import TuilabError
from tuilab.record.origin.imported import is_imported
from tuilab.runs.index import Index
from tuilab.runs.representative import ScenarioStatus, statuses
from tuilab.tui.state.settings import Settings

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder
    from tuilab.engine.spare import Spare
    from tuilab.record.events import RunStarted
    from tuilab.runs.entry import RunEntry
    from tuilab.runs.past_runs import PastRun
    from tuilab.tui.state.subcommand import Subcommand


class Session:
    """One for the app; the screens ask it instead of the disk."""

    def __init__(
        self,
        root: Path,
        folders: Sequence[str],
        settings: Settings,
        fps: float = 2.0,
        *,
        is_read_only: bool = False,
    ) -> None:
        self.root = root
        self.is_read_only = is_read_only  # nothing may be started, ended, changed or written
        self.index = Index(root, is_kept=not is_read_only)  # of the runs there
        self.folders = folders
        self.settings = settings
        self.fps = fps  # how often what is new is drawn
        self.is_learning = False  # the screens open at the next lesson
        self.started: list[str] = []  # the runs started from here, which may go on after we leave
        self.watched: dict[str, None] = {}  # the runs that were looked at here
        self._files: list[str] = []  # of scenarios in none of the folders, of which there are runs
        self.commands: list[
            Scenario
        ] = []  # of the user's that ran last; the form of a new one is among them
        self.calibration: Subcommand | None = None  # the one that was started from here last
        self._told_ended = 0  # how many of them were over when that was asked
        self._spare: Spare | None = None
        self._past: dict[str, PastRun] = {}  # by name, of the runs that the Lab has shown
        self._stamps: dict[str, str] | None = None  # of the files, when they were looked at last

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """The catalogue, as it was read last."""
        return self._load()

    def _load(self) -> list[Scenario]:
        listed = catalog.load(self.folders)
        files = [file for file in self._files if os.path.isfile(file)]
        return [*listed, *(one for file in files for one in catalog.find(listed, file))]

    def take_file(self, file: str) -> None:
        """Have the scenario of a file in the catalogue, whether it lies in one of the folders or not."""
        path = os.path.realpath(file)
        if path not in (one.path for one in self.scenarios) and os.path.isfile(path):
            self._files.append(path)
            self.scenarios = [*self.scenarios, *catalog.find(self.scenarios, path)]

    def scenario_of(self, run: "RunStarted", run_dir: Path) -> Scenario | None:
        """Return the scenario that a run was made from: that of the named file, while it is there, else by its name."""
        if run.command:
            return self._command_of(run)
        from tuilab.runs.command_line import file_of

        file = (
            os.path.realpath(named) if (named := file_of(run)) and not is_imported(run_dir) else ""
        )
        if file:
            self.take_file(file)
        same = [one for one in self.scenarios if one.id == run.scenario]
        return next((one for one in same if one.path == file), next(iter(same), None))

    def _command_of(self, run: "RunStarted") -> Scenario:
        """Return the command of the user's that a run was of, which is listed from then on."""
        from tuilab.tui.state.own import own_commands

        command = own_commands.of_run(run)
        known = {one.path: one for one in self.commands}
        if command.path not in known:
            self.commands = [command, *self.commands]
        return known.get(command.path, command)

    @property
    def listed(self) -> list[Scenario]:
        """What the Lab lists: the user's own commands first, as long as there are any."""
        return (
            [*self.commands, *self.scenarios]
            if len(self.commands) > 1
            else [*self.scenarios, *self.commands]
        )

    def read_commands(self) -> bool:
        """Read which commands of the user's ran last, and say whether that is news."""
        from tuilab.tui.state.own import own_commands

        found: list[Scenario] = [*own_commands.last(self.past, self.root)]
        before, self.commands = self.commands, found
        return found != before

    def read_again(self) -> bool:
        """Read the catalogue again where a file came, went or changed, and say so; a scenario that says the same stays."""
        try:
            stamps = catalog.stamps(self.folders) | {file: _stamp(file) for file in self._files}
            if stamps == self._stamps:
                return False
            before = {one.path: one for one in self.scenarios}
            found = [
                before[one.path] if before.get(one.path) == one else one for one in self._load()
            ]
        except TuilabError:  # a folder or a file has gone: what it held is known as it was
            return False
        self._stamps = stamps
        has_changed = [*map(id, found)] != [*map(id, self.scenarios)]
        self.scenarios = found
        self.__dict__.pop("topics", None)
        return has_changed

    @cached_property
    def topics(self) -> dict[str, str]:
        """What each topic is about."""
        return catalog.topics(self.folders)

    def statuses(self) -> dict[str, ScenarioStatus]:
        """Return the status of each scenario that has runs here."""
        return statuses(self.index)

    def past(self, run_dir: Path) -> "PastRun":
        """Return a run as the Lab shows it; a finished one is read once."""
        from tuilab.runs.entry import is_newborn
        from tuilab.runs.past_runs import read_past_run

        past = self._past.get(run_dir.name)
        if past is None:
            past = read_past_run(run_dir)
            if not (past.entry.is_running or is_newborn(run_dir.name)):
                self._past[run_dir.name] = past
        return past

    def start(self, order: "RunOrder") -> Path:
        """Start a run, which may wait for its turn in the queue, and return its folder."""
        from tuilab.engine import launch

        order.waits = waits(order)
        spare, self._spare = self._spare, None
        run_dir, _ = launch.start(order, spare)
        self.started.append(run_dir.name)
        return run_dir

    def prepare(self) -> None:
        """Keep a spare process ready for the next run, so that it starts at once; not to be called while a run goes on."""
        if self._spare is None:
            from tuilab.engine import spare

            self._spare = spare.prepare()

    def leave(self) -> None:
        """Give back what was kept ready."""
        if self._spare is not None:
            self._spare.dismiss()
            self._spare = None

    def ended(self) -> "list[RunEntry]":
        """Return what is known of the runs started from here that are over since this was asked last, in their order."""
        found: list[RunEntry] = []
        for name in self.started[self._told_ended :]:
            entry = self.index.entry(name)
            if entry.is_running:
                break
            found.append(entry)
        self._told_ended += len(found)
        return found

    def is_running(self) -> bool:
        """Whether a run that was started from here goes on."""
        return any(self.is_going_on(self.root / run) for run in reversed(self.started))

    def going_on(self) -> "list[RunEntry]":
        """Return the runs that were started from here and go on."""
        return [entry for entry in map(self.index.entry, self.started) if entry.is_running]

    def is_going_on(self, run_dir: Path) -> bool:
        return self.index.entry(run_dir.name).is_running


def waits(order: "RunOrder") -> bool:
    """Say whether a run that is started here waits for its turn; a command that is watched begins as without tuilab."""
    return order.command is None or bool(order.command.arms)


def _stamp(file: str) -> str:
    """Return what changes when a file does; of one that is gone nothing."""
    try:
        seen = os.stat(file)
    except OSError:
        return ""
    return f"{seen.st_mtime_ns} {seen.st_size} {seen.st_ino}"
