"""In which language lessons are shown: what --lang or TUILAB_LANG says, else that of the locale."""

import os
import re

from tuilab.text import is_utf8_terminal

ENGLISH = "en"

_CODE = r"([A-Za-z]{2,3})(?:[-_]([A-Za-z]{4}|[A-Za-z]{2}|[0-9]{3}))?(?![A-Za-z0-9])"


def chosen() -> str:
    """Return the language as a code such as `zh`; English where nothing says another one, or the locale could not show it."""
    return codes()[-1]


def codes() -> list[str]:
    """Return what the files of the language are called by, the most special first: zh_TW, zh-TW, zh."""
    if asked := os.environ.get("TUILAB_LANG"):
        return codes_of(asked)
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return codes_of(locale) if is_utf8_terminal() else [ENGLISH]


def codes_of(name: str) -> list[str]:
    """Return the codes of a name such as zh_CN.UTF-8; of one that names none, such as C, that of English."""
    found = re.match(_CODE, name)
    if not found:
        return [ENGLISH]
    code, part = found[1].lower(), found[2] or ""
    part = part.title() if len(part) == 4 else part.upper()  # a script such as Hant, or a country
    return [f"{code}_{part}", f"{code}-{part}", code] if part else [code]
