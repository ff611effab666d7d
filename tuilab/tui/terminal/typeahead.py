"""What was typed, in its order: each key acts when the one before has, and is meant for what has the focus then.

A screen that is busy opens a line late; without this, the letters typed for it would run as commands.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual.events import Event
from textual.message_pump import MessagePump

_LOOK_S = 0.05  # between two looks whether somebody who is waited for is gone


class TypeAhead:
    """`heed` has a key act, `settle` waits until it has, `then` calls a function where keys act."""

    def __init__(
        self,
        heed: Callable[[Event], Awaitable[None]],
        settle: Callable[[], Awaitable[None]],
        then: Callable[[Callable[[], Awaitable[None]]], object],
    ) -> None:
        self._heed, self._settle, self._then = heed, settle, then
        self._held: deque[Event] = deque()
        self._settling: asyncio.Task[None] | None = None
        self.is_busy = False

    async def take(self, event: Event, *, is_next: bool = False) -> None:
        """Have a key act when those before it have; `is_next` before those that wait: the one that acts now stands for it."""
        (self._held.appendleft if is_next else self._held.append)(event)
        if not self.is_busy:
            await self._go_on()

    @property
    def next_key(self) -> str:
        """The key that acts next, if one waits."""
        return getattr(self._held[0], "key", "") if self._held else ""

    def stop(self) -> None:
        """Wait for nothing more."""
        if self._settling:
            self._settling.cancel()

    async def _go_on(self) -> None:
        self.is_busy = bool(self._held)
        if self._held:
            try:
                await self._heed(self._held.popleft())
            finally:  # a key that raises is told elsewhere; those behind it act all the same
                self._settling = asyncio.create_task(self._await_effect())

    async def _await_effect(self) -> None:
        try:
            await self._settle()
        finally:
            self._then(self._go_on)


async def passed(pump: MessagePump) -> None:
    """Wait until somebody has handled what was said to him before now, or is gone."""
    has_come = asyncio.Event()
    if not pump.call_later(has_come.set):
        return
    while not has_come.is_set() and pump.is_running:
        with suppress(TimeoutError):
            await asyncio.wait_for(has_come.wait(), _LOOK_S)
