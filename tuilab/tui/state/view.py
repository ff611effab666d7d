"""How the user looks at the charts of a screen, and the object that keeps it; a chart is given the view and draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tuilab.tui.state.session import Session
from tuilab.tui.state.settings import keep_charts, recall_charts

Window = tuple[float, float]
"""The part of x that a chart shows, in the steps or the seconds of its axis."""


class Spot(NamedTuple):
    """A moment on the clock of the records, and the window of a chart that has it in view."""

    t: int
    window: Window | None


@dataclass(frozen=True)
class View:
    """What the user has chosen for all charts, and the window of each by its name; a chart without one shows all of x."""

    is_log: bool | None = None  # None: as the data suggests
    is_log_x: bool | None = None  # None: as the scenario says
    is_smooth: bool = False
    is_smoother: bool = False  # over five times as many points
    is_timed: bool = False
    has_other_gpus: bool = False  # besides those of the run
    has_others: bool = False  # the curves of other runs behind those of this one
    repeat: int = 0  # that alone is in front, counted from 1; 0: all of them are
    cursor_t: int | None = None  # one cursor for all charts, and for what has no axis
    windows: Mapping[str, Window] = field(default_factory=dict)
    words: str = ""  # that the name of a chart must all contain
    page: int = 0  # of the charts whose names do

    def with_windows(self, windows: Mapping[str, Window | None]) -> "View":
        """Return a view of other parts of x in some charts; None is all of it."""
        every = {**self.windows, **windows}
        return replace(
            self, windows={name: window for name, window in every.items() if window is not None}
        )

    def with_cursor(self, chart: str, spot: Spot) -> "View":
        """Return a view with the cursor at a spot of a chart, which has it in view then."""
        return replace(self.with_windows({chart: spot.window}), cursor_t=spot.t)

    def matching(self, names: Sequence[str]) -> list[str]:
        """Return the names that contain the words."""
        words = self.words.lower().split()
        return [name for name in names if all(word in name.lower() for word in words)]

    def page_of(self, names: Sequence[str], most: int) -> range:
        """Return the places of those that are shown, `most` at a time, among the names that match; pages go round."""
        count = len(self.matching(names))
        first = self.page % max(-(-count // most), 1) * most
        return range(first, min(first + most, count))

    def charts(self, names: Sequence[str], most: int) -> list[str]:
        """Return the names that have a chart now, `most` at a time."""
        places = self.page_of(names, most)
        return self.matching(names)[places.start : places.stop]


class ViewModel:
    """Keeps the view of a run, here and in the settings, and has it shown after each change.

    The action `look('toggle_smooth')` is `toggle_smooth()` here.
    """

    def __init__(self, desk: Session, show: Callable[[], None]) -> None:
        kept = desk.settings
        self.view = View(
            is_smooth=kept.is_smooth, is_timed=kept.is_timed, has_others=kept.has_others
        )
        self.scenario = ""
        self._desk = desk
        self._show = show

    def recall(self, scenario: str) -> None:
        """Take the choice of charts that the user made for this scenario last time."""
        self.scenario = scenario
        words, page = recall_charts(self._desk.settings.charts, scenario)
        self.view = replace(self.view, words=words, page=page)

    def change(self, **changes: Any) -> None:
        """Change some fields of the view."""
        self.look(replace(self.view, **changes))

    def look(self, view: View) -> None:
        """Look at the run in another way."""
        self.view = view
        settings = self._desk.settings
        settings.is_smooth, settings.is_timed, settings.has_others = (
            view.is_smooth,
            view.is_timed,
            view.has_others,
        )
        keep_charts(settings.charts, self.scenario, view.words, view.page)
        self._show()

    def toggle_smooth(self) -> str:
        """Change from values to their moving average with the values behind it, to that of more of them, and back."""
        if not self.view.is_smooth:
            self.change(is_smooth=True, is_smoother=False)
            return "light smoothing; raw values stay visible"
        if not self.view.is_smoother:
            self.change(is_smoother=True)
            return "strong smoothing; raw values stay visible"
        self.change(is_smooth=False, is_smoother=False)
        return "smoothing off"

    def toggle_gpus(self) -> None:
        """Change between the GPUs of the run and all of the machine."""
        self.change(has_other_gpus=not self.view.has_other_gpus)

    def toggle_others(self) -> None:
        """Change between this run's curves alone, and those of others dim behind them."""
        self.change(has_others=not self.view.has_others)
