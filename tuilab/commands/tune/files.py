"""Find out which files a script wrote, changed or deleted in its folder, and copy a folder.

Only regular files count. Caches of Python, folders of version control and the folder of tuilab's
runs are left out.
"""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tuilab.errors import UsageError
from tuilab.text.display import show
from tuilab.text.words import size

_IGNORED = frozenset({"__pycache__", ".git", ".hg", ".svn", ".mypy_cache", ".ruff_cache"})
_MOST_FILES = 100_000
_PATIENCE_S = 10.0  # for one listing; a folder on a slow disk may be huge
_SPARE_BYTES = 1024**3  # that stay free beside a copy


class FileState(NamedTuple):
    """What shows that a file has changed."""

    size: int
    changed_ns: int
    inode: int


class Listing(NamedTuple):
    """The files of a folder by their path in it; `is_whole` is False if there were too many."""

    files: dict[str, FileState]
    is_whole: bool


class FileChanges(NamedTuple):
    """The files that a script wrote, changed and deleted, as paths in its folder, sorted."""

    written: list[str]
    changed: list[str]
    deleted: list[str]


def list_files(folder: str, ignored: Path) -> Listing:
    """Return the files of a folder, except those in the folder `ignored`."""
    deadline = time.monotonic() + _PATIENCE_S
    files: dict[str, FileState] = {}
    for path in _walk(folder, ignored):
        if len(files) >= _MOST_FILES or time.monotonic() > deadline:
            return Listing(files, is_whole=False)
        try:
            status = os.lstat(path)
        except OSError:  # it was removed meanwhile
            continue
        files[os.path.relpath(path, folder)] = FileState(
            status.st_size, status.st_mtime_ns, status.st_ino
        )
    return Listing(files, is_whole=True)


def changes_between(before: Listing, after: Listing) -> FileChanges:
    """Return what happened to the files between two listings of a folder.

    If a listing is not whole, a file that only the other one has proves nothing.
    """
    are_whole = before.is_whole and after.is_whole
    written = []
    changed = []
    deleted = []
    for path, state in after.files.items():
        if path not in before.files:
            if are_whole:
                written.append(path)
        elif before.files[path] != state:
            changed.append(path)
    if are_whole:
        deleted = [path for path in before.files if path not in after.files]
    return FileChanges(sorted(written), sorted(changed), sorted(deleted))


def bytes_of(folder: str, ignored: Path) -> int:
    """Return how many bytes a copy of a folder takes."""
    total = 0
    for path in _walk(folder, ignored):
        try:
            total += os.lstat(path).st_size
        except OSError:
            continue
    return total


def check_room(folder: str, needed_bytes: int, target: Path) -> None:
    """Raise UsageError if the disk of `target` has too little room for a copy."""
    free_bytes = shutil.disk_usage(target).free
    if needed_bytes + _SPARE_BYTES > free_bytes:
        raise UsageError(
            f"a copy of {show(folder, 200)} takes {size(needed_bytes)}, and "
            f"{show(str(target), 200)} has {size(free_bytes)} free; free some, choose another "
            "--root, or leave out --in-copy"
        )


def copy_folder(folder: str, target: Path, ignored: Path) -> None:
    """Copy a folder to `target`, which must not exist; links stay links. Raises OSError.

    Pipes, sockets and devices are left out: reading one might never end.
    """

    def leave_out(folder: str, names: list[str]) -> list[str]:
        paths = {name: os.path.join(folder, name) for name in names}
        return [
            name for name, path in paths.items() if _is_ignored(path, ignored) or _is_special(path)
        ]

    shutil.copytree(folder, target, symlinks=True, ignore=leave_out, ignore_dangling_symlinks=True)


def restore(folder: str, copy: Path, ignored: Path) -> None:
    """Copy the files of a folder again that are missing in its copy, or differ from it.

    A file that cannot be copied stays as it is.
    """
    for path in _walk(folder, ignored):
        target = os.path.join(copy, os.path.relpath(path, folder))
        try:
            if os.path.islink(path) or _is_special(path) or _is_like(path, target):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target)
        except OSError:
            continue


def _is_like(path: str, target: str) -> bool:
    """Return whether a copied file has the size and the time of its original."""
    try:
        copied = os.lstat(target)
    except FileNotFoundError:
        return False
    original = os.lstat(path)
    return (copied.st_size, copied.st_mtime_ns) == (original.st_size, original.st_mtime_ns)


def paths_outside(words: list[str], folder: str) -> list[str]:
    """Return the words of a command that are, or end with, an absolute path outside a folder."""
    outside = []
    for word in words[1:]:
        path = word.rpartition("=")[2]
        if not path.startswith("/"):
            continue
        if not _is_within(path, folder):
            outside.append(path)
    return outside


def move_words(words: list[str], folder: str, target: str) -> list[str]:
    """Return a command in which paths in `folder` are those of its copy `target`."""
    moved = []
    for word in words:
        option, equals, path = word.rpartition("=")
        if path.startswith("/") and _is_within(path, folder):
            path = os.path.join(target, os.path.relpath(path, folder))
            word = f"{option}{equals}{path}"
        moved.append(word)
    return moved


def _walk(folder: str, ignored: Path) -> Iterator[str]:
    """Yield the paths of the regular files and links below a folder."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if not _is_ignored(os.path.join(parent, name), ignored)
        ]
        for name in names:
            yield os.path.join(parent, name)


def _is_ignored(path: str, ignored: Path) -> bool:
    return os.path.basename(path) in _IGNORED or os.path.abspath(path) == str(ignored)


def _is_special(path: str) -> bool:
    mode = os.lstat(path).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _is_within(path: str, folder: str) -> bool:
    return os.path.commonpath([os.path.abspath(path), folder]) == folder
