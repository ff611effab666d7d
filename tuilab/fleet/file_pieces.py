"""Files of a run that are copied between machines in pieces; names are checked as in an archive."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tuilab.runs.archive.names import is_run_file, list_run_files
from tuilab.storage.files import open_regular

_PORTION = 4 << 20  # bytes of one answer
_PIECE = 1 << 20  # bytes


class FilePiece(NamedTuple):
    """A part of a file of a run."""

    name: str
    at: int  # the offset in the file
    data: bytes

    @property
    def end(self) -> int:
        return self.at + len(self.data)


def beyond(run_dir: Path, sizes: Mapping[str, int]) -> tuple[list[FilePiece], bool]:
    """Return what the files of a run have beyond these sizes, and whether that is all.

    A new file begins with an empty piece, because it may be empty. One answer has at most 4 MiB.
    """
    pieces: list[FilePiece] = []
    room = _PORTION
    for name in list_run_files(run_dir):
        offset = sizes.get(name, 0)
        if name not in sizes:
            pieces.append(FilePiece(name, 0, b""))  # the file may be empty
        while room > 0:
            data = _read(run_dir / name, offset, min(room, _PIECE))
            if not data:
                break
            pieces.append(FilePiece(name, offset, data))
            offset += len(data)
            room -= len(data)
    return pieces, room > 0


def write(run_dir: Path, piece: FilePiece) -> None:
    """Write a piece into its file; a piece at 0 empties the file first.

    A name that no file of a run can have is ignored.
    """
    if not is_run_file(piece.name):
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    if piece.at == 0:
        flags |= os.O_TRUNC
    with open(os.open(run_dir / piece.name, flags, 0o600), "wb", buffering=0) as file:
        file.seek(piece.at)
        file.write(piece.data)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits, or "" if it cannot be read."""
    try:
        with open(open_regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _read(path: Path, offset: int, most: int) -> bytes:
    """Return at most `most` bytes of a file from an offset on.

    The answer is empty at the end of the file, and if the file cannot be read.
    """
    try:
        with open(open_regular(path), "rb") as file:
            file.seek(offset)
            return file.read(most)
    except OSError:
        return b""
