"""The queue of a folder of runs: a ticket for each run that times something.

A ticket is a small file in `.queue` with the devices of a run and its place. The supervisor of the
run writes it when the run is made, and deletes it at the end. The ticket of a supervisor that was
killed stays behind and no longer counts. There is no process of the queue: nothing outlives the
last run. A process that starts a run or changes the order holds the lock of the folder meanwhile.
A ticket that cannot be read is shown as such. Its run is waited for as long as it is running,
because it may use any device.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from tuilab.errors import CannotRecord, TuilabError, UsageError
from tuilab.record import presence
from tuilab.record.events import Count, Identity
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.runs import read_entry, store
from tuilab.runs.command_line import hint
from tuilab.storage import user_data
from tuilab.storage.files import Unusable, locked, read_regular, replace
from tuilab.text.display import show

FOLDER = ".queue"
_PAUSED = "paused"
_LIMIT = 1024 * 1024  # bytes of a ticket
_PATIENCE_S = 5.0  # for the lock, which other processes hold only for a moment
_ANY = "n/a"  # the device of a run whose ticket cannot be read
_LAST = 1e12  # the place of a queued run whose ticket cannot be read
_NO_PROCESS = Identity("", "", 0, 0)
# A run is waited for while its supervisor is alive, or if that is not known. If the supervisor is
# on another machine, its run uses other devices.
_PRESENT = ("alive", "unknown")


class QueueState(NamedTuple):
    """The queue at one moment."""

    running: Sequence["Ticket"] = ()
    waiting: Sequence["Ticket"] = ()  # the next one first
    lost: Sequence["Ticket"] = ()  # the supervisor was killed while they waited, or at a reboot
    is_paused: bool = False

    @property
    def rows(self) -> list[tuple[RunState, int | None, "Ticket"]]:
        """The tickets, each with the state of its run and, if it waits, its place from 1 on."""
        rows: list[tuple[RunState, int | None, Ticket]] = []
        rows += [(RunState.RUNNING, None, ticket) for ticket in self.running]
        rows += [(RunState.QUEUED, place, ticket) for place, ticket in enumerate(self.waiting, 1)]
        rows += [(RunState.LOST, None, ticket) for ticket in self.lost]
        return rows


class Ticket(msgspec.Struct, kw_only=True):
    """A run's place in the queue."""

    run: str
    name: str  # topic/scenario
    devices: list[str]
    supervisor: Identity
    place: Annotated[float, msgspec.Meta(ge=0, le=2 * _LAST)]  # the lowest place is the next
    since_ns: Count
    has_begun: bool = False
    order: dict[str, Any] | None = None  # to queue it again; None if it contains a secret

    @property
    def is_waiting(self) -> bool:
        return not self.has_begun


def enter(root: Path, ticket: Ticket) -> None:
    """Put a run at the end of the queue, and delete the tickets that killed runs left behind.

    `ticket.place` is set. If the lock stays busy for too long, the run enters without it, so that
    two runs may get one place. Raise CannotRecord if the folder cannot be written.
    """
    with _lock(root):
        last_place = 0.0
        for other in tickets(root):
            last_place = max(last_place, other.place)
            if other.has_begun and presence.presence(other.supervisor) == "dead":
                _delete(root, other.run)
        ticket.place = last_place + 1.0
        _write(root, ticket.run, msgspec.to_builtins(ticket))


def begin(root: Path, run: str) -> bool:
    """Let a run begin if it is its turn, and return whether it is. Its ticket then says so.

    It is not while the queue is paused, while another process holds the lock, or while a run that
    has begun or has a lower place may use the same device.
    """
    with _lock(root, patience_s=0.0) as has_lock:
        own = _read(root, run)
        if own is None:
            return True  # its ticket was deleted: no other run can wait for it either
        if not has_lock or is_paused(root) or tickets_ahead(own, tickets(root)):
            return False
        _write(root, run, {"has_begun": True})
        return True


def leave(root: Path, run: str) -> None:
    """Delete the ticket of a run, if there is one; a ticket that cannot be deleted stays."""
    if not os.path.lexists(_path(root, run)):  # most runs time nothing, and have none
        return
    # Without the lock, another process could move the run at this moment and so restore its ticket.
    with contextlib.suppress(OSError, CannotRecord), _lock(root):
        _delete(root, run)


def tickets(root: Path) -> list[Ticket]:
    """Return all tickets: first those of runs that have begun, then the others by their place.

    A newer tuilab may have written some. Fields that it added are ignored, and kept when a ticket
    changes.
    """
    try:
        names = sorted(name for name in os.listdir(root / FOLDER) if name.endswith(".json"))
    except OSError:
        return []
    readable = []
    for name in names:
        ticket = _read(root, name.removesuffix(".json"))
        if ticket is not None:
            readable.append(ticket)
    return sorted(readable, key=lambda ticket: (ticket.is_waiting, ticket.place, ticket.run))


def read_queue(root: Path) -> QueueState:
    """Return the queue as it is now."""
    running = []
    waiting = []
    lost = []
    for ticket in tickets(root):
        supervisor = presence.presence(ticket.supervisor)
        if supervisor in _PRESENT:
            if ticket.is_waiting:
                waiting.append(ticket)
            else:
                running.append(ticket)
        elif supervisor == "dead" and ticket.is_waiting:
            lost.append(ticket)
    return QueueState(running, waiting, lost, is_paused(root))


def waiting(root: Path) -> Sequence[Ticket]:
    return read_queue(root).waiting


def lost(root: Path) -> Sequence[Ticket]:
    return read_queue(root).lost


def running(root: Path) -> Sequence[Ticket]:
    return read_queue(root).running


def trusted_order(root: Path, run: str) -> dict[str, Any] | None:
    """Return the order of a run that this user queued.

    UsageError if another user may have written the ticket: the order names code that would be run.
    """
    try:
        ticket = user_data.struct_of(Ticket)(read_regular(_path(root, run), _LIMIT, is_ours=True))
    except (OSError, ValueError, RecursionError, Unusable) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(
            f"{show(store.short_id(run))} cannot be queued again: "
            f"its ticket cannot be trusted ({why})"
        ) from problem
    return ticket.order


def tickets_ahead(own: Ticket, candidates: Sequence[Ticket]) -> list[Ticket]:
    """Return the tickets of the runs that a run has to wait for."""
    ahead = []
    for ticket in candidates:
        is_before = ticket.has_begun or (ticket.place, ticket.run) < (own.place, own.run)
        if not is_before or ticket.run == own.run:
            continue
        if not may_share_device(ticket.devices, own.devices):
            continue
        if presence.presence(ticket.supervisor) in _PRESENT:
            ahead.append(ticket)
    return ahead


def may_share_device(devices: Sequence[str], other_devices: Sequence[str]) -> bool:
    """Return whether two runs may use the same device.

    `cuda` may be any GPU, and the device of a ticket that cannot be read may be any device.
    """
    if _ANY in devices or _ANY in other_devices:
        return True
    for device in devices:
        for other in other_devices:
            if device == other:
                return True
            if "cuda" in (device, other) and device[:4] == other[:4]:
                return True
    return False


def move(root: Path, run: str, place: int) -> None:
    """Move a queued run to a place among the queued runs, 1 for the next one.

    Runs whose tickets cannot be read are not counted. Raise UsageError if the run is not queued, if
    there is no such place, or if the lock is busy.
    """
    with _lock(root) as has_lock:
        if not has_lock:
            raise UsageError("another process is changing the queue; try again")
        line = [ticket for ticket in waiting(root) if _ANY not in ticket.devices]
        own = _find_ticket(root, run, line)
        if not 1 <= place <= len(line):
            raise UsageError(f"no place {place} in the queue; use 1 to {len(line)}")
        places = sorted(ticket.place for ticket in line)
        line.remove(own)
        line.insert(place - 1, own)
        for ticket, new_place in zip(line, places, strict=True):
            _write(root, ticket.run, {"place": new_place})


def _find_ticket(root: Path, run: str, line: Sequence[Ticket]) -> Ticket:
    """Return the ticket of a run among those that wait.

    Raise UsageError if it is not there, because the run has started or was never queued.
    """
    for ticket in line:
        if ticket.run == run:
            return ticket
    name = show(store.short_id(run))
    unlisted = _read(root, run)
    if unlisted and unlisted.has_begun:
        raise UsageError(
            f"{name} has started and is no longer in the queue; stop it: {hint(root, 'stop', name)}"
        )
    raise UsageError(f"{name} is not in the queue; list the queued runs: {hint(root, 'queue')}")


def find(reference: str, root: Path) -> Path:
    """Return the folder of a queued run; UsageError if the run is not queued."""
    run_dir = store.find_surely(reference, [root])
    _find_ticket(root, run_dir.name, waiting(root))
    return run_dir


# ---- pausing


def pause(root: Path) -> None:
    """Let no run begin until `resume`. Runs that have begun continue."""
    _make_folder(root)
    with _cannot_record(root):
        replace(root / FOLDER / _PAUSED, str(time.time_ns()).encode())


def resume(root: Path) -> None:
    with contextlib.suppress(FileNotFoundError), _cannot_record(root):
        os.unlink(root / FOLDER / _PAUSED)


def is_paused(root: Path) -> bool:
    return os.path.lexists(root / FOLDER / _PAUSED)  # False as well if the folder may not be read


# ---- files


def _path(root: Path, run: str) -> Path:
    return root / FOLDER / f"{run}.json"


def _delete(root: Path, run: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(_path(root, run))


def _read(root: Path, run: str) -> Ticket | None:
    """Return the ticket of a run; None if it has none, or if no run has to wait for it.

    A ticket that cannot be read is replaced by one from the record of the run.
    """

    def decode(data: bytes) -> Ticket:
        ticket = user_data.struct_of(Ticket)(data)
        if ticket.run != run:
            raise ValueError("it is the ticket of another run")
        return ticket

    path = _path(root, run)
    ticket = user_data.read(path, decode, _LIMIT)
    if ticket is None and os.path.lexists(path):
        return _make_substitute(root, run)
    return ticket


def _make_substitute(root: Path, run: str) -> Ticket | None:
    """Return a ticket for a run whose own cannot be read; None if the run is over.

    It has the last place, or has begun, and the run may use any device.
    """
    ticket = Ticket(
        run=run,
        name="n/a",
        devices=[_ANY],
        supervisor=_NO_PROCESS,
        place=_LAST,
        since_ns=0,
        has_begun=True,
    )
    try:
        summary, state = read_entry.read_summary(root / run)
    except (OSError, TuilabError):  # the record of the run cannot be read either
        ticket.supervisor = _find_process(run)
        return ticket if ticket.supervisor != _NO_PROCESS else None
    if summary.run is None or state not in RUNNING_STATES:
        return None
    ticket.supervisor = summary.run.supervisor
    ticket.since_ns = summary.run.wall_ns
    ticket.name = f"{summary.run.topic}/{summary.run.scenario}"
    ticket.has_begun = state != RunState.QUEUED
    return ticket


def _find_process(run: str) -> Identity:
    """Return one of the processes that a run has now; _NO_PROCESS if it has none."""
    with contextlib.suppress(OSError):
        for pid, _ in presence.marked(run):
            if identity := presence.identify(pid):
                return identity
    return _NO_PROCESS


def _write(root: Path, run: str, changes: dict[str, Any]) -> None:
    """Change fields of a ticket and keep the others; CannotRecord if the disk refuses."""
    with _cannot_record(root):
        user_data.update(_path(root, run), changes, _LIMIT)


def _make_folder(root: Path) -> None:
    with _cannot_record(root):
        (root / FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)


@contextlib.contextmanager
def _cannot_record(root: Path) -> Iterator[None]:
    """Raise CannotRecord for an OSError in a `with` block, except for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise CannotRecord(
            f"cannot write to {show(root / FOLDER)}: {problem.strerror}"
        ) from problem


@contextlib.contextmanager
def _lock(root: Path, patience_s: float = _PATIENCE_S) -> Iterator[bool]:
    """Hold the lock of the queue in a `with` block, if it is free before the patience ends.

    Yields whether this process has the lock. A disk without locks counts as locked by us.
    """
    _make_folder(root)
    with locked(root / FOLDER, patience_s) as has_lock:
        yield has_lock
