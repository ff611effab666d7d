"""Which of the names that a run logs have a chart now: those that contain the words typed, a page of them at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_LONGEST = 200  # characters of words that are kept
_SCENARIOS = 100  # whose choice is kept


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
