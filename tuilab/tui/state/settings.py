"""What the screens remember from one time to the next; whatever cannot be read or written is done without."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from tuilab import places
from tuilab.errors import TuilabError
from tuilab.files import read_regular

_LIMIT = 64 * 1024


@dataclass
class Settings:
    """Choices of the user that the screens made for good."""

    theme: str = "tuilab-dark"
    scenario: str = ""  # the one chosen last
    part: str = "lesson"  # of the Lab screen that was open last
    symbols: str = ""  # braille, block or ascii; "": what the locale allows
    pane: str = ""  # of the Run screen that had the focus last
    is_zoomed: bool = False  # whether that pane fills the screen
    is_smooth: bool = False  # lines of a run
    is_timed: bool = False  # seconds along their axis, not steps
    has_seen_hint: bool = False


def load() -> Settings:
    """Return the settings as they were left; of a damaged file what makes sense."""
    found: dict[str, Any] = {}
    with suppress(OSError, ValueError, TuilabError):
        found = dict(json.loads(read_regular(places.settings_file(), _LIMIT)))
    settings = Settings()
    for field in fields(Settings):
        value = found.get(field.name, getattr(settings, field.name))
        if type(value) is type(field.default):
            setattr(settings, field.name, value)
    return settings


def save(settings: Settings) -> None:
    """Keep the settings."""
    with suppress(OSError, TuilabError):
        path = places.settings_file()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:
            json.dump(asdict(settings), file)
        os.replace(temporary, path)
