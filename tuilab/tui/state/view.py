"""How the user looks at the charts of a screen: kept once, by whoever shows them; a chart is told it and draws."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tuilab.tui.state.selection import Selection

Window = tuple[float, float]
"""The part of x that a chart shows, in the steps or the seconds of its axis."""


class Spot(NamedTuple):
    """A moment on the clock of the records, and the window of a chart that has it in view."""

    t: int
    window: Window | None


@dataclass(frozen=True)
class View:
    """What the user has chosen for all charts, and of each the window, by the chart's name; without one it shows all of x."""

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
    selection: Selection = field(default_factory=Selection)  # which charts there are

    def with_windows(self, windows: Mapping[str, Window | None]) -> "View":
        """Look at other parts of x in some charts; None is all of it."""
        every = {**self.windows, **windows}
        return replace(self, windows={name: window for name, window in every.items() if window is not None})

    def with_cursor(self, chart: str, spot: Spot) -> "View":
        """Move the cursor to a spot of a chart, which has it in view then."""
        return replace(self.with_windows({chart: spot.window}), cursor_t=spot.t)
