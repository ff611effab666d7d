"""The queue of a folder of runs: a ticket for each run that times something, which tells its devices and its place.

A ticket is a small file in `.queue`. The supervisor of its run writes it when the run is made, and takes it away at the end; of
one that was killed it stays behind, and counts no more. Nobody listens, and nothing outlives the last run. Whoever begins, or
changes the order, has the lock of the folder for that moment. A ticket that cannot be read is told, and its run is waited for
while it goes on, whatever device that has.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
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
_PATIENCE_S = 5.0  # for the lock, which others have for a moment
_ANY = "n/a"  # the device of a run whose ticket cannot be read
_LAST = 1e12  # the place of one that waits
_NOBODY = Identity("", "", 0, 0)


class Standing(NamedTuple):
    """The queue as it is at a moment."""

    running: Sequence["Ticket"] = ()
    waiting: Sequence["Ticket"] = ()
    lost: Sequence["Ticket"] = ()
    is_paused: bool = False

    @property
    def rows(self) -> list[tuple[RunState, int | None, "Ticket"]]:
        """The runs, each with its state and, of one that waits, its place."""
        rows: list[tuple[RunState, int | None, Ticket]] = [
            (RunState.RUNNING, None, one) for one in self.running
        ]
        rows += [(RunState.QUEUED, place, one) for place, one in enumerate(self.waiting, 1)]
        return rows + [(RunState.LOST, None, one) for one in self.lost]


class Ticket(msgspec.Struct, kw_only=True):
    """A run's place in the queue."""

    run: str
    name: str  # topic/scenario
    devices: list[str]
    supervisor: Identity
    place: Annotated[float, msgspec.Meta(ge=0, le=2 * _LAST)]  # the lower one goes first
    since_ns: Count
    has_begun: bool = False
    order: dict[str, Any] | None = None  # to queue it again; None where a secret is in it

    @property
    def is_waiting(self) -> bool:
        return not self.has_begun


def enter(root: Path, ticket: Ticket) -> None:
    """Put a run behind all others; what runs that were killed left behind is taken away."""
    with _lock(root):
        others = tickets(root)
        for other in others:
            if other.has_begun and presence.presence(other.supervisor) == "dead":
                _take_away(root, other.run)
        ticket.place = max((other.place for other in others), default=0.0) + 1.0
        _write(root, ticket.run, msgspec.to_builtins(ticket))


def begin(root: Path, run: str) -> bool:
    """Let a run begin if it is its turn: no run that shares a device with it has begun or is before it, and none pauses all."""
    with _lock(root, patience_s=0.0) as is_ours:
        own = _read(root, run)
        if own is None:
            return True  # its ticket was taken away: nobody can wait for it either
        if not is_ours or is_paused(root) or ahead(own, tickets(root)):
            return False
        _write(root, run, {"has_begun": True})
        return True


def leave(root: Path, run: str) -> None:
    """Take the ticket of a run away, if there is one."""
    if os.path.lexists(_path(root, run)):  # most runs time nothing, and have none
        with (
            contextlib.suppress(OSError, CannotRecord),
            _lock(root),
        ):  # else it could be moved, and so be there again
            _take_away(root, run)


def tickets(root: Path) -> list[Ticket]:
    """Return all tickets: those of runs that have begun, then the others as they wait.

    A newer tuilab may have written some: what it adds is passed over, and kept when a ticket changes.
    """
    try:
        names = sorted(name for name in os.listdir(root / FOLDER) if name.endswith(".json"))
    except OSError:
        return []
    found = [ticket for name in names if (ticket := _read(root, name.removesuffix(".json")))]
    return sorted(found, key=lambda one: (one.is_waiting, one.place, one.run))


def read_queue(root: Path) -> Standing:
    """Return the queue as it is now: what has begun and times something, what waits, and what was lost while it waited.

    Lost is what waited when its supervisor was killed, or the box was started anew.
    """
    every = tickets(root)
    living = [one for one in every if _lives(one)]
    dead = [one for one in every if one.is_waiting and presence.presence(one.supervisor) == "dead"]
    begun, waits = (
        [one for one in living if one.is_waiting == is_waiting] for is_waiting in (False, True)
    )
    return Standing(begun, waits, dead, is_paused(root))


def waiting(root: Path) -> Sequence[Ticket]:
    """Return the runs that wait, the next one first."""
    return read_queue(root).waiting


def lost(root: Path) -> Sequence[Ticket]:
    return read_queue(root).lost


def running(root: Path) -> Sequence[Ticket]:
    return read_queue(root).running


def own_order(root: Path, run: str) -> dict[str, Any] | None:
    """Return the order of a run that this user queued: what another user may have written names code that would be run."""
    try:
        ticket = user_data.struct_of(Ticket)(read_regular(_path(root, run), _LIMIT, is_ours=True))
    except (OSError, ValueError, RecursionError, Unusable) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(
            f"{show(store.short_id(run))} cannot be queued again: its ticket cannot be trusted ({why})"
        ) from problem
    return ticket.order


def ahead(ticket: Ticket, every: Sequence[Ticket]) -> list[Ticket]:
    """Return the runs that one has to wait for."""
    before = [
        one for one in every if one.has_begun or (one.place, one.run) < (ticket.place, ticket.run)
    ]
    return [
        one
        for one in before
        if one.run != ticket.run and share(one.devices, ticket.devices) and _lives(one)
    ]


def share(some: Sequence[str], others: Sequence[str]) -> bool:
    """Say whether two runs use a device both; `cuda` is any GPU, and so may be each. What is not known may be any."""
    if _ANY in (*some, *others):
        return True
    return any(
        one == other or ("cuda" in (one, other) and one[:4] == other[:4])
        for one in some
        for other in others
    )


def move(root: Path, run: str, place: int) -> None:
    """Give a run that waits another place among those that wait, 1 for the next."""
    with _lock(root) as is_ours:
        if not is_ours:
            raise UsageError("another process is changing the queue; try again")
        line = [one for one in waiting(root) if _ANY not in one.devices]
        own = _waiting_one(root, run, line)
        if not 1 <= place <= len(line):
            raise UsageError(f"no place {place} in the queue; use 1 to {len(line)}")
        line.remove(own)
        line.insert(place - 1, own)
        for one, taken in zip(line, sorted(one.place for one in line), strict=True):
            _write(root, one.run, {"place": taken})


def _waiting_one(root: Path, run: str, line: Sequence[Ticket]) -> Ticket:
    for one in line:
        if one.run == run:
            return one
    id = show(store.short_id(run))
    ticket = _read(root, run)
    if ticket and ticket.has_begun:
        raise UsageError(
            f"{id} has started and is no longer in the queue; stop it: {hint(root, 'stop', id)}"
        )
    raise UsageError(f"{id} is not in the queue; list the queued runs: {hint(root, 'queue')}")


def find(reference: str, root: Path) -> Path:
    """Return the folder of a run that waits; UsageError for one that does not."""
    run_dir = store.find_surely(reference, [root])
    _waiting_one(root, run_dir.name, waiting(root))
    return run_dir


# ---- to pause it


def pause(root: Path) -> None:
    """Let no run begin until `resume`."""
    _make(root)
    _tell_problem(root, lambda: replace(root / FOLDER / _PAUSED, str(time.time_ns()).encode()))


def resume(root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        _tell_problem(root, lambda: os.unlink(root / FOLDER / _PAUSED))


def is_paused(root: Path) -> bool:
    return os.path.lexists(root / FOLDER / _PAUSED)  # False, too, where one may not look


# ---- files


def _lives(ticket: Ticket) -> bool:
    """Say whether a run is there to wait for: one of another box has other devices."""
    return presence.presence(ticket.supervisor) in ("alive", "unknown")


def _path(root: Path, run: str) -> Path:
    return root / FOLDER / f"{run}.json"


def _take_away(root: Path, run: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(_path(root, run))


def _read(root: Path, run: str) -> Ticket | None:
    """Return the ticket of a run; of one that cannot be read what is known without it, and None where nothing waits for it."""

    def decode(data: bytes) -> Ticket:
        ticket = user_data.struct_of(Ticket)(data)
        if ticket.run != run:
            raise ValueError("it is the ticket of another run")
        return ticket

    path = _path(root, run)
    ticket = user_data.read(path, decode, _LIMIT)
    return _without_ticket(root, run) if ticket is None and os.path.lexists(path) else ticket


def _without_ticket(root: Path, run: str) -> Ticket | None:
    """Return what is known of a run that goes on: it waits behind all others, or has begun, and may have any device."""
    ticket = Ticket(
        run=run,
        name="n/a",
        devices=[_ANY],
        supervisor=_NOBODY,
        place=_LAST,
        since_ns=0,
        has_begun=True,
    )
    try:
        summary, state = read_entry.read_summary(root / run)
    except (OSError, TuilabError):  # its record cannot be read either
        ticket.supervisor = next(_processes(run), _NOBODY)
        return ticket if ticket.supervisor != _NOBODY else None
    if summary.run is None or state not in RUNNING_STATES:
        return None
    ticket.supervisor, ticket.since_ns = summary.run.supervisor, summary.run.wall_ns
    ticket.name, ticket.has_begun = (
        f"{summary.run.topic}/{summary.run.scenario}",
        state != RunState.QUEUED,
    )
    return ticket


def _processes(run: str) -> Iterator[Identity]:
    """Yield the processes that a run has now."""
    with contextlib.suppress(OSError):
        yield from filter(None, (presence.identify(pid) for pid, _ in presence.marked(run)))


def _write(root: Path, run: str, changes: dict[str, Any]) -> None:
    _tell_problem(root, lambda: user_data.update(_path(root, run), changes, _LIMIT))


def _make(root: Path) -> None:
    _tell_problem(root, lambda: (root / FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700))


def _tell_problem(root: Path, change: Callable[[], object]) -> None:
    try:
        change()
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise CannotRecord(
            f"cannot write to {show(root / FOLDER)}: {problem.strerror}"
        ) from problem


@contextlib.contextmanager
def _lock(root: Path, patience_s: float = _PATIENCE_S) -> Iterator[bool]:
    """Have the lock of the queue in a `with` block, if nobody has it for so long; a disk without locks is taken to be ours."""
    _make(root)
    with locked(root / FOLDER, patience_s) as is_ours:
        yield is_ours
