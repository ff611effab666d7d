"""Saves the summary of a long finished run next to its journal, so that the run opens at once.

The journal remains the truth: `tuilab verify`, the verdicts and archives use the journal. A saved
summary is used only for the very files that it was made from. If another version or another user
made it, or it is damaged, it is ignored and made again.
"""

import os
import sys
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import msgspec

from tuilab import __version__
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Few
from tuilab.storage.files import read_regular, replace, sealed, unsealed

FILE = ".folded.bin"
_LEAST_JOURNAL_BYTES = 2 << 20  # a smaller journal is read in a moment
_MOST_SAVED_BYTES = 64 << 20
# A saved summary expires if a module of these folders changes: together they decide how a journal
# is folded.
_CODE = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(__file__))

Stream = tuple[str, int, int, int]  # name, bytes, modification time in ns, inode


class Folded(msgspec.Struct, array_like=True):
    """A saved summary, with the code and the files that it was made from."""

    maker: str
    streams: list[Stream]
    summary: RunSummary


def read(run_dir: Path) -> tuple[RunSummary, int] | None:
    """Return the saved summary and the bytes of its journal; None if there is no valid one."""
    with suppress(OSError, ValueError, msgspec.MsgspecError):
        streams = _streams_of_long_run(run_dir)
        if not streams:
            return None
        data = unsealed(read_regular(run_dir / FILE, _MOST_SAVED_BYTES, is_ours=True))
        folded = msgspec.msgpack.decode(data, type=Folded)
        if folded.maker == _maker() and folded.streams == streams:
            _restore_limits(folded.summary)
            return folded.summary, _bytes_of(streams)
    return None


def keep(run_dir: Path, summary: RunSummary, bytes_read: int) -> None:
    """Save the summary of a finished run whose whole journal was read, if that is possible."""
    if not summary.is_over or summary.left_out:
        return
    # A record may have a number that msgpack cannot hold: OverflowError, ValueError or TypeError.
    with suppress(OSError, OverflowError, ValueError, TypeError):
        streams = _streams_of_long_run(run_dir)
        if streams and _bytes_of(streams) == bytes_read:
            data = msgspec.msgpack.encode(Folded(_maker(), streams, summary))
            if len(data) < _MOST_SAVED_BYTES:
                replace(run_dir / FILE, sealed(data))


def _streams_of_long_run(run_dir: Path) -> list[Stream]:
    """Return the streams of a journal, sorted; an empty list if the journal is small."""
    streams = []
    with os.scandir(run_dir / "journal") as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl"):
                stat = entry.stat(follow_symlinks=False)
                streams.append((entry.name, stat.st_size, stat.st_mtime_ns, stat.st_ino))
    if _bytes_of(streams) < _LEAST_JOURNAL_BYTES:
        return []
    return sorted(streams)


def _bytes_of(streams: list[Stream]) -> int:
    return sum(size for _, size, _, _ in streams)


def _maker() -> str:
    """Return a text that names the code that folds: its versions and the times of its files.

    A saved summary of other code is ignored.
    """
    times_ns = []
    for folder in _CODE:
        with os.scandir(folder) as files:
            for file in files:
                if file.name.endswith(".py"):
                    times_ns.append((file.name, file.stat().st_mtime_ns))
    times_ns.sort()
    return f"{__version__} {sys.hexversion} {msgspec.__version__} {times_ns}"


def _restore_limits(summary: RunSummary) -> None:
    """Turn the decoded dicts into `Few` again, which msgpack does not know."""
    for summary_field in fields(summary):
        if summary_field.default_factory is Few:
            decoded = getattr(summary, summary_field.name)
            setattr(summary, summary_field.name, Few(decoded))
