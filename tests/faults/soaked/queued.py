"""Faults in the queue: runs that wait are paused, moved, cancelled and killed."""

import signal
from collections.abc import Callable
from pathlib import Path

from tests.engine import look, until
from tests.faults.oracle import view
from tests.faults.soaked.place import HOLDS, ExpectedRun, Place
from tuilab.engine import processes
from tuilab.record.presence import presence
from tuilab.runs import queue

# A scenario that times something waits for its device.
TIMED = 'if False: lab.claim_ratio("r", "a/b", at_least=1)'
Allowed = dict[Path, set[str]]  # the states that a run may end in


def change_queue(place: Place) -> list[ExpectedRun]:
    """Pause, move, cancel and kill in any order. All runs that stay in the queue come to their end."""
    paths = []
    for number in range(place.chance.randint(2, 3)):
        paths.append(place.scenario(HOLDS, end=TIMED, name=f"in_turn_{number}"))
    runs = place.begin_all(*paths, words=("--quick",))
    place.wait_at_gate(runs[0])
    until(lambda: all(look(run).state == "queued" for run in runs[1:]))
    allowed: Allowed = {run: {"succeeded"} for run in runs}
    for _ in range(place.chance.randint(1, 4)):
        change = place.chance.choice([pause, move, cancel, kill])
        change(place, allowed)
    _, text = view("queue", "again")
    view("queue", "resume")
    place.open_gate()
    for ticket in queue.tickets(place.site.root):
        allowed.setdefault(place.site.root / ticket.run, {"succeeded"})
    until(lambda: all(look(run).state not in ("queued", "starting", "running") for run in allowed))
    until(lambda: not place.site.living())
    assert [ticket.run for ticket in queue.tickets(place.site.root)] == [], text
    return [ExpectedRun(run, tuple(states)) for run, states in allowed.items()]


def pause(place: Place, allowed: Allowed) -> None:
    view("queue", "pause")


def move(place: Place, allowed: Allowed) -> None:
    waiting = queue.waiting(place.site.root)
    if not waiting:
        return
    run = place.chance.choice(waiting).run
    position = place.chance.randint(1, len(waiting))
    code, text = view("queue", "move", run, str(position))
    assert code == 0, text


def cancel(place: Place, allowed: Allowed) -> None:
    waiting = queue.waiting(place.site.root)
    if not waiting:
        return
    run = place.chance.choice(waiting).run
    code, text = view("queue", "cancel", run)
    assert code == 0, text
    allowed[place.site.root / run] = {"stopped"}
    until(lambda: run not in [ticket.run for ticket in queue.waiting(place.site.root)])


def kill(place: Place, allowed: Allowed) -> None:
    """Kill the supervisor of a waiting run. The run is lost, and can be queued again."""
    waiting = queue.waiting(place.site.root)
    if not waiting:
        return
    victim = place.chance.choice(waiting)
    processes.send(victim.supervisor.pid, victim.supervisor.start, signal.SIGKILL)
    until(lambda: presence(victim.supervisor) == "dead")
    allowed[place.site.root / victim.run] = {"lost"}


FAULTS: tuple[Callable[[Place], list[ExpectedRun]], ...] = (change_queue,)
