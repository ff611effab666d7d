"""Call a function after a delay, even if the event loop is late.

Textual loses a one-shot timer if its delay is over before the task of the timer starts to wait.
On a busy machine this often happens to timers of a few milliseconds. Whatever the timer should
have continued then never continues.
"""

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


def later(pump: MessagePump, delay_s: float, act: Callable[[], object]) -> None:
    """Make a message pump call `act` after a delay, unless the pump has closed by then."""
    asyncio.get_running_loop().call_later(delay_s, pump.call_later, act)
