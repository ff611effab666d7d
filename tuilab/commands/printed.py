"""Looks for numbers in what a command prints: those that the user's patterns find, and how far it is of how much."""

import re
import threading
from collections.abc import Sequence
from typing import NamedTuple

from tuilab.errors import UsageError
from tuilab.text import show

_LONGEST = 4096  # bytes of a line that are looked at
_MOST = 10_000  # values that wait
_TOTAL = re.compile(rb"(?<![\d.])(\d{1,9})\s?(?:/|of)\s?(\d{1,9})(?![\d.])")
_SPLIT = re.compile(rb"[\r\n]")


class Value(NamedTuple):
    """A number that was printed."""

    name: str
    value: float


class Printed:
    """Takes what is printed, by the threads that pass it on, and hands out what was found."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._patterns = [(name, re.compile(pattern.encode())) for name, pattern in map(split, metrics)]
        self._rest = b""
        self._lock = threading.Lock()
        self._values: list[Value] = []
        self._progress: tuple[int, int] | None = None
        self.found = {name: 0 for name, _ in self._patterns}

    def take(self, data: bytes) -> None:
        """Look through the lines that are whole."""
        with self._lock:
            *lines, self._rest = _SPLIT.split(self._rest + data)
            self._rest = self._rest[-_LONGEST:]
            for line in lines:
                self._look(line[:_LONGEST])

    def values(self) -> list[Value]:
        """Return the numbers that were found since."""
        with self._lock:
            found, self._values = self._values, []
        return found

    def progress(self) -> tuple[int, int] | None:
        """Return how far it is of how much, as the command printed it last, if that is news."""
        with self._lock:
            found, self._progress = self._progress, None
        return found

    def _look(self, line: bytes) -> None:
        for name, pattern in self._patterns:
            for match in pattern.finditer(line):
                value = _number(match[1] or b"")
                if value is not None and len(self._values) < _MOST:
                    self._values.append(Value(name, value))
                    self.found[name] += 1
        if total := _TOTAL.search(line):
            done, all_of_it = int(total[1]), int(total[2])
            if done <= all_of_it > 1:
                self._progress = done, all_of_it


def split(metric: str) -> tuple[str, str]:
    """Return the name and the pattern of `NAME=PATTERN`; UsageError where it is none."""
    name, _, pattern = metric.partition("=")
    if not name.strip() or not pattern:
        raise UsageError(f"--metric takes NAME=PATTERN, as in 'acc=acc ([0-9.]+)', not {show(metric, 60)}")
    try:
        groups = re.compile(pattern.encode()).groups
    except re.error as problem:
        raise UsageError(f"--metric {show(name, 40)}: {show(pattern, 60)} is no pattern: {problem}") from problem
    if groups != 1:
        raise UsageError(f"--metric {show(name, 40)}: the pattern has {groups} groups; put brackets around the number, once")
    return name.strip(), pattern


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
