"""How the user looks at the charts of a screen: kept once, by whoever shows them; a chart is told it and draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

_LONGEST = 200  # characters of words that are kept
_SCENARIOS = 100  # whose choice is kept

Window = tuple[float, float]
"""The part of x that a chart shows, in the steps or the seconds of its axis."""


@dataclass(frozen=True)
class Selection:
    """Words that a name must all contain, and which page of the names that do."""

    words: str = ""
    page: int = 0

    def matching(self, names: Sequence[str]) -> list[str]:
        """Return the names that contain the words."""
        words = self.words.lower().split()
        return [name for name in names if all(word in name.lower() for word in words)]

    def place_of(self, name: str, names: Sequence[str]) -> int | None:
        """Return the place of a name among those that match; None where it does not."""
        matching = self.matching(names)
        return matching.index(name) if name in matching else None

    def page_of(self, names: Sequence[str], most: int) -> range:
        """Return the places of those that are shown, `most` at a time, among the names that match; pages go round."""
        count = len(self.matching(names))
        first = self.page % max(-(-count // most), 1) * most
        return range(first, min(first + most, count))

    def shown(self, names: Sequence[str], most: int) -> list[str]:
        """Return the names that are shown."""
        at = self.page_of(names, most)
        return self.matching(names)[at.start : at.stop]


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


def recalled(kept: dict[str, Any], scenario: str) -> Selection:
    """Return the choice that was kept for a scenario, else all from the first."""
    match kept.get(scenario):
        case [str(words), int(page)]:
            return Selection(words[:_LONGEST], page)
    return Selection()


def keep(kept: dict[str, Any], scenario: str, selection: Selection) -> None:
    """Keep the choice for a scenario; of many scenarios the last."""
    kept.pop(scenario, None)
    if selection != Selection():
        kept[scenario] = [selection.words[:_LONGEST], selection.page]
    _forget_oldest(kept)


def merge(there: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept `there` with what became other from `before` to `after`."""
    changed = [scenario for scenario in {**before, **after} if before.get(scenario) != after.get(scenario)]
    merged = {scenario: choice for scenario, choice in there.items() if scenario not in changed}
    merged |= {scenario: after[scenario] for scenario in changed if scenario in after}
    _forget_oldest(merged)
    return merged


def _forget_oldest(kept: dict[str, Any]) -> None:
    for oldest in list(kept)[:-_SCENARIOS]:
        del kept[oldest]
