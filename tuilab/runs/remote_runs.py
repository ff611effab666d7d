"""Describe a run without an end whose processes cannot be seen from here.

Its folder came from another machine, or is on a disk that machines share. Or the machine got
another name and was rebooted.
"""

import os
import time
from pathlib import Path

from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.text.display import show

# A running run writes twice a second. A disk that machines share shows it at most a minute later.
SILENCE_S = 300.0


def describe_elsewhere(run_dir: Path, supervisor: Identity) -> str:
    """Return where a run is or was running, and how to stop or delete it."""
    name = show(store.short_id(run_dir.name))
    place = _place(supervisor)
    if not is_silent(run_dir):
        return f"{name} runs {place}; stop it there"
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(_written_at(run_dir)))
    command = hint(run_dir.parent, "rm", name, "--yes")
    return (
        f"{name} ran {place} and has no recorded end; it has written nothing since {since}; "
        f"stop it there, or if you know that it has ended, delete it: {command}"
    )


def is_silent(run_dir: Path) -> bool:
    """Return whether nothing was written to a run for SILENCE_S.

    A time that is as far in the future counts as well: the clock of the other machine is wrong.
    """
    return abs(time.time() - _written_at(run_dir)) > SILENCE_S


def _place(supervisor: Identity) -> str:
    if presence.is_of_this_box(supervisor):
        return "in another container or pid namespace of this machine"
    return f"on {show(supervisor.host)}"


def _written_at(run_dir: Path) -> float:
    with os.scandir(run_dir / "journal") as streams:
        return max((stream.stat(follow_symlinks=False).st_mtime for stream in streams), default=0.0)
