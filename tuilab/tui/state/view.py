"""The view of the charts of a screen, and the object that keeps it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tuilab.tui.state.session import Session
from tuilab.tui.state.settings import keep_charts, recall_charts

Window = tuple[float, float]
"""The part of the x axis that a chart shows, in its steps or seconds."""


class Spot(NamedTuple):
    """A moment on the clock of the records, and a window of a chart that shows it."""

    t: int
    window: Window | None


@dataclass(frozen=True)
class View:
    """The user's choices for all charts, and the window of each chart by its name.

    A chart without a window shows its whole x axis.
    """

    is_log: bool | None = None  # None: as the data suggests
    is_log_x: bool | None = None  # None: as the scenario says
    is_smooth: bool = False
    is_smoother: bool = False  # over five times as many points
    is_timed: bool = False
    has_other_gpus: bool = False  # also the GPUs that the run does not use
    has_others: bool = False  # also the curves of other runs, dimmed
    repeat: int = 0  # the one that is in front, counted from 1; 0: all repeats
    cursor_t: int | None = None  # one cursor for all charts and for the panes without an axis
    windows: Mapping[str, Window] = field(default_factory=dict)
    words: str = ""  # the name of a shown chart contains all of them
    page: int = 0  # of the charts that match

    def with_windows(self, windows: Mapping[str, Window | None]) -> "View":
        """Return a view with other windows of some charts; None shows the whole x axis."""
        merged = {}
        for name, window in {**self.windows, **windows}.items():
            if window is not None:
                merged[name] = window
        return replace(self, windows=merged)

    def with_cursor(self, chart: str, spot: Spot) -> "View":
        """Return a view with the cursor at a spot of a chart, which then shows it."""
        return replace(self.with_windows({chart: spot.window}), cursor_t=spot.t)

    def matching(self, names: Sequence[str]) -> list[str]:
        """Return the names that contain all words of the filter, in upper or lower case."""
        words = self.words.lower().split()
        matching = []
        for name in names:
            lower_name = name.lower()
            if all(word in lower_name for word in words):
                matching.append(name)
        return matching

    def page_of(self, names: Sequence[str], most: int) -> range:
        """Return the places of the current page among the names that match.

        Pages go round: after the last page comes the first one.
        """
        count = len(self.matching(names))
        page_count = max(math.ceil(count / most), 1)
        page = self.page % page_count
        first = page * most
        return range(first, min(first + most, count))

    def charts(self, names: Sequence[str], most: int) -> list[str]:
        """Return the names that have a chart now, at most `most`."""
        places = self.page_of(names, most)
        return self.matching(names)[places.start : places.stop]


class ViewModel:
    """Keeps the view of a run, stores it in the settings, and redraws after each change.

    The action `look('toggle_smooth')` calls `toggle_smooth()`.
    """

    def __init__(self, session: Session, show: Callable[[], None]) -> None:
        settings = session.settings
        self.view = View(
            is_smooth=settings.is_smooth,
            is_timed=settings.is_timed,
            has_others=settings.has_others,
        )
        self.scenario = ""
        self._session = session
        self._show = show

    def recall(self, scenario: str) -> None:
        """Choose the charts that the user chose for this scenario last time."""
        self.scenario = scenario
        words, page = recall_charts(self._session.settings.charts, scenario)
        self.view = replace(self.view, words=words, page=page)

    def change(self, **changes: Any) -> None:
        """Change some fields of the view."""
        self.apply(replace(self.view, **changes))

    def apply(self, view: View) -> None:
        """Use a view, store what the settings keep of it, and redraw."""
        self.view = view
        settings = self._session.settings
        settings.is_smooth = view.is_smooth
        settings.is_timed = view.is_timed
        settings.has_others = view.has_others
        keep_charts(settings.charts, self.scenario, view.words, view.page)
        self._show()

    def toggle_smooth(self) -> str:
        """Switch from raw values to smoothed ones, then to smoother ones, then back.

        Return a message about the new state.
        """
        if not self.view.is_smooth:
            self.change(is_smooth=True, is_smoother=False)
            return "light smoothing; raw values stay visible"
        if not self.view.is_smoother:
            self.change(is_smoother=True)
            return "strong smoothing; raw values stay visible"
        self.change(is_smooth=False, is_smoother=False)
        return "smoothing off"

    def toggle_gpus(self) -> None:
        """Switch between the GPUs of the run and all GPUs of the machine."""
        self.change(has_other_gpus=not self.view.has_other_gpus)

    def toggle_others(self) -> None:
        """Show or hide the curves of other runs, dimmed behind those of this run."""
        self.change(has_others=not self.view.has_others)
