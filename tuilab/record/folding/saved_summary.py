"""What a long run that is over amounts to, kept beside its journal, so that it opens at once the next time.

It is never the truth: `tuilab verify`, the verdicts and what is handed on go by the journal. It holds for the very files that
it was made from; one of another tuilab, of another user, or damaged is of no use, and made again.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import msgspec

from tuilab import __version__
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Few
from tuilab.storage.files import read_regular, replace, sealed, unsealed

FILE = ".folded.bin"
_LEAST = 2 << 20  # bytes of a journal: fewer are read in a moment
_MOST = 64 << 20  # bytes of what is kept
_MADE_BY = (
    "summary",
    "summary_parts",
    "series",
    "events",
    "folding/fold",
    "folding/fold_box",
    "folding/fold_claims",
    "folding/fold_races",
    "folding/fold_run",
    "folding/arms_table",
)

Stream = tuple[str, int, int, int]  # name, bytes, when it was written, inode


class Folded(msgspec.Struct, array_like=True):
    """A summary with what it was made by and from."""

    maker: str
    streams: list[Stream]
    summary: RunSummary


def read(run_dir: Path) -> tuple[RunSummary, int] | None:
    """Return the summary that is kept, and the bytes of the journal that it stands for; None where none is of use."""
    with suppress(OSError, ValueError, msgspec.MsgspecError):
        if streams := _long_streams(run_dir):
            data = unsealed(read_regular(run_dir / FILE, _MOST, is_ours=True))
            found = msgspec.msgpack.decode(data, type=Folded)
            if (found.maker, found.streams) == (_maker(), streams):
                _limit(found.summary)
                return found.summary, _size(streams)
    return None


def keep(run_dir: Path, summary: RunSummary, bytes_read: int) -> None:
    """Keep the summary of a run that is over, all of whose journal was read; where that cannot be, it is read again."""
    if not summary.is_over or summary.left_out:
        return
    with suppress(
        OSError, OverflowError, ValueError, TypeError
    ):  # or a record has a number that is in no other format
        streams = _long_streams(run_dir)
        if streams and _size(streams) == bytes_read:
            data = msgspec.msgpack.encode(Folded(_maker(), streams, summary))
            if len(data) < _MOST:
                replace(run_dir / FILE, sealed(data))


def _long_streams(run_dir: Path) -> list[Stream]:
    """Return the streams of a journal that takes a while to read; nothing of another one."""
    streams = sorted(_streams(run_dir))
    return streams if _size(streams) >= _LEAST else []


def _streams(run_dir: Path) -> Iterator[Stream]:
    with os.scandir(run_dir / "journal") as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl"):
                seen = entry.stat(follow_symlinks=False)
                yield entry.name, seen.st_size, seen.st_mtime_ns, seen.st_ino


def _size(streams: list[Stream]) -> int:
    return sum(size for _, size, _, _ in streams)


def _maker() -> str:
    """Return what changes when the same journal could be folded differently."""
    folder = os.path.dirname(os.path.dirname(__file__))
    ours = [os.stat(f"{folder}/{name}.py").st_mtime_ns for name in _MADE_BY]
    return f"{__version__} {sys.hexversion} {msgspec.__version__} {ours}"


def _limit(summary: RunSummary) -> None:
    """Have what is kept by name be what it is while a run is read."""
    for one in fields(summary):
        if one.default_factory is Few:
            setattr(summary, one.name, Few(getattr(summary, one.name)))
