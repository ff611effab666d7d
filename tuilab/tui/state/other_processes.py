"""The processes of other programs that keep cores busy while a run is running."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from tuilab.probes.processes import BusyProcesses, Process
from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.text.display import plural, show

_LEAST_CORES = 0.25  # that a process has to keep busy to be named
_SHARE = 0.005  # of a core at most, while something is timed: with thousands of processes a poll takes a tenth of a second


class OtherProcesses:
    """Polls /proc, and polls it less often where that takes long."""

    def __init__(self) -> None:
        self._busy = BusyProcesses()
        self._words = ""
        self._due_s = 0.0

    def describe(self, supervisor: Identity) -> str:
        """Return who keeps cores busy besides a run and these screens; nothing for a run on another machine."""
        if time.monotonic() >= self._due_s:
            began_s = time.thread_time()
            self._words = self._poll(supervisor)
            self._due_s = time.monotonic() + (time.thread_time() - began_s) / _SHARE
        return self._words

    def _poll(self, supervisor: Identity) -> str:
        if presence.presence(supervisor) != "alive":
            return ""
        own = {supervisor.pid, os.getpid()}
        with suppress(OSError):  # /proc does not show the children of every process
            for pid in list(own):
                own.update(presence.descendants(pid))
            return describe_busy(self._busy.read(own))
        return ""


def describe_busy(busy: Sequence[Process] | None) -> str:
    """Return who keeps cores busy, by user: `bob 2 processes 3.1 cores`; nothing if nobody does."""
    by_user: dict[str, list[float]] = {}
    for process in busy or ():
        if process.cores is not None and process.cores >= _LEAST_CORES:
            user = show(process.user, 32) or "user n/a"
            by_user.setdefault(user, []).append(process.cores)
    parts = []
    for user, cores in by_user.items():
        parts.append(f"{user} {plural(len(cores), 'process', 'processes')} {sum(cores):.1f} cores")
    return ", ".join(parts)
