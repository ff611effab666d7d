"""The other runs that a screen of a run shows: overlaid curves, and which runs are running."""

from collections.abc import Callable
from pathlib import Path

from tuilab.text.display import join
from tuilab.tui.state.other_runs.live_runs import LiveRuns
from tuilab.tui.widgets.run.panes import Panes
from tuilab.tui.widgets.run.view_controller import ViewController

_NOTHING = (
    "nothing to show: this scenario has no baseline, no other running run and no earlier "
    "successful run"
)


class OtherRuns:
    """Connects the live runs of a screen with its overlaid curves.

    `tell` shows the user a sentence; its second argument says whether that is a problem.
    """

    def __init__(
        self,
        live_runs: LiveRuns,
        panes: Panes,
        views: ViewController,
        tell: Callable[[str, bool], None],
    ) -> None:
        self._live_runs = live_runs
        self._overlays = panes.overlays
        self._panes = panes
        self._views = views
        self._tell = tell
        self._must_name_overlays = False  # because the user switched them on

    def look(self) -> None:
        """Look for running runs and for overlaid runs, which may have changed meanwhile."""
        self._live_runs.look(wants_reference=self._is_on)

    def look_again(self) -> None:
        """Look for running runs."""
        self._live_runs.look()

    def take(self, message: LiveRuns.Seen) -> None:
        """Use the runs that were found, and overlay their curves."""
        self._live_runs.take(message)
        old_labels = self._overlays.labels
        if self._is_on:
            self._overlays.put(self._live_runs.runs_to_overlay())
        else:
            self._overlays.close()
        labels = self._overlays.labels
        if labels != old_labels:
            self._panes.show_overlays()
        if self._must_name_overlays and message.has_reference:
            self._must_name_overlays = False
            if labels:
                self._tell(f"shown dimmed: {join(labels)}", False)
            else:
                self._tell(_NOTHING, False)

    def read(self) -> bool:
        """Read what is new of the overlaid runs. Return whether anything was."""
        if not self._is_on:
            self._overlays.close()
        has_news = self._overlays.read()
        if self._overlays.problem:
            self._tell(self._overlays.problem, True)
            self._overlays.problem = ""
        return has_news

    def toggle(self) -> None:
        """Overlay the curves of other runs, or remove them."""
        self._views.toggle_others()
        self._must_name_overlays = self._is_on
        if self._is_on:
            self.look()
        else:
            self._tell("only this run", False)

    @property
    def is_caught_up(self) -> bool:
        """Whether the overlaid runs were read to their ends."""
        return self._overlays.is_caught_up

    def next(self, step: int) -> Path | None:
        """Return the running run `step` places after this one; None if there is no other."""
        return self._live_runs.next(step)

    def words(self, *, is_going_on: bool) -> str:
        """Return words about other running runs; nothing if there are none."""
        return self._live_runs.words(is_going_on=is_going_on)

    @property
    def _is_on(self) -> bool:
        return self._views.view.has_others
