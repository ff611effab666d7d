"""Read a lesson in another language.

For example, `softmax.zh.md` next to `softmax.py` has its title and text; the rest stays English.
"""

import os
import re

from tuilab.catalogue.scenario import Scenario
from tuilab.storage.files import Unusable, read_small

ENGLISH = "en"

_LIMIT = 256 * 1024  # bytes
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})?")


def chosen() -> str:
    """Return the code of the language of the lessons, such as zh, from TUILAB_LANG.

    It is English if the variable is not set, or is not a code.
    """
    code = os.environ.get("TUILAB_LANG", "")
    return code if _CODE.fullmatch(code) else ENGLISH


def translated(scenario: Scenario) -> Scenario:
    """Return a scenario with its title and lesson in the chosen language.

    If there is no translation, return it unchanged.
    """
    code = chosen()
    if code == ENGLISH or scenario.error:
        return scenario
    path = f"{scenario.path.removesuffix('.py')}.{code}.md"
    try:
        text = read_small(path, _decode, _LIMIT, may_be_link=True)
    except Unusable:
        return scenario
    title, _, lesson = text.partition("\n")
    return scenario._replace(title=title.removeprefix("#").strip(), lesson=lesson.strip())


def _decode(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
