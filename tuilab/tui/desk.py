"""What every screen has at hand: the scenarios, the folder of runs, the settings, and how a run is started."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tuilab import catalog, history, launch, store
from tuilab.errors import TuilabError
from tuilab.orders import RunOrder
from tuilab.scenario import Scenario
from tuilab.tui.settings import Settings
from tuilab.watch import Watch


class Desk:
    """One for the app; the screens ask it instead of the disk."""

    def __init__(self, root: Path, folders: Sequence[str], settings: Settings) -> None:
        self.root = root
        self.folders = folders
        self.settings = settings
        self.started: list[str] = []  # the runs started from here, which may go on after we leave
        self.guesses: dict[str, str] = {}  # by scenario, for its next run
        self.predictions: dict[str, str] = {}  # by run: the guess it was started with
        self.waiting: list[RunOrder] = []  # runs to be started, each when the one before is over

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """The catalogue, read once."""
        return catalog.load(self.folders)

    def verdicts(self) -> dict[str, str]:
        """Return, by scenario, the last verdict on this box."""
        return history.last_verdicts(str(self.root))

    def start(self, order: RunOrder) -> Path:
        """Start a run and return its folder."""
        run_dir, _ = launch.start(order)
        self.started.append(run_dir.name)
        if guess := self.guesses.pop(order.scenario, ""):
            self.predictions[run_dir.name] = guess
        return run_dir

    def is_running(self) -> bool:
        """Whether the run that was started last from here goes on."""
        return bool(self.started) and state_of(self.root / self.started[-1]) in ("starting", "running", "stopping")

    def runs(self) -> list[Path]:
        """Return the folders of all runs, the newest first."""
        return list(store.list_runs(self.root))


def state_of(run_dir: Path) -> str:
    """Return the state of a run as it is now; `lost` when it cannot be read."""
    try:
        watch = Watch(run_dir)
        while watch.refresh():
            pass
        state = watch.state()
        watch.close()
    except TuilabError:
        return "lost"
    return state
