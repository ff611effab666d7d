"""Wait until a screen has nothing left to do, without sleeping.

Textual's pilot sleeps 20 ms at a time until the process uses little of a core. That took half the
time of a screen test, and on a busy machine it is a guess. Here the event loop passes through the
same 20 ms as fast as it gets idle. Only time in which the loop has nothing to do counts: on a busy
machine the work between two timers takes longer than the timers.
"""

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.pilot import Pilot

AHEAD_S = 0.02  # timers that are due this soon are awaited
PATIENCE_S = 60.0  # on a busy machine a page takes seconds
LEAST_S = 0.001  # each timer counts at least this much, so that timers without delay come to an end
ROUNDS = 3  # one for the ready callbacks, one for callbacks of these, one for the selector


async def until_idle(min_sleep: float = AHEAD_S, max_sleep: float = PATIENCE_S) -> None:
    """Return once the loop has nothing to do, and no timer is due within the rest of the idle time."""
    loop: Any = asyncio.get_running_loop()  # it has no public way to ask what is ready
    deadline = loop.time() + max(max_sleep, PATIENCE_S)
    idle_s = 0.0
    quiet_rounds = 0
    while quiet_rounds < ROUNDS and loop.time() < deadline:
        await asyncio.sleep(0)
        quiet_rounds += 1
        if loop._ready:
            quiet_rounds = 0
        if quiet_rounds < ROUNDS:
            continue
        due_in_s = max(0.0, next_timer(loop) - loop.time())
        if idle_s + due_in_s < AHEAD_S:
            idle_s += max(due_in_s, LEAST_S)
            await asyncio.sleep(due_in_s)
            quiet_rounds = 0


def next_timer(loop: Any) -> float:
    """Return when the next timer of the loop is due; infinity if there is none."""
    due = [timer.when() for timer in loop._scheduled if not timer.cancelled()]
    return min(due, default=float("inf"))


async def skip_wait(pilot: "Pilot[Any]", timeout: float = PATIENCE_S) -> bool:
    """Replace a pilot's message to each widget, a fourth of all messages: `until_idle` suffices."""
    return pilot.app.is_running
