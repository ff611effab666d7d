"""The files of a run, by name and size. An archive has no others, and no others are unpacked."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tuilab.record.folding import saved_summary
from tuilab.record.origin import carried, taken_out
from tuilab.record.origin.imported import IMPORTED
from tuilab.runs import notes

MOST_BYTES = 4 << 30  # of all files of a run
MOST_FILES = 10_000
FOLDERS = frozenset({"journal", "artifacts"})
_PLAIN = frozenset(
    {"scenario.py", "stdout.log", "stderr.log", "supervisor.log", notes.FILE, taken_out.FILE}
)
_FAULT = re.compile(r"(?a:fault-worker-\d{1,9}(?:-rank-\d{1,9})?\.log)")  # a crash of a worker


def list_run_files(run_dir: Path) -> Iterator[str]:
    """Yield the names of the regular files of a run, those of the journal first."""
    for folder in (*sorted(FOLDERS, reverse=True), ""):
        for name, is_file in _entries(run_dir, folder):
            if is_file and is_run_file(name):
                yield name


def list_left_out(run_dir: Path) -> list[str]:
    """Return the names in the folder of a run that are not packed.

    They are not regular files, or no file of a run has such a name. Files that describe only this
    copy of the run, such as the mark of an import, are not in the list.
    """
    expected = {IMPORTED, saved_summary.FILE, carried.FILE, carried.STOP}
    expected |= {folder for folder in FOLDERS if not (run_dir / folder).is_symlink()}
    names = []
    for folder in ("", *sorted(FOLDERS)):
        for name, is_file in _entries(run_dir, folder):
            if name not in expected and not (is_file and is_run_file(name)):
                names.append(name)
    return names


def _entries(run_dir: Path, folder: str) -> list[tuple[str, bool]]:
    """Return the names in one folder of a run, and whether each is a regular file.

    Empty if the folder is a link or cannot be read.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        fd = os.open(run_dir / folder, flags)
        try:
            names = []
            with os.scandir(fd) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    names.append((name, entry.is_file(follow_symlinks=False)))
            return sorted(names)
        finally:
            os.close(fd)
    return []


def is_run_file(name: str) -> bool:
    """Return whether a run may have a file of this name, which is relative to its folder."""
    folder, _, file = name.rpartition("/")
    if not folder:
        return name in _PLAIN or _FAULT.fullmatch(name) is not None
    if file.startswith(".") or "\0" in file or len(os.fsencode(file)) > 255:
        return False
    if folder == "artifacts":
        return True
    return folder == "journal" and file.isprintable() and file.endswith(".jsonl")
