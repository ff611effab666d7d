"""Opens a run for a view: reads and follows its journal, and says when the process that should end it is gone."""

from pathlib import Path

from tuilab import processes
from tuilab.errors import UsageError
from tuilab.events import FORMAT
from tuilab.journal import Follower, Item
from tuilab.summary import RunSummary, fold
from tuilab.text import show


class Watch:
    """A run being watched: `refresh` folds in what is new."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.summary = RunSummary()
        self.was_interrupted = False  # by the Ctrl-C of whoever watches
        try:
            self._follower = Follower(run_dir)
        except OSError as problem:
            raise UsageError(f"cannot read the run {show(run_dir.name)}: {problem.strerror}") from problem

    def refresh(self) -> list[tuple[str, Item]]:
        """Fold in a portion of what is new and return it; nothing when there is no more for now."""
        try:
            items = self._follower.read()
        except OSError as problem:
            raise UsageError(f"cannot read the run {show(self.run_dir.name)}: {problem.strerror}") from problem
        fold(items, self.summary)
        run = self.summary.run
        if run is not None and run.format > FORMAT:
            raise UsageError(f"{show(self.run_dir.name)} was recorded by a newer tuilab ({show(run.tuilab)}); upgrade this one")
        return items

    def state(self) -> str:
        """Return the recorded state, or `lost` when nobody is left who could end the run."""
        if not self.summary.is_over and self.supervisor_presence == "dead":
            while self.refresh():  # it may have written its last words before it went
                pass
            if not self.summary.is_over:
                return "lost"
        return self.summary.state

    @property
    def supervisor_presence(self) -> str:
        """Whether the supervisor is alive, dead or elsewhere (another box, whose processes cannot be seen)."""
        return processes.presence(self.summary.run.supervisor) if self.summary.run else "dead"

    @property
    def pending_bytes(self) -> int:
        return self._follower.pending_bytes

    def close(self) -> None:
        self._follower.close()


def read_run(run_dir: Path) -> RunSummary:
    """Return the summary of a run as it is now."""
    watch = Watch(run_dir)
    while watch.refresh():
        pass
    watch.close()
    return watch.summary
