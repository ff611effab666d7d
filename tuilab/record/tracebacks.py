"""The traceback of a failure in its frames: which of them are the author's own, and at which of them it failed."""

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
_COPY = "scenario.py"  # what a traceback calls the file of the scenario


class Frame(NamedTuple):
    """A line of a file that was being run."""

    file: str  # the name of the author's own file; of a library the path within it
    line: int
    function: str
    code: tuple[str, ...]
    is_own: bool

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


def own_frame(summary: RunSummary) -> Frame | None:
    """Return the innermost of the author's own frames where the run failed; None where none of them is known."""
    failure = summary.failure
    if failure is None:
        return None
    lines = failure.traceback.splitlines()[1:]
    end = _end(failure, lines)
    begin = max(
        (at + 1 for at in range(end) if lines[at] and not lines[at].startswith(" ")), default=0
    )
    found = [
        part
        for part in _parts(summary, failure, lines[begin:end])
        if isinstance(part, Frame) and part.is_own
    ]
    return found[-1] if found else None


def parts_of(summary: RunSummary) -> list[Frame | str]:
    """Return the frames of the failure and what stands between them, without what the failure says itself."""
    failure = summary.failure
    return _parts(summary, failure, frames(failure).splitlines()) if failure else []


def file_of(summary: RunSummary, run_dir: Path) -> str:
    """Return the path of the author's file that failed, where it still is; nothing where that is not known on this box."""
    failure, run, frame = summary.failure, summary.run, own_frame(summary)
    if (
        failure is None
        or run is None
        or is_imported(run_dir)
        or not os.path.isabs(failure.source_dir)
    ):
        return ""
    path = os.path.join(failure.source_dir, frame.file if frame else f"{run.scenario}.py")
    return path if os.path.isfile(path) else ""


def frames(failure: ScenarioFailed) -> str:
    """Return the traceback of a failure without its first words and what the failure says, for whoever tells that itself."""
    _, *lines = failure.traceback.splitlines() or [""]
    end = _end(failure, lines)
    return "\n".join([*lines[:end], *lines[end + len(failure.message.splitlines() or [""]) :]])


def as_named(text: str, summary: RunSummary) -> str:
    """Return a traceback with the file of the scenario as its author calls it."""
    run = summary.run
    return (
        text.replace(f'File "{_COPY}", line ', f'File "{run.scenario}.py", line ') if run else text
    )


def _end(failure: ScenarioFailed, lines: Sequence[str]) -> int:
    """Return the number of the line that says what the failure is named after; there may be other failures before it."""
    said = failure.message.splitlines() or [""]
    ends = [at for at, line in enumerate(lines) if not line.startswith((" ", "…"))]
    name = f"{failure.type}: {said[0]}" if said[0] else failure.type
    return next((at for at in ends if lines[at].endswith(name)), [*ends, len(lines)][0])


def _parts(summary: RunSummary, failure: ScenarioFailed, lines: Sequence[str]) -> list[Frame | str]:
    found: list[Frame | str] = []
    for line in lines:
        last = found[-1] if found else None
        if seen := _FRAME.fullmatch(line):
            found.append(_frame(summary, failure, seen))
        elif isinstance(last, Frame) and line.startswith("    "):
            found[-1] = last._replace(code=(*last.code, line[4:]))
        else:
            found.append(line)
    return found


def _frame(summary: RunSummary, failure: ScenarioFailed, seen: re.Match[str]) -> Frame:
    path, line, function = seen[1], int(seen[2]), seen[3] or ""
    if path == _COPY:
        name = f"{summary.run.scenario}.py" if summary.run else _COPY
        return Frame(name, line, function, (), True)
    folder = failure.source_dir.rstrip("/") + "/"
    is_own = len(folder) > 1 and path.startswith(folder) and not _LIBRARY.match(path)
    return Frame(
        path.removeprefix(folder) if is_own else _LIBRARY.sub("", path), line, function, (), is_own
    )
