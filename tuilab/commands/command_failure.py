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
_MESSAGE_LINES = 40  # of an exception, at most
_CHAIN_LINES = 60  # after an exception, in which the next traceback of its chain may begin
_LINE_LIMIT = 200  # characters
_BEGIN = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
# torchrun and torch's own hook put these prefixes before a line.
_PREFIX = re.compile(r"^(?:\[(?:default\d+|rank\d+)\]:(?:\[rank\d+\]:)? ?)+")
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_EXCEPTION = re.compile(r"([\w.]+)(?:: (.*))?")
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
        """Return the last line that is not blank, without colours; empty if there is none."""
        for line in reversed(self.text().splitlines()):
            shown_line = show(_COLOUR.sub("", line), _LINE_LIMIT)
            if shown_line.strip():
                return shown_line
        return ""


def failure_of(printed: str, words: Sequence[str], folder: str) -> ScenarioFailed | None:
    """Return the failure that a command printed; None if it printed no traceback.

    This is the last traceback with a line of the user's own code. If there is none, this is the
    last traceback. A KeyboardInterrupt is no failure.
    """
    home = home_of(words, folder)
    text = _COLOUR.sub("", printed)
    lines = [_PREFIX.sub("", line) for line in text.splitlines()]
    last_failure: ScenarioFailed | None = None
    last_own_failure: ScenarioFailed | None = None
    for begin, line in enumerate(lines):
        if line.rstrip() != _BEGIN or _is_chained(lines, begin):
            continue
        failure = _read_failure(lines[begin:], home)
        if failure is None:
            continue
        last_failure = failure
        if f'File "{home}' in failure.traceback:
            last_own_failure = failure
    return last_own_failure or last_failure


def lost_rank_of(printed: str) -> str:
    """Return a sentence about the rank that a signal ended, as torchrun reports it.

    The sentence is empty if torchrun reports none, or if the signal was not the cause of the
    failure.
    """
    report = _COLOUR.sub("", printed).rpartition("ChildFailedError: ")[2]
    matches = sorted(_RANK_FAILED.finditer(report), key=lambda match: int(match["seen"]))
    failures = []
    for match in matches:
        try:
            failed_at = datetime.strptime(match["time"], "%Y-%m-%d_%H:%M:%S").timestamp()
        except ValueError:  # another program may print similar lines
            return ""
        failures.append(LostRank(int(match["rank"]), int(match["code"]), failed_at))
    if not failures:
        return ""
    lost_rank = lost_of(failures)
    return lost_rank.words if lost_rank else ""


def home_of(words: Sequence[str], folder: str) -> str:
    """Return the folder whose files count as the user's own.

    This is the folder in which the command ran, or the folder of its script if that is elsewhere.
    """
    script = script_of(words, folder)
    if script is None or str(script).startswith(os.path.join(folder, "")):
        return folder
    return str(script.parent)


def _is_chained(lines: Sequence[str], index: int) -> bool:
    """Say whether a traceback continues the previous one, as with chained exceptions."""
    lines_before = lines[max(index - 3, 0) : index]
    return any(line.startswith(_CHAINED) for line in lines_before)


def _read_failure(lines: Sequence[str], home: str) -> ScenarioFailed | None:
    """Return the failure whose traceback begins with the first line.

    None if the output ends before the exception, or if that is a KeyboardInterrupt.
    """
    end = _find_exception(lines)
    if end is None:
        return None
    match = _EXCEPTION.fullmatch(lines[end])
    if match is None or match[1] == "KeyboardInterrupt":
        return None
    further_lines = _read_message(lines[end + 1 :])
    message = "\n".join([match[2] or "", *further_lines])
    traceback = "\n".join([*lines[: end + 1], *further_lines])
    if len(traceback) > _TRACEBACK_LIMIT:
        half = _TRACEBACK_LIMIT // 2
        traceback = traceback[:half] + "\n…\n" + traceback[-half:]
    name = match[1].rpartition(".")[2]
    return ScenarioFailed(
        type=name[:200], message=message[:2000], traceback=traceback, source_dir=home
    )


def _find_exception(lines: Sequence[str]) -> int | None:
    """Return the index of the line with the last exception; None if the output ends before it."""
    begin = 0
    while True:
        end = _find_unindented(lines, begin + 1)
        if end is None:
            return None
        next_begin = _find_next_in_chain(lines, end)
        if next_begin is None:
            return end
        begin = next_begin


def _find_unindented(lines: Sequence[str], begin: int) -> int | None:
    """Return the index of the first line from `begin` on that is neither empty nor indented."""
    for index in range(begin, len(lines)):
        if lines[index][:1] not in (" ", ""):
            return index
    return None


def _find_next_in_chain(lines: Sequence[str], begin: int) -> int | None:
    """Return the index of a traceback soon after `begin` that continues the one before it.

    None if there is none, so that the chain of exceptions ends there.
    """
    for index in range(begin, min(begin + _CHAIN_LINES, len(lines))):
        if lines[index].rstrip() == _BEGIN and _is_chained(lines, index):
            return index
    return None


def _read_message(lines: Sequence[str]) -> list[str]:
    """Return the further lines of a message, up to an empty line or other output."""
    message: list[str] = []
    for line in lines[:_MESSAGE_LINES]:
        if _is_other_output(line):
            break
        message.append(line)
    return message


def _is_other_output(line: str) -> bool:
    return not line.strip() or line.rstrip() == _BEGIN or _TORCHRUN_LOGS.match(line) is not None
