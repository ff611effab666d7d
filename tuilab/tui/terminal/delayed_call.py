"""Does something after a delay, however late the loop is.

Textual loses a timer that fires once where its task starts later than it should have fired: on a busy box one of a few
milliseconds is often lost, and what it was to go on with stands still.
"""

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


def later(pump: MessagePump, delay_s: float, act: Callable[[], object]) -> None:
    """Have somebody act after a delay; nothing happens where he is gone by then."""
    asyncio.get_running_loop().call_later(delay_s, pump.call_later, act)
