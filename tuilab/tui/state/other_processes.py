"""The processes of other programs that keep cores busy while a run is running."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from tuilab.probes.processes import BusyProcesses, Process
from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.text.display import plural, show

_LEAST_CORES = 0.25  # that a process keeps busy if it is named
# Of a core at most, because something is timed. With thousands of processes, a poll takes 0.1 s.
_SHARE = 0.005


class OtherProcesses:
    """Polls /proc, less often if that takes long."""

    def __init__(self) -> None:
        self._busy = BusyProcesses()
        self._words = ""
        self._due_s = 0.0

    def describe(self, supervisor: Identity) -> str:
        """Return the busy processes besides the run and these screens, in words.

        For a run on another machine, return nothing. Until the next poll is due, return the words
        of the last one.
        """
        if time.monotonic() >= self._due_s:
            began_s = time.thread_time()
            self._words = self._poll(supervisor)
            self._due_s = time.monotonic() + (time.thread_time() - began_s) / _SHARE
        return self._words

    def _poll(self, supervisor: Identity) -> str:
        """Return the busy processes in words.

        Return nothing if the supervisor is not alive on this machine, or if the children of the run
        cannot be found: its own processes would be named as well.
        """
        if presence.presence(supervisor) != "alive":
            return ""
        own = {supervisor.pid, os.getpid()}
        with suppress(OSError):  # /proc does not show the children of every process
            for pid in list(own):
                own.update(presence.descendants(pid))
            return describe_busy(self._busy.read(own))
        return ""


def describe_busy(busy: Sequence[Process] | None) -> str:
    """Return the busy processes by user: `bob 2 processes 3.1 cores`; nothing if there are none."""
    by_user: dict[str, list[float]] = {}
    for process in busy or ():
        if process.cores is not None and process.cores >= _LEAST_CORES:
            user = show(process.user, 32) or "user n/a"
            by_user.setdefault(user, []).append(process.cores)
    parts = []
    for user, cores in by_user.items():
        parts.append(f"{user} {plural(len(cores), 'process', 'processes')} {sum(cores):.1f} cores")
    return ", ".join(parts)
