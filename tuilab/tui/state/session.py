"""The session of the app: the scenarios, the folder of runs, the settings, and how runs start.

Modules that only runs need are imported with the first run, which keeps the first picture fast.
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
    """The session of the app. The screens ask it instead of reading files themselves."""

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
        self.is_read_only = is_read_only  # nothing can be started, stopped, changed or written
        self.index = Index(root, is_kept=not is_read_only)
        self.folders = folders
        self.settings = settings
        self.fps = fps  # pictures of new data in a second
        self.is_learning = False  # the screens open at the next lesson
        self.started: list[str] = []  # the runs started here, which continue after the app quits
        self.watched: dict[str, None] = {}  # the runs that were opened here
        self._files: list[str] = []  # of scenarios outside the folders that have runs
        self.commands: list[Scenario] = []  # the user's last commands, and the form of a new one
        self.calibration: Subcommand | None = None  # the last one that was started here
        self._reported_count = 0  # of the started runs, those that `ended` has returned
        self._spare: Spare | None = None
        self._past: dict[str, PastRun] = {}  # finished runs that the Lab has shown, by name
        self._stamps: dict[str, str] | None = None  # of the scenario files as they were read last

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """The catalogue as it was read last."""
        return self._load()

    def _load(self) -> list[Scenario]:
        """Return the scenarios of the folders, then those of files outside that still exist."""
        scenarios = catalog.load(self.folders)
        extra_scenarios = []
        for file in self._files:
            if os.path.isfile(file):
                extra_scenarios += catalog.find(scenarios, file)
        return [*scenarios, *extra_scenarios]

    def take_file(self, file: str) -> None:
        """Add the scenario of a file to the catalogue, even if it is in none of the folders.

        Do nothing if it is in the catalogue already, or if there is no such file.
        """
        path = os.path.realpath(file)
        is_new = all(scenario.path != path for scenario in self.scenarios)
        if is_new and os.path.isfile(path):
            new_scenarios = catalog.find(self.scenarios, path)
            self._files.append(path)
            self.scenarios = [*self.scenarios, *new_scenarios]

    def scenario_of(self, run: "RunStarted", run_dir: Path) -> Scenario | None:
        """Return the scenario of a run: that of its file if it exists, else one of its name.

        Return None without either. The scenario is added to the catalogue, and a command of the
        user to the list of commands.
        """
        if run.command:
            return self._command_of(run)
        from tuilab.runs.command_line import file_of

        file = ""
        named_file = file_of(run)
        if named_file and not is_imported(run_dir):
            file = os.path.realpath(named_file)
            self.take_file(file)
        namesakes = [scenario for scenario in self.scenarios if scenario.id == run.scenario]
        for scenario in namesakes:
            if scenario.path == file:
                return scenario
        return namesakes[0] if namesakes else None

    def _command_of(self, run: "RunStarted") -> Scenario:
        """Return the user's command of a run, and list it from now on."""
        from tuilab.tui.state.own import own_commands

        command = own_commands.of_run(run)
        for listed_command in reversed(self.commands):
            if listed_command.path == command.path:
                return listed_command
        self.commands = [command, *self.commands]
        return command

    @property
    def listed(self) -> list[Scenario]:
        """The list of the Lab. The user's commands come first, if any command has run."""
        if len(self.commands) > 1:
            return [*self.commands, *self.scenarios]
        return [*self.scenarios, *self.commands]

    def read_commands(self) -> bool:
        """Read the user's last commands. Return whether they have changed."""
        from tuilab.tui.state.own import own_commands

        commands: list[Scenario] = [*own_commands.last(self.past, self.root)]
        old_commands = self.commands  # read late: the screens may have added one meanwhile
        self.commands = commands
        return commands != old_commands

    def read_again(self) -> bool:
        """Read the catalogue again if a file has changed. Return whether a scenario has changed.

        A scenario that is equal stays the same object, by which the screens recognise it. If a
        folder or a file cannot be read any more, the old catalogue stays.
        """
        try:
            stamps = catalog.stamps(self.folders)
            for file in self._files:
                stamps[file] = _stamp(file)
            if stamps == self._stamps:
                return False
            scenarios = self._load_reusing_old()
        except TuilabError:
            return False
        self._stamps = stamps
        old_ids = [id(scenario) for scenario in self.scenarios]
        has_changed = [id(scenario) for scenario in scenarios] != old_ids
        self.scenarios = scenarios
        self.__dict__.pop("topics", None)  # they are read again with the next access
        return has_changed

    def _load_reusing_old(self) -> list[Scenario]:
        """Return the catalogue as it is now, with the old object of each scenario that is equal."""
        old_scenarios = {scenario.path: scenario for scenario in self.scenarios}
        scenarios = []
        for scenario in self._load():
            old_scenario = old_scenarios.get(scenario.path)
            if old_scenario == scenario:
                scenarios.append(old_scenario)
            else:
                scenarios.append(scenario)
        return scenarios

    @cached_property
    def topics(self) -> dict[str, str]:
        """A sentence about each topic."""
        return catalog.topics(self.folders)

    def statuses(self) -> dict[str, ScenarioStatus]:
        """Return the status of each scenario that has runs here."""
        return statuses(self.index)

    def past(self, run_dir: Path) -> "PastRun":
        """Return a run as the Lab shows it. A finished run is read only once."""
        from tuilab.runs.entry import is_newborn
        from tuilab.runs.past_runs import read_past_run

        past = self._past.get(run_dir.name)
        if past is None:
            past = read_past_run(run_dir)
            if not (past.entry.is_running or is_newborn(run_dir.name)):
                self._past[run_dir.name] = past
        return past

    def start(self, order: "RunOrder") -> Path:
        """Start a run, which may be queued at first, and return its folder.

        This uses up the spare process, if one is ready. The run is listed in `started`.
        """
        from tuilab.engine import launch

        order.waits = waits(order)
        spare = self._spare
        self._spare = None
        run_dir, _ = launch.start(order, spare)
        self.started.append(run_dir.name)
        return run_dir

    def prepare(self) -> None:
        """Start a spare process, which loads torch meanwhile, so that the next run starts at once.

        It must not be called while a run is running, because it would disturb the run.
        """
        if self._spare is None:
            from tuilab.engine import spare

            self._spare = spare.prepare()

    def leave(self) -> None:
        """End the spare process."""
        if self._spare is not None:
            self._spare.dismiss()
            self._spare = None

    def ended(self) -> "list[RunEntry]":
        """Return the runs started here that have ended since the last call, in their order.

        A run counts only when all runs that were started before it have ended.
        """
        entries: list[RunEntry] = []
        for name in self.started[self._reported_count :]:
            entry = self.index.entry(name)
            if entry.is_running:
                break
            entries.append(entry)
        self._reported_count += len(entries)
        return entries

    def is_running(self) -> bool:
        """Return whether a run that was started here is running or queued."""
        return any(self.is_going_on(self.root / run) for run in reversed(self.started))

    def going_on(self) -> "list[RunEntry]":
        """Return the runs that were started here and are running or queued."""
        entries = [self.index.entry(name) for name in self.started]
        return [entry for entry in entries if entry.is_running]

    def is_going_on(self, run_dir: Path) -> bool:
        """Return whether a run in the folder of runs is running or queued."""
        return self.index.entry(run_dir.name).is_running


def waits(order: "RunOrder") -> bool:
    """Return whether a new run is queued. A watched command starts at once, as without tuilab."""
    return order.command is None or bool(order.command.arms)


def _stamp(file: str) -> str:
    """Return a text that changes when a file does; nothing if the file is gone."""
    try:
        status = os.stat(file)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"
