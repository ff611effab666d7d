"""The output of a run: its last lines for a pane, and all kept lines for a pager."""

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
_TAIL_BYTES = 16 * 1024  # of each stream, read for a pane
_WHOLE_BYTES = 4 * 1024 * 1024  # more than a run keeps
LINES = 200
_MAX_LINE = 1000  # characters of a line in a pane


@dataclass(frozen=True)
class OutputTail:
    """The last lines of a file; `is_whole` if they are all its lines."""

    lines: list[str]
    bytes_total: int
    is_whole: bool


@dataclass(frozen=True)
class Seam:
    """A gap in a kept stream, after so many bytes, and the words about it."""

    offset: int
    words: str


def seam_of(path: Path, summary: RunSummary) -> Seam | None:
    """Return the gap in the file of a stream; None if there is none, as far as is known."""
    stream = path.stem
    output = summary.outputs.get(stream)
    if output:
        words = dropped_words(summary).get(stream)
        if not words:
            return None
        return Seam(output.bytes_head, words)
    # The run is running: how much it has printed is recorded only at its end.
    with suppress(OSError):
        if path.lstat().st_size >= HEAD + TAIL:
            words = f"{stream}: only its first {size(HEAD)} and last {size(TAIL)} are kept"
            return Seam(HEAD, words)
    return None


def tail(path: Path, seam: Seam | None = None) -> OutputTail:
    """Return the last lines of a file. Of a line with carriage returns, the last state counts."""
    data, bytes_total = _read_end(path, _TAIL_BYTES)
    start = bytes_total - len(data)
    lines = _lines(data, start, seam)
    if start > 0:
        lines = lines[1:]  # the first line may have lost its beginning
    last_lines = []
    for line in lines[-LINES:]:
        _, _, last_state = line.rpartition("\r")
        last_lines.append(last_state[:_MAX_LINE])
    is_whole = start == 0 and len(lines) <= LINES
    return OutputTail(last_lines, bytes_total, is_whole)


def whole(run_dir: Path, summary: RunSummary) -> str:
    """Return all kept output of a run, each stream after the path of its file, with marked gaps.

    Each state of a line with carriage returns has a line of its own.
    """
    parts = []
    for stream in STREAMS:
        path = run_dir / f"{stream}.log"
        data, _ = _read_end(path, _WHOLE_BYTES)
        lines = _lines(data, 0, seam_of(path, summary))
        if lines:
            states = "\n".join(lines).replace("\r", "\n")
            parts.append(f"== {path}\n{states}")
            continue
        reason = _why_unreadable(path)
        if reason:
            parts.append(f"== {path}\n--- cannot be read: {reason} ---")
    return "\n\n".join(parts)


def _lines(data: bytes, start: int, seam: Seam | None) -> list[str]:
    """Return the lines of the part of a file that begins at a byte, with a mark for the gap."""
    if seam is None or not start <= seam.offset <= start + len(data):
        return _split(data)
    cut = seam.offset - start
    return [*_split(data[:cut]), f"--- {seam.words} ---", *_split(data[cut:])]


def _split(data: bytes) -> list[str]:
    """Return the lines of some bytes, without line ends, and without an empty last line."""
    text = data.decode(errors="replace")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if not lines[-1]:
        lines.pop()
    return lines


def _why_unreadable(path: Path) -> str:
    """Return why a file cannot be read; nothing if it can be read or does not exist."""
    try:
        os.close(open_regular(path))
    except FileNotFoundError:
        return ""
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _read_end(path: Path, limit: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, at most `limit`, and the size of the file."""
    with suppress(OSError), open(open_regular(path), "rb") as file:
        bytes_total = os.fstat(file.fileno()).st_size
        file.seek(max(bytes_total - limit, 0))
        return file.read(limit), bytes_total
    return b"", 0
