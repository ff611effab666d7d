"""The folders of runs on a node.

The processes of a run hold a lock on its folder. If the lock is free, they were killed: the next
run then ends what is left of that run, and removes the folder. The name contains the boot id,
because on a shared disk the locks of other nodes may be invisible.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from tuilab.engine import launch
from tuilab.errors import TuilabError
from tuilab.record import presence
from tuilab.record.live_run import Watch

PREFIX = "tuilab-held-"
_PATIENCE_S = 10.0  # for an abandoned run to end
_POLL_S = 0.1


def make() -> tuple[Path, int]:
    """Create a folder, and return it with a descriptor that locks it while it is open anywhere."""
    folder = Path(tempfile.mkdtemp(prefix=_begin()))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):  # without locks, no folder is ever free
        fcntl.flock(held, fcntl.LOCK_EX)
    return folder, held


def _begin() -> str:
    """Return the first part of the name of each folder, which differs after a reboot."""
    return f"{PREFIX}{presence.boot_id()[:8]}-"


def clear() -> None:
    """Remove the folders of this user whose lock is free, and end the runs in them.

    A folder with a run that does not end stays for the next call.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_begin()}*"):
        with contextlib.suppress(OSError):  # of another user, or locked, or just removed
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _clear(folder, handle)
            finally:
                os.close(handle)


def _clear(folder: Path, handle: int) -> None:
    """End the runs in a folder of this user, and remove the folder when all of them have ended.

    `handle` is a descriptor of the folder. Raises BlockingIOError if its lock is taken.
    """
    if os.fstat(handle).st_uid != os.geteuid():
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not os.listdir(handle):  # it has just been created, and is not locked yet
        return
    have_ended = [end(run_dir) for run_dir in folder.glob("runs/[!.]*")]
    if all(have_ended):
        shutil.rmtree(folder, ignore_errors=True)


def end(run_dir: Path) -> bool:
    """End an abandoned run, and return whether it has ended.

    Waits up to ten seconds. Returns False also if the run cannot be read.
    """
    try:
        launch.stop(run_dir, at_once=True)
        with contextlib.closing(Watch(run_dir)) as watch:
            watch.catch_up()
            deadline = time.monotonic() + _PATIENCE_S
            while _is_left(watch, run_dir.name):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL_S)
        return True
    except (TuilabError, OSError):  # for example because it has just begun
        return False


def _is_left(watch: Watch, run: str) -> bool:
    return watch.supervisor_presence == "alive" or bool(presence.marked(run))
