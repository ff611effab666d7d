"""The settings that the screens keep. Settings that cannot be read or written are left out.

Several apps may be open at once. Each writes only the settings that were changed in it.
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
# A zoom is not kept: at the next start, the other panes should be visible.
_NOT_KEPT = ("is_zoomed", "values_read")
_LOCK_TIMEOUT_S = 1.0
_MAX_WORDS = 200  # characters of a filter that are kept
_MAX_SCENARIOS = 100  # whose choice of charts is kept


@dataclass
class Settings:
    """Choices of the user that are kept for the next start."""

    theme: str = "tuilab-dark"
    scenario: str = ""  # the last chosen one
    part: str = "lesson"  # the last open part of the Lab screen
    symbols: str = ""  # braille, block or ascii; empty: as the locale allows
    pane: str = ""  # the last focused pane of the Run screen
    is_zoomed: bool = False  # whether that pane fills the screen; not kept
    is_smooth: bool = False  # whether curves are smoothed
    is_timed: bool = False  # whether the x axis is seconds, not steps
    has_others: bool = False  # whether other runs are overlaid
    has_seen_hint: bool = False
    # The last choice of charts of each scenario, as `keep_charts` stores it.
    charts: dict[str, Any] = field(default_factory=dict)
    # The settings as they were read; empty for new settings.
    values_read: dict[str, Any] = field(default_factory=dict, compare=False)


def load(*, move_old: bool = True) -> Settings:
    """Return the kept settings; the defaults if the file cannot be used.

    `move_old`: move the file of the first versions to its new place before.
    """
    settings = None
    with suppress(TuilabError):
        if move_old:
            _move_old_file()
        settings = user_data.read(places.settings_file(), _decode, _LIMIT)
    if settings is None:
        settings = Settings()
    settings.values_read = deepcopy(_kept(settings))
    return settings


def _move_old_file() -> None:
    """Move the file of the first versions to its new place.

    It stays if there is a new file already, or if it belongs to another user.
    """
    old_file = places.old_settings_file()
    with suppress(OSError, Unusable):
        has_new_file = os.path.lexists(places.settings_file())
        if not has_new_file and os.lstat(old_file).st_uid == os.geteuid():
            save(read_small(old_file, _decode, _LIMIT))
            os.unlink(old_file)


def save(settings: Settings) -> None:
    """Write the settings that have changed. New settings are written completely.

    If they cannot be written, they are lost without an error.
    """
    with suppress(OSError, TuilabError):
        path = places.settings_file()
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with locked(folder, _LOCK_TIMEOUT_S):  # another app may quit at the same moment
            user_data.update(path, _changes(settings), _LIMIT)


def _changes(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from those that were read."""
    old_values = settings.values_read
    changes = {}
    for name, value in _kept(settings).items():
        if name not in old_values or value != old_values[name]:
            changes[name] = value
    if old_values and "charts" in changes:
        # Another app may have changed the charts. `save` has the lock, and moving an old file
        # would save as well.
        current = load(move_old=False).charts
        changes["charts"] = _merge_charts(current, old_values["charts"], settings.charts)
    return changes


def _kept(settings: Settings) -> dict[str, Any]:
    return {name: value for name, value in vars(settings).items() if name not in _NOT_KEPT}


def _decode(data: bytes) -> Settings:
    """Return the settings in a file. A setting of a wrong type has its default.

    Another version of tuilab, or an edit by hand, may have written it.
    """
    values = user_data.fields_of(data)
    valid: dict[str, Any] = {}
    for name, default in _kept(Settings()).items():
        if type(values.get(name)) is type(default):
            valid[name] = values[name]
    return Settings(**valid)


def recall_charts(charts: dict[str, Any], scenario: str) -> tuple[str, int]:
    """Return the words and the page of charts that were kept for a scenario.

    Without a usable choice, all charts are shown from the first page on.
    """
    match charts.get(scenario):
        case [str(words), int(page)]:
            return words[:_MAX_WORDS], page
    return "", 0


def keep_charts(charts: dict[str, Any], scenario: str, words: str, page: int) -> None:
    """Keep the choice of charts of a scenario. The oldest choices are forgotten."""
    charts.pop(scenario, None)
    if words or page:
        charts[scenario] = [words[:_MAX_WORDS], page]
    _forget_oldest(charts)


def _merge_charts(
    current: dict[str, Any], old: dict[str, Any], new: dict[str, Any]
) -> dict[str, Any]:
    """Return the current choices with the changes from `old` to `new`. Changed ones come last."""
    merged = dict(current)
    for scenario in {**old, **new}:
        if old.get(scenario) != new.get(scenario):
            merged.pop(scenario, None)
            if scenario in new:
                merged[scenario] = new[scenario]
    _forget_oldest(merged)
    return merged


def _forget_oldest(charts: dict[str, Any]) -> None:
    for scenario in list(charts)[:-_MAX_SCENARIOS]:
        del charts[scenario]
