"""The runs whose curves are overlaid. A finished run is read once, a running one is followed.

The curves of an overlaid run are drawn dimmed behind those of the shown run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.errors import TuilabError
from tuilab.record.series import Series
from tuilab.runs.run_name import RunName
from tuilab.tui.state.run_source import LiveRun

MOST = 4  # more dimmed curves cannot be told apart


@dataclass
class _OverlaidRun:
    """A run that is read in portions, like the shown run."""

    run: LiveRun
    label: str
    is_done: bool = False


@dataclass(frozen=True)
class OverlaidCurve:
    """A curve of another run, whose seconds are counted from `start_t`."""

    label: str  # names its run
    series: Series
    start_t: int


@dataclass
class Overlays:
    """The overlaid runs of a screen. Empty while the user has switched them off."""

    problem: str = ""  # the reason why a run cannot be read
    _runs: dict[Path, _OverlaidRun] = field(default_factory=dict)

    def put(self, runs: Sequence[tuple[Path, str]]) -> None:
        """Overlay these runs, at most `MOST`, each with a word for its label.

        Other runs are removed. Runs that are there stay, with the new label. If a run cannot be
        read, it is left out, and `problem` has the reason.
        """
        words = dict(runs[:MOST])
        for run_dir in self._runs.keys() - words.keys():
            self._runs.pop(run_dir).run.close()
        for run_dir, word in words.items():
            label = f"{word} {RunName(run_dir.name).id}".strip()
            if run_dir in self._runs:
                self._runs[run_dir].label = label
            else:
                self._add(run_dir, label)

    def read(self) -> bool:
        """Read what is new, for a moment at most. Return whether anything was."""
        has_news = False
        for overlay in self._runs.values():
            if not overlay.is_done:
                has_news |= self._read(overlay)
        return has_news

    def close(self) -> None:
        """Remove all runs."""
        self.put([])

    @property
    def is_caught_up(self) -> bool:
        """Whether all runs were read to their ends."""
        return all(overlay.is_done or overlay.run.is_caught_up for overlay in self._runs.values())

    @property
    def labels(self) -> list[str]:
        """The labels of the runs."""
        return [overlay.label for overlay in self._runs.values()]

    def curves(self, name: str) -> list[OverlaidCurve]:
        """Return the curves of a metric, one for each run and arm.

        It is the curve of the first process that logged the metric; for a running run, of the last.
        """
        curves: list[OverlaidCurve] = []
        for overlay in self._runs.values():
            summary = overlay.run.summary
            by_arm: dict[str, Series] = {}
            for series in summary.series.values():
                is_known = overlay.is_done and series.arm in by_arm
                if series.name == name and not is_known:
                    by_arm[series.arm] = series
            for series in by_arm.values():
                curves.append(OverlaidCurve(overlay.label, series, summary.first_t))
        return curves

    def _add(self, run_dir: Path, label: str) -> None:
        """Begin to follow a run; if it cannot be read, keep the reason in `problem`."""
        try:
            self._runs[run_dir] = _OverlaidRun(LiveRun(run_dir), label)
        except TuilabError as problem:
            self.problem = str(problem)

    def _read(self, overlay: _OverlaidRun) -> bool:
        """Read what is new of a run, for a moment at most. Return whether anything was.

        A run that is over, or cannot be read, is not read again. In the second case, `problem` has
        the reason.
        """
        try:
            has_news = overlay.run.read()
        except TuilabError as problem:
            self.problem = str(problem)
            overlay.is_done = True
            return False
        if overlay.run.is_over:
            overlay.run.close()
            overlay.is_done = True
        return has_news
