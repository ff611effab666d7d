"""All that lies below a folder, however deep and however long its paths: how large it is, and how it is removed.

Each step goes from one open folder to the next and back, never by a path; two descriptors are open at a time, whatever the
depth, and no link is followed.
"""

import errno
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_COUNTED = 100_000  # entries below a folder that are looked at for its size
_PATIENCE_S = 1.0
_NO_LIMIT = 1 << 40


class FolderEntry(NamedTuple):
    """Something below a folder, by its name in the open folder that holds it."""

    parent: int
    name: str
    is_folder: bool


def size(folder: str | os.PathLike[str], but: str = "") -> int | None:
    """Return the bytes of all files below a folder, but for those of one name.

    None where they cannot be counted to the end, or not in a moment.
    """
    until = time.monotonic() + _PATIENCE_S
    total = 0
    try:
        for entry in walk(folder, most=_COUNTED):
            if time.monotonic() > until:
                return None
            if not entry.is_folder and entry.name != but:
                total += _size_of(entry)
    except OSError:
        return None
    return total


def _size_of(file: FolderEntry) -> int:
    try:
        return os.stat(file.name, dir_fd=file.parent, follow_symlinks=False).st_size
    except FileNotFoundError:  # a run that goes on may remove a file
        return 0


def remove(folder: Path, last: str = "") -> None:
    """Remove a folder and all below it; what is called `last` goes last, so that it is there while anything is."""
    for parent, name, is_folder in walk(folder, last):
        if is_folder:
            os.rmdir(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
    os.rmdir(folder)


def walk(
    folder: str | os.PathLike[str], last: str = "", most: int = _NO_LIMIT
) -> Iterator[FolderEntry]:
    """Yield everything below a folder, a folder after all that is in it; OSError where that are more than `most` entries."""
    here = os.open(folder, _OPEN)
    way: list[
        tuple[tuple[int, int], list[str]]
    ] = []  # from the top to above here: who each is, and its folders still to come
    try:
        files, rest = _list(here, last, most)
        most -= len(files) + len(rest)
        yield from (FolderEntry(here, name, False) for name in files)
        while True:
            while rest:
                there = os.open(rest[-1], _OPEN, dir_fd=here)
                try:
                    files, folders = _list(there, last, most)
                    most -= len(files) + len(folders)
                    yield from (FolderEntry(there, name, False) for name in files)
                    if folders:  # only then it is gone into, and has to be left again
                        way.append((_identity(here), rest))
                        here, there, rest = there, here, folders
                        continue
                finally:
                    os.close(there)
                yield FolderEntry(here, rest.pop(), True)
            if not way:
                return
            here = _step(here, "..")
            above, rest = way.pop()
            if _identity(here) != above:
                raise OSError(errno.ESTALE, "it was moved meanwhile")
            yield FolderEntry(here, rest.pop(), True)
    finally:
        os.close(here)


def _list(here: int, last: str, most: int) -> tuple[list[str], list[str]]:
    """Return the names of the files and of the folders in an open folder; the folder that is to go last comes first."""
    with os.scandir(here) as entries:
        found = [
            (entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, most + 1)
        ]
    if len(found) > most:
        raise OSError(errno.EFBIG, "there is too much in it")
    folders = [name for name, is_folder in found if is_folder]
    return [name for name, is_folder in found if not is_folder], sorted(
        folders, key=lambda name: name != last
    )


def _step(here: int, name: str) -> int:
    """Go from an open folder into another."""
    there = os.open(name, _OPEN, dir_fd=here)
    os.close(here)
    return there


def _identity(here: int) -> tuple[int, int]:
    seen = os.fstat(here)
    return seen.st_dev, seen.st_ino
