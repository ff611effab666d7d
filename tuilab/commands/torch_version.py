"""How old the torch of a command is, told from the files beside its interpreter: nothing of the user's is run for it."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tuilab.files import open_regular

DOOR = (2, 5)  # from here on torch lets the watcher in itself
_FOUND = re.compile(r"torch-(\d+)\.(\d+)[^/]*\.(?:dist|egg)-info")
_PYTHON = re.compile(r"python[\d.]*")
_LONGEST = 4096  # bytes of a first line


def has_no_door(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Say whether the torch of a command is known to be too old to let the watcher in itself."""
    found = next(filter(None, map(_version_beside, _interpreters(words, environment))), None)
    return found is not None and found < DOOR


def _interpreters(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield what may run the command: a word of it, what the first line of a script names, and what `python` is there."""
    path = environment.get("PATH")
    for word in (*words, "python", "python3"):
        found = shutil.which(word, path=path)
        if found is None:
            continue
        if _PYTHON.fullmatch(Path(found).name):
            yield Path(found).absolute()
        elif (named := shutil.which(_named_first(Path(found)), path=path)) is not None:
            yield Path(named).absolute()


def _named_first(script: Path) -> str:
    """Return the Python that a script names in its first line, if it does."""
    try:
        with open(open_regular(script, may_be_link=True), "rb") as file:  # a FIFO would be drained
            line = file.readline(_LONGEST).decode(errors="replace")
    except OSError:
        return ""
    words = line[2:].split() if line.startswith("#!") else []
    return next((word for word in words if _PYTHON.fullmatch(os.path.basename(word))), "")


def _version_beside(python: Path) -> tuple[int, int] | None:
    """Return the version of the torch that an interpreter would load: of its environment, or of the Python behind that."""
    for home in dict.fromkeys((python.parent.parent, python.resolve().parent.parent)):
        for pattern in ("lib/python3*/site-packages/torch-*", "lib/python3*/dist-packages/torch-*"):
            for found in sorted(home.glob(pattern)):
                if match := _FOUND.fullmatch(found.name):
                    return int(match[1]), int(match[2])
    return None
