"""A run whose processes cannot be seen from here, and which has no end: what can be said of it, and when it may be deleted.

Its folder came from another box, or is on a disk that boxes share; or the box got another name and was started again.
"""

import os
import time
from pathlib import Path

from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.text.display import show

SILENCE_S = 300.0  # a run that goes on writes twice a second, and a disk that boxes share shows it a minute later at most


def describe_elsewhere(run_dir: Path, supervisor: Identity) -> str:
    """Return what can be said of a run whose supervisor cannot be seen from here, and what to do about it."""
    name, place = show(store.short_id(run_dir.name)), _place(supervisor)
    if not is_silent(run_dir):
        return f"{name} runs {place}; stop it there"
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(_written_at(run_dir)))
    step = f"stop it there, or if you know that it has ended, delete it: {hint(run_dir.parent, 'rm', name, '--yes')}"
    return (
        f"{name} ran {place} and has no recorded end; it has written nothing since {since}; {step}"
    )


def is_silent(run_dir: Path) -> bool:
    """Say whether nothing was written to a run for long; a clock that is far ahead counts as well."""
    return abs(time.time() - _written_at(run_dir)) > SILENCE_S


def _place(supervisor: Identity) -> str:
    if presence.is_of_this_box(supervisor):
        return "in another container or pid namespace of this machine"
    return f"on {show(supervisor.host)}"


def _written_at(run_dir: Path) -> float:
    with os.scandir(run_dir / "journal") as streams:
        return max((stream.stat(follow_symlinks=False).st_mtime for stream in streams), default=0.0)
