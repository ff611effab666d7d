"""What a run printed: its last lines for a pane, and all that was kept of it for a pager."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuilab.engine.capture import HEAD, TAIL
from tuilab.record.finding_words import dropped_words
from tuilab.record.summary import RunSummary
from tuilab.storage.files import open_regular
from tuilab.text.words import size

STREAMS = ("stdout", "stderr")
_TAIL = 16 * 1024  # bytes of each stream that a pane looks at
_MOST = 4 * 1024 * 1024  # more than a run keeps
LINES = 200
_LONGEST = 1000  # characters of a line in a pane


@dataclass(frozen=True)
class OutputTail:
    """The last lines of a file, which has so many bytes, and whether they are all."""

    lines: list[str]
    bytes_total: int
    is_whole: bool


@dataclass(frozen=True)
class Seam:
    """Where a stream was cut, behind so many bytes of what was kept, and what is to be said of it."""

    at: int
    words: str


def seam_of(path: Path, summary: RunSummary) -> Seam | None:
    """Return where the file of a stream has a gap; None where all was kept, as far as is known."""
    stream = path.stem
    if output := summary.outputs.get(stream):
        words = dropped_words(summary).get(stream)
        return Seam(output.bytes_head, words) if words else None
    with suppress(OSError):
        if path.lstat().st_size >= HEAD + TAIL:  # how many bytes there were is recorded at the end
            return Seam(
                HEAD, f"{stream}: only its first {size(HEAD)} and last {size(TAIL)} are kept"
            )
    return None


def tail(path: Path, seam: Seam | None = None) -> OutputTail:
    """Return the last lines of a file; a line that was overwritten by carriage returns is its last state."""
    data, total = _end(path, _TAIL)
    every = _lines(data, total - len(data), seam)
    lines = [line.rpartition("\r")[2] for line in every][1 if total > len(data) else 0 :]
    return OutputTail(
        [line[:_LONGEST] for line in lines[-LINES:]],
        total,
        total == len(data) and len(lines) <= LINES,
    )


def whole(run_dir: Path, summary: RunSummary) -> str:
    """Return all that was kept of what a run printed, each stream after the path of its file; a mark is where it was cut.

    What stood on a line before it was overwritten has a line of its own.
    """
    parts = []
    for stream in STREAMS:
        path = run_dir / f"{stream}.log"
        if lines := _lines(_end(path, _MOST)[0], 0, seam_of(path, summary)):
            parts.append(
                "\n".join([f"== {path}", *(state for line in lines for state in line.split("\r"))])
            )
        elif why := _why_not(path):
            parts.append(f"== {path}\n--- cannot be read: {why} ---")
    return "\n\n".join(parts)


def _lines(data: bytes, start: int, seam: Seam | None) -> list[str]:
    """Return the lines of what a file has from a byte on, with a mark where it was cut."""
    if seam is None or not start <= seam.at <= start + len(data):
        return _split(data)
    cut = seam.at - start
    return [*_split(data[:cut]), f"--- {seam.words} ---", *_split(data[cut:])]


def _split(data: bytes) -> list[str]:
    lines = [line.rstrip("\r") for line in data.decode(errors="replace").split("\n")]
    return lines if lines[-1] else lines[:-1]


def _why_not(path: Path) -> str:
    """Return why a file cannot be read; nothing where it can be, or where there is none."""
    try:
        os.close(open_regular(path))
    except FileNotFoundError:
        return ""
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _end(path: Path, limit: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, and how many it has."""
    with suppress(OSError), open(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - limit, 0))
        return file.read(limit), size
    return b"", 0
