"""Look at the processes of a command now and then, until one of them is seen to load torch.

The kernel shows how each process was called, which variables it began with, and which libraries it
has loaded. Nothing else is known about a process.
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

# Between two looks. Each pause is twice as long as the one before.
_FIRST_S = 0.1
_LAST_S = 10.0  # the longest pause
_MOST = 200  # processes
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?")
_LIBRARIES = {
    "libtorch_cpu": "torch",
    "libtorch.": "torch",
    "jaxlib": "jax",
    "libtensorflow": "tensorflow",
    "libmlx": "mlx",
}
# Several options of Python may share one word. The last of them may have an argument.
_OPTIONS = re.compile(
    r"-(?P<letters>[A-Za-z]*?)(?:(?P<with_argument>[cmWX])(?P<argument>.*))?", re.DOTALL
)
_MAPPED = re.compile(r"(/\S.*)")


@dataclass
class Program:
    """A process, as it was when last seen."""

    name: str
    words: list[str]
    environment: dict[str, str] | None = None  # at its start; None: not shown
    holds: dict[str, str] = field(default_factory=dict)  # a file of each loaded library, by name

    @property
    def is_python(self) -> bool:
        return _PYTHON.fullmatch(self.name) is not None

    @property
    def is_reached(self) -> bool:
        """Whether the process got the variable that leads to the watcher.

        This is True if the variables of the process are not shown.
        """
        return self.environment is None or VARIABLE in self.environment

    def flags(self) -> set[str]:
        """Return the letters of the options of Python itself, such as I for -I."""
        flags: set[str] = set()
        words = iter(self.words[1:])
        for word in words:
            match = _OPTIONS.fullmatch(word)
            if match is None or word == "-":
                break
            flags |= set(match["letters"])
            if match["with_argument"] in ("c", "m"):  # the options of the program follow
                break
            if match["with_argument"] and not match["argument"]:  # as in -W ignore
                next(words, None)
        return flags


class ProcessTree:
    """The programs of a command, each as it was when last seen."""

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid = pid
        self._clock = clock
        self._next_at = clock() + _FIRST_S
        self._pause_s = _FIRST_S
        # By pid and name, because a process may become another program.
        self.programs: dict[tuple[int, str], Program] = {}

    def look(self) -> None:
        """Look at the processes if the pause since the last look is over; double the pause."""
        if self._clock() < self._next_at:
            return
        self._pause_s = min(2 * self._pause_s, _LAST_S)
        self._next_at = self._clock() + self._pause_s
        with suppress(OSError):
            pids = [self._pid, *presence.descendants(self._pid)]
            for pid in pids[:_MOST]:
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        """Note what a process is now; do nothing if it has ended or too many are noted."""
        with suppress(OSError):
            name = Path(os.readlink(f"/proc/{pid}/exe")).name
            words = _read_words(f"/proc/{pid}/cmdline")
            if (pid, name) in self.programs or len(self.programs) < _MOST:
                program = Program(name, words, _read_environment(pid), _find_libraries(pid))
                self.programs[pid, name] = program


def _read_words(path: str) -> list[str]:
    text = Path(path).read_bytes().decode(errors="replace")
    return text.split("\0")[:-1]


def _read_environment(pid: int) -> dict[str, str] | None:
    """Return the variables that a process began with; None if the kernel does not show them."""
    environment: dict[str, str] = {}
    try:
        for word in _read_words(f"/proc/{pid}/environ"):
            name, _, value = word.partition("=")
            environment[name] = value
    except OSError:
        return None
    return environment


def _find_libraries(pid: int) -> dict[str, str]:
    """Return a file of each library that a process has loaded, by the name of the library.

    Empty if the kernel does not show its files. Only the libraries in _LIBRARIES count.
    """
    libraries: dict[str, str] = {}
    with suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        for path in set(_MAPPED.findall(maps)):
            for sign, library in _LIBRARIES.items():
                if sign in path:
                    libraries[library] = path
    return libraries


def version_of_torch(library: str) -> str:
    """Return the version of the torch that a library belongs to; empty if it is unknown.

    The version is in the file version.py, in the folder above that of the library.
    """
    with suppress(OSError, ValueError):
        version_file = Path(library).parents[1] / "version.py"
        source = version_file.read_text(errors="replace")
        if match := re.search(r"__version__ = ['\"]([\w.+]{1,60})['\"]", source):
            return match[1]
    return ""
