"""The files that a run has: what they are called and how much they are. No others go into an archive or come out of one."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tuilab.record.folding import saved_summary
from tuilab.record.origin import carried, taken_out
from tuilab.record.origin.imported import IMPORTED
from tuilab.runs import notes

MOST_BYTES = 4 << 30  # of all files of a run together
MOST_FILES = 10_000
FOLDERS = frozenset({"journal", "artifacts"})
_PLAIN = frozenset(
    {"scenario.py", "stdout.log", "stderr.log", "supervisor.log", notes.FILE, taken_out.FILE}
)
_FAULT = re.compile(r"(?a:fault-worker-\d{1,9}(?:-rank-\d{1,9})?\.log)")  # of a worker that crashed


def names(run_dir: Path) -> Iterator[str]:
    """Yield the names of the plain files that a run has, the journal first."""
    for folder in (*sorted(FOLDERS, reverse=True), ""):
        yield from (
            name for name, is_file in _entries(run_dir, folder) if is_file and is_of_a_run(name)
        )


def left_out(run_dir: Path) -> list[str]:
    """Return what is in the folder of a run and in no archive of it: what is no plain file, or has a name that no run has."""
    found = [one for folder in ("", *sorted(FOLDERS)) for one in _entries(run_dir, folder)]
    kept = {
        IMPORTED,
        saved_summary.FILE,
        carried.FILE,
        carried.STOP,
        *(name for name in FOLDERS if not (run_dir / name).is_symlink()),
    }
    return [
        name for name, is_file in found if name not in kept and not (is_file and is_of_a_run(name))
    ]


def _entries(run_dir: Path, folder: str) -> list[tuple[str, bool]]:
    """Return the names in one folder of a run, and whether each is a plain file; of a link in its place nothing."""
    with contextlib.suppress(OSError):
        here = os.open(
            run_dir / folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
        try:
            with os.scandir(here) as entries:
                return sorted(
                    (f"{folder}/{one.name}".lstrip("/"), one.is_file(follow_symlinks=False))
                    for one in entries
                )
        finally:
            os.close(here)
    return []


def is_of_a_run(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    if not folder:
        return name in _PLAIN or _FAULT.fullmatch(name) is not None
    is_plain = not file.startswith(".") and "\0" not in file and len(os.fsencode(file)) <= 255
    return is_plain and (
        folder == "artifacts"
        or (folder == "journal" and file.isprintable() and file.endswith(".jsonl"))
    )
