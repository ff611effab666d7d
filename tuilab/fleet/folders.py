"""The folders that runs have on a node. Who keeps a run holds a lock on its folder, which goes with the last of them.

So a folder whose lock is free is nobody's: its keeper and its actor were killed. Whoever comes next ends what still runs there,
and removes it. Its name has the boot: on a disk that nodes share, not every file system knows the locks of another one.
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
_PATIENCE_S = 10.0  # with a run that nobody keeps, to end
_LOOK_S = 0.1


def make() -> tuple[Path, int]:
    """Make a folder, and return it with a descriptor that holds it for as long as it is open anywhere."""
    folder = Path(tempfile.mkdtemp(prefix=_begin()))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):  # a file system without locks: then none is ever free
        fcntl.flock(held, fcntl.LOCK_EX)
    return folder, held


def _begin() -> str:
    return f"{PREFIX}{presence.boot_id()[:8]}-"


def clear() -> None:
    """Remove the folders of this user that nobody holds any more; what runs there is ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_begin()}*"):
        with contextlib.suppress(OSError):  # somebody else's, or held, or just gone
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _clear(folder, handle)
            finally:
                os.close(handle)


def _clear(folder: Path, handle: int) -> None:
    if os.fstat(handle).st_uid != os.geteuid():
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not os.listdir(handle):  # it was made in this moment, and is held in the next
        return
    have_ended = [end(run_dir) for run_dir in folder.glob("runs/[!.]*")]
    if all(have_ended):
        shutil.rmtree(folder, ignore_errors=True)


def end(run_dir: Path) -> bool:
    """End a run whose keeper is gone, or it would go on and nobody would see to it; say whether it has ended."""
    try:
        launch.stop(run_dir, at_once=True)
        with contextlib.closing(Watch(run_dir)) as watch:
            watch.catch_up()
            until = time.monotonic() + _PATIENCE_S
            while (is_left := _is_left(watch, run_dir.name)) and time.monotonic() < until:
                time.sleep(_LOOK_S)
        return not is_left
    except (TuilabError, OSError):  # as where it has just begun
        return False


def _is_left(watch: Watch, run: str) -> bool:
    return watch.supervisor_presence == "alive" or bool(presence.marked(run))
