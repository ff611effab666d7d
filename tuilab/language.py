"""In which language lessons are shown: what --lang or TUILAB_LANG says, else that of the locale."""

import os
import re

from tuilab.text import is_utf8_terminal

ENGLISH = "en"

_CODE = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z])")


def chosen() -> str:
    """Return the language as a code such as `zh`; English where nothing says another one, or the locale could not show it."""
    if asked := os.environ.get("TUILAB_LANG"):
        return code_of(asked)
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return code_of(locale) if is_utf8_terminal() else ENGLISH


def code_of(name: str) -> str:
    """Return the language of a name such as zh_CN.UTF-8; of one that names none, such as C, English."""
    found = _CODE.match(name)
    return found[0].lower() if found else ENGLISH
