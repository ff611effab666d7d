"""Files of a run on their way between boxes, in pieces; what they are called is checked like the names of an archive."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tuilab.runs.archive.names import is_run_file, list_run_files
from tuilab.storage.files import open_regular

_PORTION = 4 << 20  # bytes that are handed over at a time
_PIECE = 1 << 20


class FilePiece(NamedTuple):
    """A part of a file of the run."""

    name: str
    at: int
    data: bytes

    @property
    def end(self) -> int:
        return self.at + len(self.data)


def beyond(run_dir: Path, known: Mapping[str, int]) -> tuple[list[FilePiece], bool]:
    """Return what the files of a run have beyond the bytes that are known of each, and whether that is all."""
    pieces: list[FilePiece] = []
    room = _PORTION
    for name in list_run_files(run_dir):
        at = known.get(name, 0)
        pieces += (
            [FilePiece(name, 0, b"")] if name not in known else []
        )  # that there is such a file
        while room > 0 and (data := _read(run_dir / name, at, min(room, _PIECE))):
            pieces.append(FilePiece(name, at, data))
            at += len(data)
            room -= len(data)
    return pieces, room > 0


def write(run_dir: Path, piece: FilePiece) -> None:
    """Put a piece in its place in a file of the run; one that is called like no file of a run is left out."""
    if not is_run_file(piece.name):
        return
    flags = (
        os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (0 if piece.at else os.O_TRUNC)
    )
    with open(os.open(run_dir / piece.name, flags, 0o600), "wb", buffering=0) as file:
        file.seek(piece.at)
        file.write(piece.data)


def digest(path: Path) -> str:
    """Return the digest of a file; nothing where it cannot be read."""
    try:
        with open(open_regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _read(path: Path, at: int, most: int) -> bytes:
    """Return what a file has from a place on; nothing where there is no more."""
    try:
        with open(open_regular(path), "rb") as file:
            file.seek(at)
            return file.read(most)
    except OSError:
        return b""
