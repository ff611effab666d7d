"""Waiting until a screen has nothing left to do, without sleeping.

Textual's pilot sleeps 20 ms at a time until the process uses little of a core: half of a screen test is that, and on a busy
box it is a guess. Here the same 20 ms of the event loop are lived through as fast as it gets idle.
"""

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.pilot import Pilot

AHEAD_S = 0.02  # timers that are due so soon are waited for
PATIENCE_S = 10.0  # on a busy box a page takes seconds
ROUNDS = 3  # what is ready, then what became ready of that, then what the selector found


async def until_idle(min_sleep: float = AHEAD_S, max_sleep: float = PATIENCE_S) -> None:
    """Return as soon as the loop has nothing to do and no timer that is due soon."""
    loop: Any = asyncio.get_running_loop()  # it tells nobody what is ready
    began = loop.time()
    quiet = 0
    while quiet < ROUNDS and loop.time() < began + max_sleep:
        await asyncio.sleep(0)
        quiet = 0 if loop._ready else quiet + 1
        if quiet == ROUNDS and (due := next_timer(loop)) < began + AHEAD_S:
            await asyncio.sleep(max(0.0, due - loop.time()))
            quiet = 0


def next_timer(loop: Any) -> float:
    return min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=float("inf"))


async def leave_it_to_idle(pilot: "Pilot[Any]", timeout: float = PATIENCE_S) -> bool:
    """Stands for a pilot's message to each widget, a fourth of all messages: what is idle has heard all it was sent."""
    return pilot.app.is_running
