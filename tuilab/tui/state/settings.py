"""What the screens remember from one time to the next; whatever cannot be read or written is done without."""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from tuilab import places, user_data
from tuilab.errors import TuilabError
from tuilab.files import Unusable, read_small

_LIMIT = 64 * 1024
_NOT_KEPT = ("is_zoomed",)  # whoever comes back wants to see that there are other panes


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
    charts: dict[str, Any] = field(default_factory=dict)  # of each scenario: which were shown last, as `selection` keeps it


def load(*, is_read_only: bool = False) -> Settings:
    """Return the settings as they were left; of a file of no use the defaults."""
    with suppress(TuilabError):
        if not is_read_only:
            _move_old()
        return user_data.read(places.settings_file(), _decode, _LIMIT) or Settings()
    return Settings()


def _move_old() -> None:
    """Bring the file of the first versions to its place, unless there is one already, or it is somebody else's."""
    old, place = places.old_settings_file(), places.settings_file()
    with suppress(OSError, Unusable):
        if not os.path.lexists(place) and os.lstat(old).st_uid == os.geteuid():
            found = read_small(old, _decode, _LIMIT)
            save(found)
            os.unlink(old)


def save(settings: Settings) -> None:
    """Keep the settings."""
    with suppress(OSError, TuilabError):
        path = places.settings_file()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        user_data.update(path, {name: value for name, value in asdict(settings).items() if name not in _NOT_KEPT}, _LIMIT)


def _decode(data: bytes) -> Settings:
    """Take in each choice of the right kind; one that another tuilab made, or a hand broke, has its default."""
    found = user_data.fields_of(data)
    kinds = {name: type(default) for name, default in asdict(Settings()).items() if name not in _NOT_KEPT}
    chosen: dict[str, Any] = {name: found[name] for name, kind in kinds.items() if type(found.get(name)) is kind}
    return Settings(**chosen)
