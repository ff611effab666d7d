"""In which language lessons are shown: what --lang or TUILAB_LANG says, else that of the locale."""

import os

from tuilab.text import is_utf8_terminal

ENGLISH = "en"


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
    code = _first_word(name).lower()
    if not (code.isalpha() and len(code) in (2, 3)):
        return [ENGLISH]
    part = _first_word(name[len(code) + 1 :]) if name[len(code) :].startswith(("-", "_")) else ""
    if not ((part.isalpha() and len(part) in (2, 4)) or (part.isdigit() and len(part) == 3)):
        return [code]
    part = part.title() if len(part) == 4 else part.upper()  # a script such as Hant, or a country
    return [f"{code}_{part}", f"{code}-{part}", code]


def _first_word(text: str) -> str:
    """Return the letters and digits of ASCII that a text begins with; `re` would take longer to load."""
    ends = (at for at, character in enumerate(text) if not (character.isascii() and character.isalnum()))
    return text[: next(ends, len(text))]
