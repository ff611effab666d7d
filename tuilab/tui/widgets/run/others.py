"""The runs beside the one that a screen shows: those whose curves lie behind its own, and those that go on."""

from collections.abc import Callable
from pathlib import Path

from tuilab.text.display import join
from tuilab.tui.state.other_runs.live_runs import LiveRuns
from tuilab.tui.widgets.run.panes import Panes
from tuilab.tui.widgets.run.view_controller import ViewController

_NOTHING = "nothing to show: this scenario has no baseline, no other running run and no earlier successful run"


class Others:
    """One for a screen; `tell` says a sentence at its edge, which is a problem or is not."""

    def __init__(
        self,
        neighbours: LiveRuns,
        panes: Panes,
        views: ViewController,
        tell: Callable[[str, bool], None],
    ) -> None:
        self._neighbours = neighbours
        self._behind = panes.behind
        self._panes = panes
        self._views = views
        self._tell = tell
        self._is_asked = False  # the user waits to be told what lies behind

    def look(self) -> None:
        """Look which runs go on, and what lies behind, which may have changed while nobody looked."""
        self._neighbours.look(wants_reference=self._is_wanted)

    def look_again(self) -> None:
        """Look which runs go on."""
        self._neighbours.look()

    def take(self, message: LiveRuns.Seen) -> None:
        """Take in what was seen, and have it behind."""
        self._neighbours.take(message)
        before = self._behind.labels
        self._behind.put(self._neighbours.behind() if self._is_wanted else [])
        if self._behind.labels != before:
            self._panes.show_behind()
        if self._is_asked and message.has_reference:
            self._is_asked = False
            self._tell(
                f"shown dimmed: {join(self._behind.labels)}" if self._behind.labels else _NOTHING,
                False,
            )

    def read(self) -> bool:
        """Take in what is new of the runs behind; say whether anything was."""
        if not self._is_wanted:
            self._behind.close()
        has_news = self._behind.read()
        if self._behind.problem:
            self._tell(self._behind.problem, True)
            self._behind.problem = ""
        return has_news

    def toggle(self) -> None:
        """Have other runs behind this one, or none."""
        self._views.toggle_others()
        self._is_asked = self._is_wanted
        if self._is_wanted:
            self.look()
        else:
            self._tell("only this run", False)

    @property
    def is_caught_up(self) -> bool:
        """Whether all that lies behind was read as far as it goes."""
        return self._behind.is_caught_up

    def next(self, step: int) -> Path | None:
        """Return the run that goes on so many places after this one; None where there is no other."""
        return self._neighbours.next(step)

    def words(self, *, is_going_on: bool) -> str:
        """Return that others go on."""
        return self._neighbours.words(is_going_on=is_going_on)

    @property
    def _is_wanted(self) -> bool:
        return self._views.view.has_others
