"""Faults: runs that wait for each other, whose order is changed, and that are killed or taken out while they wait."""

import signal
from collections.abc import Callable
from pathlib import Path

from tests.engine import look, until
from tests.faults.oracle import view
from tests.faults.soaked.place import HOLDS, ExpectedRun, Place
from tuilab.engine import processes
from tuilab.record.presence import presence
from tuilab.runs import queue

TIMED = (
    'if False: lab.claim_ratio("r", "a/b", at_least=1)'  # what times something waits for its device
)
Allowed = dict[Path, set[str]]  # the states that a run may end in


def change_queue(place: Place) -> list[ExpectedRun]:
    """Pause, move, cancel, kill and queue again, in any order; all that was not taken out comes to its end."""
    paths = [
        place.scenario(HOLDS, end=TIMED, name=f"in_turn_{number}")
        for number in range(place.chance.randint(2, 3))
    ]
    runs = place.begin_all(*paths, words=("--quick",))
    place.wait_at_gate(runs[0])
    until(lambda: all(look(run).state == "queued" for run in runs[1:]))
    allowed: Allowed = {run: {"succeeded"} for run in runs}
    for _ in range(place.chance.randint(1, 4)):
        place.chance.choice([pause, move, cancel, kill])(place, allowed)
    _, text = view("queue", "again")
    view("queue", "resume")
    place.open_gate()
    for run in queue.tickets(place.site.root):
        allowed.setdefault(place.site.root / run.run, {"succeeded"})
    until(lambda: all(look(run).state not in ("queued", "starting", "running") for run in allowed))
    until(lambda: not place.site.living())
    assert [ticket.run for ticket in queue.tickets(place.site.root)] == [], text
    return [ExpectedRun(run, tuple(states)) for run, states in allowed.items()]


def pause(place: Place, allowed: Allowed) -> None:
    view("queue", "pause")


def move(place: Place, allowed: Allowed) -> None:
    if waiting := queue.waiting(place.site.root):
        code, text = view(
            "queue",
            "move",
            place.chance.choice(waiting).run,
            str(place.chance.randint(1, len(waiting))),
        )
        assert code == 0, text


def cancel(place: Place, allowed: Allowed) -> None:
    if waiting := queue.waiting(place.site.root):
        run = place.chance.choice(waiting).run
        code, text = view("queue", "cancel", run)
        assert code == 0, text
        allowed[place.site.root / run] = {"stopped"}
        until(lambda: run not in [one.run for one in queue.waiting(place.site.root)])


def kill(place: Place, allowed: Allowed) -> None:
    """It is lost, and can be queued again."""
    if waiting := queue.waiting(place.site.root):
        victim = place.chance.choice(waiting)
        processes.send(victim.supervisor.pid, victim.supervisor.start, signal.SIGKILL)
        until(lambda: presence(victim.supervisor) == "dead")
        allowed[place.site.root / victim.run] = {"lost"}


FAULTS: tuple[Callable[[Place], list[ExpectedRun]], ...] = (change_queue,)
