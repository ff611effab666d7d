"""The processes that live through the soak test: the screens, and the one that injects faults."""

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.conftest import TUILAB
from tests.engine import until
from tests.faults.sites import Site
from tests.tui.terminals import Terminal
from tuilab.runs.run_name import RunName


@dataclass
class Meter:
    """Measure descriptors, memory and zombies of a long-lived process."""

    name: str
    pid: int
    fds: int = 0  # after the first steps
    rss: int = 0  # bytes, after the first steps
    most_rss: int = 0  # bytes

    def calibrate(self) -> None:
        self.fds = self.count_fds()
        self.rss = self.read_rss()

    def count_fds(self) -> int:
        entries = Path(f"/proc/{self.pid}/fd")
        return len(os.listdir(entries)) if entries.exists() else 0

    def read_rss(self) -> int:
        try:
            rss: int = psutil.Process(self.pid).memory_info().rss
        except psutil.NoSuchProcess:
            return 0
        self.most_rss = max(self.most_rss, rss)
        return rss

    def zombies(self) -> int:
        children = psutil.Process(self.pid).children(recursive=True)
        return sum(child.status() == psutil.STATUS_ZOMBIE for child in children)

    def kinds_of_fds(self) -> Counter[str]:
        """Return what its descriptors are, for the message when there are too many."""
        entries = Path(f"/proc/{self.pid}/fd").iterdir()
        return Counter(os.readlink(entry) for entry in entries if entry.is_symlink())


@dataclass
class Screens:
    """The screens, open on the folder of runs from the first run to the last."""

    terminal: Terminal
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        self.meter = Meter("the screens", psutil.Process(self.terminal.process.pid).pid)

    def look_on(self, newest: Path | None) -> None:
        """Look at the list of runs and at the newest run, and go back to the scenarios."""
        self.terminal.forget()
        self._press("h", "tuilab  history")
        if newest is not None:
            self._press("\r", f"· {RunName(newest.name).id}")
            self._press("\x1b", "tuilab  history")
        self._press("\x1b", "tuilab  lab")

    def _press(self, keys: str, shown: str) -> None:
        """Type keys, and wait until the screen shows a text."""
        self.terminal.type(keys)
        self.terminal.wait_for(shown)

    def wait_for_scipy(self) -> None:
        """Wait until scipy is loaded: the first run with several repeats loads it in the background.

        It needs 15 MB. While a user changes screens without a pause, loading takes up to 15 s.
        """
        last_library = "scipy/special/_ellip_harm_2"
        until(lambda: last_library in Path(f"/proc/{self.meter.pid}/maps").read_text())

    def close(self) -> None:
        self.terminal.type("q")
        self.terminal.close()


def open_screens(site: Site) -> Screens:
    """Open the screens without the mark of the site: they are not among the leftover processes."""
    environment = {name: value for name, value in site.environment.items() if name != "TUILAB_SITE"}
    terminal = Terminal(TUILAB, "--fps", "30", env=environment)
    terminal.wait_for("history")
    return Screens(terminal)
