"""Parse the patterns of `--metric NAME=PATTERN`, and search lines with them.

A pattern is tried only on lines that may match, and only for a limited time.
"""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tuilab.errors import UsageError
from tuilab.text.display import show

_PATIENCE_S = 0.1  # for one line
_LITERAL, _MAX_REPEAT, _SUBPATTERN = "LITERAL", "MAX_REPEAT", "SUBPATTERN"
# Characters around a number, such as the quotes that the Trainer of Hugging Face prints.
_STRIP = b" \t'\",;:%)]}"


@dataclass
class Pattern:
    """One pattern, and the longest text that every matching line contains.

    The text is empty if it is not known.
    """

    name: str
    regex: "re.Pattern[bytes]"
    text: bytes
    strikes: int = 0

    @classmethod
    def of(cls, metric: str) -> "Pattern":
        name, pattern = split(metric)
        return cls(name, re.compile(pattern.encode()), sure_text(pattern.encode()))

    def lines(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that may match the pattern, without their ends."""
        data = data.replace(b"\r", b"\n")
        if not self.text:
            yield from data.split(b"\n")
            return
        begin = data.find(self.text)
        while begin >= 0:
            line_begin = data.rfind(b"\n", 0, begin) + 1
            line_end = data.find(b"\n", begin)
            if line_end < 0:
                yield data[line_begin:]
                return
            yield data[line_begin:line_end]
            begin = data.find(self.text, max(line_end, begin + 1))

    def numbers(self, line: bytes) -> list[float]:
        """Return the numbers that the pattern finds in a line.

        May take for ever with a bad pattern: call it within an Alarm.
        """
        numbers = []
        for match in self.regex.finditer(line):
            value = number(match[1] or b"")
            if value is not None:
                numbers.append(value)
        return numbers


def split(metric: str) -> tuple[str, str]:
    """Return the name and the pattern of `NAME=PATTERN`; raise UsageError if one is invalid."""
    name, _, pattern = metric.partition("=")
    if not name.strip() or not pattern:
        raise UsageError(
            f"--metric takes NAME=PATTERN, for example 'acc=acc ([0-9.]+)', not {show(metric, 60)}"
        )
    try:
        groups = re.compile(pattern.encode()).groups
    except (re.error, RecursionError, OverflowError, UnicodeEncodeError) as problem:
        raise UsageError(
            f"--metric {show(name, 40)}: {show(pattern, 60)} is not a valid regular expression:"
            f" {problem}"
        ) from problem
    if groups != 1:
        raise UsageError(
            f"--metric {show(name, 40)}: the pattern has {groups} groups; put one pair of brackets"
            " ( ) around the number"
        )
    return name.strip(), pattern


def number(text: bytes) -> float | None:
    """Return a text that a pattern found as a number; None if it is not a number.

    Quotes around the number are ignored.
    """
    try:
        return float(text.strip(_STRIP))
    except ValueError:
        return None


def sure_text(pattern: bytes) -> bytes:
    """Return the longest text that every match contains; empty if no text is certain.

    The text comes from the parts into which Python parses the pattern.
    """
    try:
        from re import _parser  # type: ignore[attr-defined]  # private, so it may change

        parsed = _parser.parse(pattern)
        if parsed.state.flags & re.IGNORECASE:
            return b""
        return max(_runs(parsed), key=len, default=b"")
    except (ImportError, AttributeError, TypeError, ValueError):
        return b""


def _runs(parts: Any) -> Iterator[bytes]:
    """Yield the texts in every match: adjacent literal characters, also those within groups."""
    run = bytearray()
    for kind, part in parts:
        if str(kind) == _LITERAL:
            run.append(part)
            continue
        yield bytes(run)
        run.clear()
        if str(kind) == _SUBPATTERN and not part[1]:  # a group without flags of its own
            yield from _runs(part[3])
        elif str(kind) == _MAX_REPEAT and part[0] > 0:
            yield from _runs(part[2])
    yield bytes(run)


class Alarm:
    """A context that raises TimeoutError in a block that takes too long.

    It also ends the match of a pattern. It works only in the main thread.
    """

    def __enter__(self) -> None:
        signal.signal(signal.SIGVTALRM, _time_out)
        # This timer counts CPU time: a busy machine does not make a pattern slow.
        signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE_S)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _time_out(number: int, frame: FrameType | None) -> None:
    raise TimeoutError
