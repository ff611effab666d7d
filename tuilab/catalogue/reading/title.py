"""The title of a scenario file that can be used: all that a list shows of it, found without a tree of its syntax.

Python checks the syntax of a file in half the time that it takes to make a tree of it, and to walk that. Where anything is not
plain, nothing is said here, and who asks reads all of the file, which tells what is wrong with it.
"""

import os
import warnings
from collections.abc import Iterator
from symtable import symtable

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import Broken, check_signature, is_name, read_text

_QUOTES = '"""'
_LINE = 150  # characters: in so few nothing is nested too deeply to be spelled
_ODD = ("\\u", 'f"""', "f'''", 'fr"""', "fr'''")  # half a character, perhaps; texts with values in them, over several lines


def read(path: str) -> Scenario | None:
    """Return id, topic, path and title of a file that can be used; nothing where that is not sure."""
    folder, name = os.path.split(path)
    try:
        text = read_text(path)
        if (title := _title(text)) and is_name(id := name.removesuffix(".py")) and _is_usable(text):
            return Scenario(id, os.path.basename(folder) or "mine", path, title)
    except (Broken, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None


def _title(text: str) -> str:
    """Return the title that a text begins with; nothing where a lesson is written in another way than most."""
    lesson, quotes, code = text.removeprefix(_QUOTES).partition(_QUOTES)
    title = lesson.partition("\n")[0]
    is_plain = text.startswith(_QUOTES) and quotes and code.startswith("\n") and "\\" not in lesson and "\t" not in title
    return title.strip().removesuffix(".") if is_plain and not title[:1].isspace() else ""


def _is_usable(text: str) -> bool:
    """Say whether it is sure that a file with a title can be used."""
    lines = text.split("\n")
    if not _can_be_told(text, lines):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [block.get_lineno() for block in symtable(text, "", "exec").get_children() if block.get_name() == "run"]
    below = lines[runs[-1] - 1 :] if runs else [""]
    if not below[0].startswith("def run("):  # a class, or something that stands in another statement
        return False
    check_signature("\n".join([*_signature(below), " pass"]))
    return True


def _can_be_told(text: str, lines: list[str]) -> bool:
    """Say whether it is sure that every text in a file can be told, and every value that an f-string puts into one."""
    small = text.lower()
    return max(map(len, lines)) <= _LINE and "".join(lines).isprintable() and not any(word in small for word in _ODD)


def _signature(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a function down to the first that can end its signature; what ends too early has no syntax."""
    for line in lines:
        yield line
        code = line.partition("#")[0].rstrip()
        if code.endswith(":") and ")" in code:
            return
