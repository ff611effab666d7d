"""Make keys act in the order in which they were typed, each after the key before it.

A key is meant for the widget that has the focus at that time. A busy screen opens an input line
late. Without this order, the letters that were typed for the line would run as commands.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual.events import Event
from textual.message_pump import MessagePump

_LOOK_S = 0.05  # between two checks whether the awaited message pump is gone


class TypeAhead:
    """A queue of keys.

    `heed` makes a key act. `settle` waits until the key has acted. `then` calls a function in the
    message pump in which keys act.
    """

    def __init__(
        self,
        heed: Callable[[Event], Awaitable[None]],
        settle: Callable[[], Awaitable[None]],
        then: Callable[[Callable[[], Awaitable[None]]], object],
    ) -> None:
        self._heed = heed
        self._settle = settle
        self._then = then
        self._waiting: deque[Event] = deque()
        self._settling: asyncio.Task[None] | None = None
        self.is_busy = False

    async def take(self, event: Event, *, is_next: bool = False) -> None:
        """Make a key act after the keys before it have acted.

        With `is_next` the key goes before all waiting keys. Use it if the key that acts now stands
        for this key.
        """
        if is_next:
            self._waiting.appendleft(event)
        else:
            self._waiting.append(event)
        if not self.is_busy:
            await self._take_next()

    @property
    def next_key(self) -> str:
        """The key that acts next; empty if no key waits."""
        if not self._waiting:
            return ""
        return getattr(self._waiting[0], "key", "")

    def stop(self) -> None:
        """Stop waiting for a key to act."""
        if self._settling:
            self._settling.cancel()

    async def _take_next(self) -> None:
        """Make the next key act, and call this function again once it has acted.

        If no key waits, the queue is not busy any more.
        """
        self.is_busy = bool(self._waiting)
        if not self._waiting:
            return
        try:
            await self._heed(self._waiting.popleft())
        finally:  # another part reports a key that raises; the keys behind it still act
            self._settling = asyncio.create_task(self._await_effect())

    async def _await_effect(self) -> None:
        """Wait until the key has acted, then let the next one act, even if the wait has failed."""
        try:
            await self._settle()
        finally:
            self._then(self._take_next)


async def wait_until_handled(pump: MessagePump) -> None:
    """Wait until a message pump has handled all messages sent to it before, or is gone."""
    has_come = asyncio.Event()
    if not pump.call_later(has_come.set):
        return
    while not has_come.is_set() and pump.is_running:
        with suppress(TimeoutError):
            await asyncio.wait_for(has_come.wait(), _LOOK_S)
