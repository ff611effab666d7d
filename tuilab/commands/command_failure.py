"""Find out why a command failed, from the last traceback that it printed.

The failure has the same form in the record as the failure of a scenario.
"""

import os
import re
import threading
from collections.abc import Sequence
from datetime import datetime

from tuilab.commands.make_order import script_of
from tuilab.lab.lost_rank import LostRank, lost_of
from tuilab.record.events import ScenarioFailed
from tuilab.text.display import show

_KEPT = 64 * 1024  # bytes at the end of what was printed
_TRACEBACK_LIMIT = 8_000  # characters, as for a scenario
_MESSAGE_LINES = 40
_LINE_LIMIT = 200  # characters
_BEGIN = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
# torchrun and torch's own hook put these prefixes before a line.
_PREFIX = re.compile(r"^(?:\[(?:default\d+|rank\d+)\]:(?:\[rank\d+\]:)? ?)+")
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_SAID = re.compile(r"([\w.]+)(?:: (.*))?")
_TORCHRUN_LOGS = re.compile(r"[WE]\d{4} \d\d:\d\d:\d\d\.\d+ .*torch/distributed/")
_RANK_FAILED = re.compile(
    r"^\[(?P<seen>\d{1,6})\]:\n  time      : (?P<time>[-\d]{10}_[:\d]{8})\n  host .*\n  rank      :"
    r" (?P<rank>\d{1,9}) .*\n"
    r"  exitcode  : (?P<code>-?\d{1,3}) ",
    re.MULTILINE,
)


class StderrTail:
    """The end of what a command printed on stderr."""

    def __init__(self) -> None:
        self._data = b""
        self._lock = threading.Lock()

    def take(self, data: bytes) -> None:
        with self._lock:
            self._data = (self._data + data)[-_KEPT:]

    def text(self) -> str:
        with self._lock:
            return self._data.decode(errors="replace")

    def last_line(self) -> str:
        lines = [show(_COLOUR.sub("", line), _LINE_LIMIT) for line in self.text().splitlines()]
        return next((line for line in reversed(lines) if line.strip()), "")


def failure_of(printed: str, words: Sequence[str], folder: str) -> ScenarioFailed | None:
    """Return the failure that a command printed, or None.

    This is the last traceback with a line of the user's own code. If there is none, this is the
    last traceback.
    """
    home = home_of(words, folder)
    lines = [_PREFIX.sub("", line) for line in _COLOUR.sub("", printed).splitlines()]
    begins = [
        begin
        for begin, line in enumerate(lines)
        if line.rstrip() == _BEGIN and not _is_chained(lines, begin)
    ]
    failures = [failure for begin in begins if (failure := _read(lines[begin:], home))]
    own_failures = [failure for failure in failures if f'File "{home}' in failure.traceback]
    return next(iter([*own_failures[-1:], *failures[-1:]]), None)


def lost_rank_of(printed: str) -> str:
    """Return a sentence about the rank that a signal ended, as torchrun reports it.

    The sentence is empty if the signal was not the cause of the failure.
    """
    last = _COLOUR.sub("", printed).rpartition("ChildFailedError: ")[2]
    told = sorted(_RANK_FAILED.finditer(last), key=lambda failure: int(failure["seen"]))
    try:
        failures = [
            LostRank(
                int(failure["rank"]),
                int(failure["code"]),
                datetime.strptime(failure["time"], "%Y-%m-%d_%H:%M:%S").timestamp(),
            )
            for failure in told
        ]
    except ValueError:  # another program may print similar lines
        return ""
    lost = lost_of(failures) if failures else None
    return lost.words if lost else ""


def home_of(words: Sequence[str], folder: str) -> str:
    """Return the folder whose files count as the user's own.

    This is the folder in which the command ran, or the folder of its script if that is elsewhere.
    """
    script = script_of(words, folder)
    folder_path = os.path.join(folder, "")
    return folder if script is None or str(script).startswith(folder_path) else str(script.parent)


def _is_chained(lines: Sequence[str], index: int) -> bool:
    """Say whether a traceback continues the previous one, as with chained exceptions."""
    return any(line.startswith(_CHAINED) for line in lines[max(index - 3, 0) : index])


def _read(lines: Sequence[str], home: str) -> ScenarioFailed | None:
    """Return the failure whose traceback begins with the first line, or None."""
    end = _end(lines)
    if end is None or not (match := _SAID.fullmatch(lines[end])) or match[1] == "KeyboardInterrupt":
        return None
    message = [match[2] or "", *_message(lines[end + 1 :])]
    text = "\n".join([*lines[: end + 1], *message[1:]])
    if len(text) > _TRACEBACK_LIMIT:
        text = text[: _TRACEBACK_LIMIT // 2] + "\n…\n" + text[-_TRACEBACK_LIMIT // 2 :]
    name = match[1].rpartition(".")[2]
    return ScenarioFailed(
        type=name[:200], message="\n".join(message)[:2000], traceback=text, source_dir=home
    )


def _end(lines: Sequence[str]) -> int | None:
    """Return the index of the line with the last exception; None if the output ends before it."""
    index = 0
    while index < len(lines):
        end = next(
            (
                number
                for number in range(index + 1, len(lines))
                if lines[number][:1] not in (" ", "")
            ),
            None,
        )
        if end is None:
            return None
        following = next(
            (number for number in range(end, min(end + 60, len(lines))) if _goes_on(lines, number)),
            None,
        )
        if following is None:
            return end
        index = following
    return None


def _goes_on(lines: Sequence[str], number: int) -> bool:
    return lines[number].rstrip() == _BEGIN and _is_chained(lines, number)


def _message(lines: Sequence[str]) -> list[str]:
    """Return the further lines of a message, up to an empty line or other output."""
    end = next((index for index, line in enumerate(lines) if _is_of_others(line)), len(lines))
    return list(lines[: min(end, _MESSAGE_LINES)])


def _is_of_others(line: str) -> bool:
    return not line.strip() or line.rstrip() == _BEGIN or _TORCHRUN_LOGS.match(line) is not None
