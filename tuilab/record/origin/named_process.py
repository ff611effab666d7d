"""Checks a process that the files of a run name by pid and start time, before it is signalled.

All users of a machine can read the pid and the start time of every process. So in a folder of runs
that others may write, a forged record can name any process. Only the files that a process has open
cannot be forged.
"""

import os
import stat
from pathlib import Path

from tuilab.record.presence import GONE, start_time, stat_fields
from tuilab.storage.files import can_only_be_ours, identity

_RECORD = "supervisor.jsonl"
_WRITABLE = 0o200  # in the mode of a link in /proc/PID/fd: the file is open for writing
_PARENT = 1  # field of /proc/PID/stat, counted from the state


def record_of(run_dir: Path) -> Path:
    """Return the stream that the supervisor of a run keeps open."""
    return run_dir / "journal" / _RECORD


def is_supervisor_of(run_dir: Path, pid: int) -> bool:
    """Say whether a process is the supervisor of a run: it has the run's record open for writing.

    OSError if that cannot be seen. In a sandbox that hides what processes have open, a child of
    this process is trusted.
    """
    try:
        return _has_open_for_writing(pid, record_of(run_dir))
    except OSError:
        if _is_child_of_ours(pid):
            return True
        raise


def is_front_of_sweep(run_dir: Path, pid: int) -> bool:
    """Say whether a process that a run names starts the points of its sweep.

    Both the run and the process have to be ours. Such a process has no file of the run open, so a
    record is believed only if no other user can have written it.
    """
    record = record_of(run_dir)
    try:
        for path in (run_dir, record.parent, record):
            if not can_only_be_ours(os.lstat(path)):
                return False
        is_own_process = os.stat(f"/proc/{pid}").st_uid == os.geteuid()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    is_tuilab = any(os.path.basename(word) == b"tuilab" for word in words)
    return is_own_process and is_tuilab and b"sweep" in words


def has_ended(pid: int, start: int) -> bool:
    """Say whether the process with this pid and start time is gone; OSError if not known."""
    return start_time(pid) != start


def _has_open_for_writing(pid: int, path: Path) -> bool:
    """Say whether a process writes a file.

    A file with a second name may belong to another run, so it is refused.
    """
    file = os.lstat(path)
    if not stat.S_ISREG(file.st_mode) or file.st_nlink != 1:
        return False
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        link = f"{folder}/{number}"
        try:
            # Other files are left alone: one may be on a disk that does not answer.
            is_of_that_name = os.path.basename(os.readlink(link)).startswith(path.name)
            if not is_of_that_name or not os.lstat(link).st_mode & _WRITABLE:
                continue
            if identity(os.stat(link)) == identity(file):
                return True
        except GONE:  # it was closed meanwhile
            continue
    return False


def _is_child_of_ours(pid: int) -> bool:
    fields = stat_fields(pid)
    return fields is not None and int(fields[_PARENT]) == os.getpid()
