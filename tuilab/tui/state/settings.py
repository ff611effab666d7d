"""What the screens remember from one time to the next; whatever cannot be read or written is done without.

Several screens may be open at once: each writes down what was changed on it, and leaves the rest to the others.
"""

import os
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tuilab.errors import TuilabError
from tuilab.storage import places, user_data
from tuilab.storage.files import Unusable, locked, read_small

_LIMIT = 64 * 1024
_NOT_KEPT = (
    "is_zoomed",
    "found",
)  # whoever comes back wants to see that there are other panes; `found` is what was read
_PATIENCE_S = 1.0
_LONGEST = 200  # characters of words that are kept
_SCENARIOS = 100  # whose choice of charts is kept


@dataclass
class Settings:
    """Choices of the user that the screens made for good."""

    theme: str = "tuilab-dark"
    scenario: str = ""  # the one chosen last
    part: str = "lesson"  # of the Lab screen that was open last
    symbols: str = ""  # braille, block or ascii; "": what the locale allows
    pane: str = ""  # of the Run screen that had the focus last
    is_zoomed: bool = False  # whether that pane fills the screen; of this sitting alone
    is_smooth: bool = False  # lines of a run
    is_timed: bool = False  # seconds along their axis, not steps
    has_others: bool = False  # the curves of other runs behind them
    has_seen_hint: bool = False
    charts: dict[str, Any] = field(
        default_factory=dict
    )  # of each scenario: which were shown last, as `keep_charts` has it
    found: dict[str, Any] = field(
        default_factory=dict, compare=False
    )  # what of all this was read; of new ones nothing


def load(*, is_read_only: bool = False) -> Settings:
    """Return the settings as they were left; of a file of no use the defaults."""
    found = None
    with suppress(TuilabError):
        if not is_read_only:
            _move_old()
        found = user_data.read(places.settings_file(), _decode, _LIMIT)
    found = found or Settings()
    found.found = deepcopy(_kept(found))
    return found


def _move_old() -> None:
    """Bring the file of the first versions to its place, unless there is one already, or it is somebody else's."""
    old, place = places.old_settings_file(), places.settings_file()
    with suppress(OSError, Unusable):
        if not os.path.lexists(place) and os.lstat(old).st_uid == os.geteuid():
            found = read_small(old, _decode, _LIMIT)
            save(found)
            os.unlink(old)


def save(settings: Settings) -> None:
    """Keep what of the settings was changed; new ones are kept whole."""
    with suppress(OSError, TuilabError):
        path = places.settings_file()
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with locked(folder, _PATIENCE_S):  # others may be left in this moment
            user_data.update(path, _changes(settings), _LIMIT)


def _changes(settings: Settings) -> dict[str, Any]:
    now, found = _kept(settings), settings.found
    changes = {
        name: value for name, value in now.items() if name not in found or value != found[name]
    }
    if found and "charts" in changes:
        changes["charts"] = _merge_charts(
            load(is_read_only=True).charts, found["charts"], settings.charts
        )
    return changes


def _kept(settings: Settings) -> dict[str, Any]:
    return {name: value for name, value in vars(settings).items() if name not in _NOT_KEPT}


def _decode(data: bytes) -> Settings:
    """Take in each choice of the right kind; one that another tuilab made, or a hand broke, has its default."""
    found = user_data.fields_of(data)
    kinds = {name: type(default) for name, default in _kept(Settings()).items()}
    chosen: dict[str, Any] = {
        name: found[name] for name, kind in kinds.items() if type(found.get(name)) is kind
    }
    return Settings(**chosen)


def recall_charts(kept: dict[str, Any], scenario: str) -> tuple[str, int]:
    """Return the words and the page of charts that were kept for a scenario, else all from the first."""
    match kept.get(scenario):
        case [str(words), int(page)]:
            return words[:_LONGEST], page
    return "", 0


def keep_charts(kept: dict[str, Any], scenario: str, words: str, page: int) -> None:
    """Keep the choice of charts for a scenario; of many scenarios the last."""
    kept.pop(scenario, None)
    if words or page:
        kept[scenario] = [words[:_LONGEST], page]
    _forget_oldest(kept)


def _merge_charts(
    there: dict[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Any]:
    """Return what is kept `there` with what became other from `before` to `after`."""
    changed = [
        scenario for scenario in {**before, **after} if before.get(scenario) != after.get(scenario)
    ]
    merged = {scenario: choice for scenario, choice in there.items() if scenario not in changed}
    merged |= {scenario: after[scenario] for scenario in changed if scenario in after}
    _forget_oldest(merged)
    return merged


def _forget_oldest(kept: dict[str, Any]) -> None:
    for oldest in list(kept)[:-_SCENARIOS]:
        del kept[oldest]
