"""The table of processes as the Box screen shows it, from what GPUs and /proc tell; and in a line who runs beside a run."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tuilab.probes.processes import Busy, Process, look_at
from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.text import plural, show

_LEAST_CORES = 0.25  # that a process keeps busy which a run has for company
_SHARE = 0.005  # of a core at most, while something is timed: with thousands of processes a look takes a tenth of a second


class Table(NamedTuple):
    """Processes, each with the device that it is on; `note` is what is to be known of them."""

    title: str
    rows: Sequence[tuple[str, Process]]
    note: str = ""


def of_gpus(gpus: Iterable[tuple[str, Sequence[Mapping[str, Any]], str]]) -> Table:
    """Return who computes on GPUs: of each its label, its processes as NVML told them, and why it told none."""
    rows, reasons = [], dict[str, list[str]]()
    for label, tenants, why in gpus:
        rows += [(label, _tenant(one)) for one in tenants]
        if why:
            reasons.setdefault(why, []).append(label)
    note = "; ".join(f"{', '.join(labels)} n/a: {show(why, 120)}" for why, labels in reasons.items())
    return Table("processes", rows, note or ("" if rows else "no processes on the GPUs"))


def _tenant(told: Mapping[str, Any]) -> Process:
    """Return a process on a GPU with its memory there; where no user was told the pid may be that of another process here."""
    used, pid = told.get("bytes_used"), int(told.get("pid", 0))
    if not told.get("user"):
        return Process(pid, "", None, "", str(told.get("why") or "not reported"), rss_bytes=used)
    return look_at(pid)._replace(user=str(told["user"]), rss_bytes=used)


def of_cores(busy: Sequence[Process] | None, hidden: str) -> Table:
    """Return who keeps the cores busy, and why not all are seen."""
    if busy is None:
        return Table("processes", (), "measuring …")
    note = f"incomplete: {hidden}" if hidden else ""
    return Table("processes", [(_cores(one), one) for one in busy], note or ("" if busy else "no process keeps a core busy"))


def _cores(one: Process) -> str:
    return f"{one.cores:.2f} core" if one.cores is not None else "n/a"


class Company:
    """Looks who else keeps the cores busy while a run goes on."""

    def __init__(self) -> None:
        self._busy = Busy()
        self._words = ""
        self._due_s = 0.0

    def look(self, supervisor: Identity) -> str:
        """Return who does beside a run and these screens; nothing where nobody does, and of a run on another box."""
        if time.monotonic() >= self._due_s:
            began_s = time.thread_time()
            self._words = self._look(supervisor)
            self._due_s = time.monotonic() + (time.thread_time() - began_s) / _SHARE
        return self._words

    def _look(self, supervisor: Identity) -> str:
        if presence.presence(supervisor) != "alive":
            return ""
        tops = (supervisor.pid, os.getpid())
        with suppress(OSError):  # /proc does not tell who started whom
            return company_on_cores(self._busy.read({*tops, *(pid for top in tops for pid in presence.descendants(top))}))
        return ""


def company_on_cores(busy: Sequence[Process] | None) -> str:
    """Return who else keeps cores busy, by user: `bob 2 processes 3.1 cores`; nothing where nobody does."""
    by_user: dict[str, list[float]] = {}
    for one in busy or ():
        if one.cores is not None and one.cores >= _LEAST_CORES:
            by_user.setdefault(show(one.user, 32) or "user n/a", []).append(one.cores)
    return ", ".join(
        f"{user} {plural(len(cores), 'process', 'processes')} {sum(cores):.1f} cores" for user, cores in by_user.items()
    )
