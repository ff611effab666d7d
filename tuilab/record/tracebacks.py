"""Splits the traceback of a failure into frames, and finds the author's own frame that failed."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tuilab.record.events import ScenarioFailed
from tuilab.record.origin.imported import is_imported
from tuilab.record.summary import RunSummary

_FRAME = re.compile(r'  File "([^"\n]{1,4096})", line ([0-9]{1,9})(?:, in (.{0,200}))?')
_LIBRARY = re.compile(r"\A.*/(?:(?:site|dist)-packages|lib/python[0-9.]+)/(?=.)")
_COPY = "scenario.py"  # the name of every scenario's file in a traceback


class Frame(NamedTuple):
    """A place in a file that was being run."""

    file: str  # the name of the author's own file; for a library, the path within it
    line: int
    function: str
    code: tuple[str, ...]
    is_own: bool

    @property
    def place(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place} in {self.function}" if self.function else place


def own_frame(summary: RunSummary) -> Frame | None:
    """Return the innermost of the author's own frames where the run failed; None if unknown."""
    failure = summary.failure
    if failure is None:
        return None
    lines = failure.traceback.splitlines()[1:]
    end = _end(failure, lines)
    begin = 0  # after the last other failure of the traceback
    for number in range(end):
        if lines[number] and not lines[number].startswith(" "):
            begin = number + 1
    own = None
    for part in _parts(summary, failure, lines[begin:end]):
        if isinstance(part, Frame) and part.is_own:
            own = part
    return own


def parts_of(summary: RunSummary) -> list[Frame | str]:
    """Return the frames of the failure and the lines between them, without its message."""
    failure = summary.failure
    if failure is None:
        return []
    return _parts(summary, failure, frames(failure).splitlines())


def file_of(summary: RunSummary, run_dir: Path) -> str:
    """Return the path of the author's file that failed; empty if it is not on this machine."""
    failure = summary.failure
    run = summary.run
    if failure is None or run is None:
        return ""
    frame = own_frame(summary)
    if is_imported(run_dir) or not os.path.isabs(failure.source_dir):
        return ""
    name = f"{run.scenario}.py"
    if frame:
        name = frame.file
    path = os.path.join(failure.source_dir, name)
    return path if os.path.isfile(path) else ""


def frames(failure: ScenarioFailed) -> str:
    """Return the traceback of a failure without its first line and its message.

    A view shows the message itself.
    """
    _, *lines = failure.traceback.splitlines() or [""]
    end = _end(failure, lines)
    message_lines = failure.message.splitlines() or [""]
    return "\n".join(lines[:end] + lines[end + len(message_lines) :])


def as_named(text: str, summary: RunSummary) -> str:
    """Return a traceback with the author's name of the scenario's file."""
    if summary.run is None:
        return text
    own_name = f"{summary.run.scenario}.py"
    return text.replace(f'File "{_COPY}", line ', f'File "{own_name}", line ')


def _end(failure: ScenarioFailed, lines: Sequence[str]) -> int:
    """Return the number of the line with the type and message of the failure.

    Other failures may come before it. If no line has them, it is the first line that ends a
    failure.
    """
    name = failure.type
    message = failure.message.splitlines()
    if message and message[0]:
        name = f"{failure.type}: {message[0]}"
    ends = [i for i, line in enumerate(lines) if not line.startswith((" ", "…"))]
    for end in ends:
        if lines[end].endswith(name):
            return end
    return ends[0] if ends else len(lines)


def _parts(summary: RunSummary, failure: ScenarioFailed, lines: Sequence[str]) -> list[Frame | str]:
    """Return the frames of a traceback with their code, and its other lines as they are."""
    parts: list[Frame | str] = []
    for line in lines:
        last = parts[-1] if parts else None
        match = _FRAME.fullmatch(line)
        if match:
            parts.append(_frame(summary, failure, match))
        elif isinstance(last, Frame) and line.startswith("    "):
            parts[-1] = last._replace(code=(*last.code, line[4:]))
        else:
            parts.append(line)
    return parts


def _frame(summary: RunSummary, failure: ScenarioFailed, match: re.Match[str]) -> Frame:
    """Return a frame without its code, with a short path; own files are marked as such."""
    path = match[1]
    line = int(match[2])
    function = match[3] or ""
    if path == _COPY:
        name = f"{summary.run.scenario}.py" if summary.run else _COPY
        return Frame(name, line, function, code=(), is_own=True)
    folder = failure.source_dir.rstrip("/") + "/"
    is_own = len(folder) > 1 and path.startswith(folder) and not _LIBRARY.match(path)
    name = path.removeprefix(folder) if is_own else _LIBRARY.sub("", path)
    return Frame(name, line, function, code=(), is_own=is_own)
