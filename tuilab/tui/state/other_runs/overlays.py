"""The runs whose curves lie behind those of another: one that is over is read once, one that goes on is followed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.errors import TuilabError
from tuilab.record.series import Series
from tuilab.runs.run_name import RunName
from tuilab.tui.state.run_source import LiveRun

MOST = 4  # runs behind one: more are not told apart


@dataclass
class _Read:
    """A run that is read, in portions, as the one is that is shown."""

    run: LiveRun
    label: str
    is_done: bool = False


@dataclass(frozen=True)
class OverlaidCurve:
    """A curve of another run, whose seconds are counted from `start_t`."""

    label: str  # which run it is of
    series: Series
    start_t: int


@dataclass
class Overlays:
    """One for a screen; empty while the user wants none."""

    problem: str = ""  # why one of them is not read any further
    _runs: dict[Path, _Read] = field(default_factory=dict)

    def put(self, wanted: Sequence[tuple[Path, str]]) -> None:
        """Have these runs behind, each with a word that says which it is; those that are here stay as they were read."""
        kept = dict(wanted[:MOST])
        for gone in self._runs.keys() - kept.keys():
            self._runs.pop(gone).run.close()
        for run_dir, word in kept.items():
            label = f"{word} {RunName(run_dir.name).id}".strip()
            if run_dir in self._runs:
                self._runs[run_dir].label = label
            else:
                self._add(run_dir, label)

    def read(self) -> bool:
        """Take in what is new, for a moment at most; say whether anything was."""
        has_news = False
        for one in self._runs.values():
            if not one.is_done:
                has_news |= self._read(one)
        return has_news

    def close(self) -> None:
        """Have none behind."""
        self.put([])

    @property
    def is_caught_up(self) -> bool:
        """Whether all that there is for now was read."""
        return all(one.is_done or one.run.is_caught_up for one in self._runs.values())

    @property
    def labels(self) -> list[str]:
        """Which runs they are."""
        return [one.label for one in self._runs.values()]

    def curves(self, name: str) -> list[OverlaidCurve]:
        """Return their curves of a name, one an arm: of the first process that logged it, or the last of a run that goes on."""
        found: list[OverlaidCurve] = []
        for one in self._runs.values():
            by_arm: dict[str, Series] = {}
            for series in one.run.summary.series.values():
                if series.name == name and not (one.is_done and series.arm in by_arm):
                    by_arm[series.arm] = series
            found += [
                OverlaidCurve(one.label, series, one.run.summary.first_t)
                for series in by_arm.values()
            ]
        return found

    def _add(self, run_dir: Path, label: str) -> None:
        try:
            self._runs[run_dir] = _Read(LiveRun(run_dir), label)
        except TuilabError as problem:
            self.problem = str(problem)

    def _read(self, one: _Read) -> bool:
        try:
            has_news = one.run.read()
        except TuilabError as problem:
            self.problem, one.is_done = str(problem), True
            return False
        if one.run.is_over:
            one.run.close()
            one.is_done = True
        return has_news
