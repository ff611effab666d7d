"""Waiting until a screen has nothing left to do, without sleeping.

Textual's pilot sleeps 20 ms at a time until the process uses little of a core: half of a screen test is that, and on a busy
box it is a guess. Here the event loop lives through the same 20 ms, as fast as it gets idle. Only time in which the loop has
nothing to do counts: on a busy machine the work between two timers takes longer than the timers, and a timer that begins late
is waited for all the same.
"""

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.pilot import Pilot

AHEAD_S = 0.02  # timers that are due so soon are waited for
PATIENCE_S = 60.0  # on a busy machine a page takes seconds
LEAST_S = 0.001  # that a timer counts for, so that timers which are due at once do not keep the loop waiting for ever
ROUNDS = 3  # what is ready, then what became ready of that, then what the selector found


async def until_idle(min_sleep: float = AHEAD_S, max_sleep: float = PATIENCE_S) -> None:
    """Return as soon as the loop has nothing to do, and no timer that is due within the idle time that is left."""
    loop: Any = asyncio.get_running_loop()  # it has no public way to ask what is ready
    deadline = loop.time() + max(max_sleep, PATIENCE_S)
    idle_s = 0.0
    quiet = 0
    while quiet < ROUNDS and loop.time() < deadline:
        await asyncio.sleep(0)
        quiet = 0 if loop._ready else quiet + 1
        if quiet < ROUNDS:
            continue
        due_in_s = max(0.0, next_timer(loop) - loop.time())
        if idle_s + due_in_s < AHEAD_S:
            idle_s += max(due_in_s, LEAST_S)
            await asyncio.sleep(due_in_s)
            quiet = 0


def next_timer(loop: Any) -> float:
    return min(
        (timer.when() for timer in loop._scheduled if not timer.cancelled()), default=float("inf")
    )


async def leave_it_to_idle(pilot: "Pilot[Any]", timeout: float = PATIENCE_S) -> bool:
    """Stands for a pilot's message to each widget, a fourth of all messages: what is idle has heard all it was sent."""
    return pilot.app.is_running
