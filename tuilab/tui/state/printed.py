"""What a run printed: its last lines for a pane, and all that was kept of it for a pager."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuilab.files import open_regular

STREAMS = ("stdout", "stderr")
_TAIL = 16 * 1024  # bytes of each stream that a pane looks at
_MOST = 4 * 1024 * 1024  # more than a run keeps
LINES = 200
_LONGEST = 1000  # characters of a line in a pane


@dataclass(frozen=True)
class Tail:
    """The last lines of a file, which has so many bytes, and whether they are all."""

    lines: list[str]
    bytes_total: int
    is_whole: bool


def tail(path: Path) -> Tail:
    """Return the last lines of a file; a line that was overwritten by carriage returns is its last state."""
    data, size = _end(path, _TAIL)
    lines = [line.rpartition("\r")[2] for line in _lines(data)][1 if size > len(data) else 0 :]
    return Tail([line[:_LONGEST] for line in lines[-LINES:]], size, size == len(data) and len(lines) <= LINES)


def whole(run_dir: Path) -> str:
    """Return all that was kept of what a run printed, each stream after the path of its file.

    What stood on a line before it was overwritten has a line of its own.
    """
    parts = []
    for stream in STREAMS:
        path = run_dir / f"{stream}.log"
        if lines := _lines(_end(path, _MOST)[0]):
            parts.append("\n".join([f"== {path}", *(state for line in lines for state in line.split("\r"))]))
    return "\n\n".join(parts)


def _lines(data: bytes) -> list[str]:
    lines = [line.rstrip("\r") for line in data.decode(errors="replace").split("\n")]
    return lines if lines[-1] else lines[:-1]


def _end(path: Path, limit: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, and how many it has."""
    with suppress(OSError), open(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - limit, 0))
        return file.read(limit), size
    return b"", 0
