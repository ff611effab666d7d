"""Walk, measure and remove a folder, however deep it is and however long its paths are.

The walk steps from one open folder into the next and back, and never uses a path. At most two
descriptors are open at a time, whatever the depth, and no link is followed.
"""

import errno
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tuilab.storage.files import identity

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_COUNTED = 100_000  # entries of a folder whose size is measured
_PATIENCE_S = 1.0  # for the same
_NO_LIMIT = 1 << 40


class FolderEntry(NamedTuple):
    """A file or folder, by its name in an open folder."""

    parent_fd: int
    name: str
    is_folder: bool


def size(folder: str | os.PathLike[str], but: str = "") -> int | None:
    """Return the bytes of all files in a folder, except those with one name.

    None if some cannot be read, or if it takes too long.
    """
    deadline = time.monotonic() + _PATIENCE_S
    total = 0
    try:
        for entry in walk(folder, most=_MAX_COUNTED):
            if time.monotonic() > deadline:
                return None
            if not entry.is_folder and entry.name != but:
                total += _size_of(entry)
    except OSError:
        return None
    return total


def _size_of(file: FolderEntry) -> int:
    """Return the size of a file in bytes; 0 if it was just removed."""
    try:
        return os.stat(file.name, dir_fd=file.parent_fd, follow_symlinks=False).st_size
    except FileNotFoundError:  # a run that is running may remove a file
        return 0


def remove(folder: Path, last: str = "") -> None:
    """Remove a folder and everything in it; folders named `last` go after all others.

    So a folder with this name exists as long as anything does. Raises OSError, with the rest left,
    if something cannot be removed.
    """
    for entry in walk(folder, last):
        if entry.is_folder:
            os.rmdir(entry.name, dir_fd=entry.parent_fd)
        else:
            os.unlink(entry.name, dir_fd=entry.parent_fd)
    os.rmdir(folder)


def walk(
    folder: str | os.PathLike[str], last: str = "", most: int = _NO_LIMIT
) -> Iterator[FolderEntry]:
    """Yield everything in a folder, a folder after its content.

    The caller may remove each entry as it comes. Folders named `last` come after all others. Raises
    OSError if there are more than `most` entries, or if a folder is moved meanwhile.
    """
    fd = os.open(folder, _OPEN)
    # The folders above the open one, from the top: the identity of each, and the names of its
    # folders that are still to be walked. The last name is the folder that the walk is in.
    above: list[tuple[tuple[int, int], list[str]]] = []
    try:
        files, folders = _list(fd, last, most)
        most -= len(files) + len(folders)
        for name in files:
            yield FolderEntry(fd, name, is_folder=False)
        while True:
            while folders:
                inner_fd = os.open(folders[-1], _OPEN, dir_fd=fd)
                try:
                    files, inner_folders = _list(inner_fd, last, most)
                    most -= len(files) + len(inner_folders)
                    for name in files:
                        yield FolderEntry(inner_fd, name, is_folder=False)
                    if inner_folders:  # only such a folder is entered, and left again later
                        above.append((_identity(fd), folders))
                        folders = inner_folders
                        fd, inner_fd = inner_fd, fd  # closes the outer one below
                        continue
                finally:
                    os.close(inner_fd)
                yield FolderEntry(fd, folders.pop(), is_folder=True)
            if not above:
                return
            fd = _step_up(fd)
            outer_identity, folders = above.pop()
            if _identity(fd) != outer_identity:
                raise OSError(errno.ESTALE, "it was moved meanwhile")
            yield FolderEntry(fd, folders.pop(), is_folder=True)
    finally:
        os.close(fd)


def _list(fd: int, last: str, most: int) -> tuple[list[str], list[str]]:
    """Return the names of the files and of the folders in an open folder.

    The walk takes folders from the end of the list, so the one named `last` comes first. Raises
    OSError if there are more than `most` names.
    """
    files = []
    folders = []
    with os.scandir(fd) as entries:
        for entry in islice(entries, most + 1):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                files.append(entry.name)
    if len(files) + len(folders) > most:
        raise OSError(errno.EFBIG, "there is too much in it")
    folders.sort(key=lambda name: name != last)
    return files, folders


def _step_up(fd: int) -> int:
    """Open the folder above an open folder, close that one, and return the new descriptor."""
    outer_fd = os.open("..", _OPEN, dir_fd=fd)
    os.close(fd)
    return outer_fd


def _identity(fd: int) -> tuple[int, int]:
    return identity(os.fstat(fd))
