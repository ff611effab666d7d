"""The patterns of `--metric NAME=PATTERN`: what each looks for, where it may be at all, and how long it may take."""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tuilab.errors import UsageError
from tuilab.text.display import show

_PATIENCE_S = 0.1  # with one line
_LITERAL, _MAX_REPEAT, _SUBPATTERN = "LITERAL", "MAX_REPEAT", "SUBPATTERN"
_STRIP = b" \t'\",;:%)]}"  # what stands around a number, as the quotes of HF's Trainer


@dataclass
class Pattern:
    """One pattern, and the longest text that every line with it has: none where that is not known."""

    name: str
    regex: "re.Pattern[bytes]"
    text: bytes
    strikes: int = 0

    @classmethod
    def of(cls, metric: str) -> "Pattern":
        name, pattern = split(metric)
        return cls(name, re.compile(pattern.encode()), sure_text(pattern.encode()))

    def lines(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that may have it."""
        data = data.replace(b"\r", b"\n")
        if not self.text:
            yield from data.split(b"\n")
            return
        begin = data.find(self.text)
        while begin >= 0:
            end = data.find(b"\n", begin)
            yield data[data.rfind(b"\n", 0, begin) + 1 : end if end >= 0 else len(data)]
            begin = data.find(self.text, max(end, begin + 1)) if end >= 0 else -1

    def numbers(self, line: bytes) -> list[float]:
        """Return the numbers of a line."""
        numbers = (number(match[1] or b"") for match in self.regex.finditer(line))
        return [number_or_none for number_or_none in numbers if number_or_none is not None]


def split(metric: str) -> tuple[str, str]:
    """Return the name and the pattern of `NAME=PATTERN`; UsageError where it is none."""
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
    """Return what was found as a number, without the quotes that may stand around it."""
    try:
        return float(text.strip(_STRIP))
    except ValueError:
        return None


def sure_text(pattern: bytes) -> bytes:
    """Return the longest text that whatever matches has, by the pattern's own parts; nothing where none is sure."""
    try:
        from re import _parser  # type: ignore[attr-defined]  # it is Python's own, and may change

        parsed = _parser.parse(pattern)
        return (
            b"" if parsed.state.flags & re.IGNORECASE else max(_runs(parsed), key=len, default=b"")
        )
    except (ImportError, AttributeError, TypeError, ValueError):
        return b""


def _runs(parts: Any) -> Iterator[bytes]:
    """Yield the texts that stand in every match: literal characters side by side, those in groups too."""
    run = bytearray()
    for kind, part in parts:
        if str(kind) == _LITERAL:
            run.append(part)
            continue
        yield bytes(run)
        run.clear()
        if str(kind) == _SUBPATTERN and not part[1]:  # without flags of its own
            yield from _runs(part[3])
        elif str(kind) == _MAX_REPEAT and part[0] > 0:
            yield from _runs(part[2])
    yield bytes(run)


class Alarm:
    """Within, whatever takes too long is ended by TimeoutError, a match of a pattern too; in the main thread only."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGVTALRM, _time_out)
        signal.setitimer(
            signal.ITIMER_VIRTUAL, _PATIENCE_S
        )  # of CPU time: a busy box is no fault of a pattern's

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _time_out(number: int, frame: FrameType | None) -> None:
    raise TimeoutError
