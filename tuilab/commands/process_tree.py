"""What ran of a command: its processes, looked at now and then while nothing has been seen of a torch in them.

What is known of each is what the kernel tells: how it was called, which variables it began with, which libraries it holds.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tuilab.commands.watcher._tuilab_watch import VARIABLE
from tuilab.record import presence

_FIRST_S, _LAST_S = 0.1, 10.0  # between two looks, each twice as long as the one before
_MOST = 200  # processes
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?")
_LIBRARIES = {
    "libtorch_cpu": "torch",
    "libtorch.": "torch",
    "jaxlib": "jax",
    "libtensorflow": "tensorflow",
    "libmlx": "mlx",
}
_MAPPED = re.compile(r"(/\S.*)")


@dataclass
class Program:
    """A process as it was seen last."""

    name: str
    words: list[str]
    environment: dict[str, str] | None = None  # that it began with; None: not shown
    holds: dict[str, str] = field(default_factory=dict)  # library: a file of it

    @property
    def is_python(self) -> bool:
        return _PYTHON.fullmatch(self.name) is not None

    @property
    def is_reached(self) -> bool:
        """Whether the variable that leads to the watcher came through to it, as far as that is shown."""
        return self.environment is None or VARIABLE in self.environment

    def flags(self) -> set[str]:
        """Return the single letters of Python's own options."""
        flags: set[str] = set()
        for word in self.words[1:]:
            if not re.fullmatch(r"-[A-Za-z]+", word):
                break
            letters = re.split("[cmWX]", word[1:])[0]
            flags |= set(letters)
            if len(letters) < len(word) - 1:
                break
        return flags


class Ran:
    """The programs of a command, each as it was seen last."""

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid = pid
        self._clock = clock
        self._next, self._pause = clock() + _FIRST_S, _FIRST_S
        self.programs: dict[tuple[int, str], Program] = {}  # a process may become another program

    def look(self) -> None:
        """Look at the processes, if it is time again."""
        if self._clock() < self._next:
            return
        self._pause = min(2 * self._pause, _LAST_S)
        self._next = self._clock() + self._pause
        with suppress(OSError):
            for pid in [self._pid, *presence.descendants(self._pid)][:_MOST]:
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        with suppress(OSError):
            name = Path(os.readlink(f"/proc/{pid}/exe")).name
            words = _read(f"/proc/{pid}/cmdline")
            if len(self.programs) < _MOST or (pid, name) in self.programs:
                self.programs[pid, name] = Program(name, words, _environment(pid), _libraries(pid))


def _read(path: str) -> list[str]:
    return Path(path).read_bytes().decode(errors="replace").split("\0")[:-1]


def _environment(pid: int) -> dict[str, str] | None:
    try:
        return dict(word.partition("=")[::2] for word in _read(f"/proc/{pid}/environ"))
    except OSError:
        return None


def _libraries(pid: int) -> dict[str, str]:
    with suppress(OSError):
        mapped = set(_MAPPED.findall(Path(f"/proc/{pid}/maps").read_text(errors="replace")))
        return {what: path for path in mapped for sign, what in _LIBRARIES.items() if sign in path}
    return {}


def version_of_torch(library: str) -> str:
    """Return which torch a library of it belongs to, by the file beside it that says so; nothing where that is not known."""
    with suppress(OSError, ValueError):
        source = (Path(library).parents[1] / "version.py").read_text(errors="replace")
        if match := re.search(r"__version__ = ['\"]([\w.+]{1,60})['\"]", source):
            return match[1]
    return ""
