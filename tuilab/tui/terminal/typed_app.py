"""Make the keys of an app act in the order of typing, and let signals close the app cleanly.

This module uses no private part of Textual, so any Textual can draw the screens of the app.
"""

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from textual.app import App, ReturnType
from textual.events import Event, Key, Paste
from textual.screen import Screen
from textual.worker import Worker

from tuilab.text.display import has_colour
from tuilab.tui.terminal.foreground import Foreground
from tuilab.tui.terminal.pager import show_in_pager
from tuilab.tui.terminal.typeahead import TypeAhead, wait_until_handled

_OPENING_S = 5.0  # the longest wait for a question to open
_SOON_S = 0.003  # between two checks whether a key has acted
_ASKING_GROUPS = ("question", "deletable")  # of workers that open a question
_LEAVE_KEYS = ("escape", "q")  # these do not act on a list


class TypedApp(App[ReturnType]):
    """The part of the app that does not draw."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.no_color = self.no_color or not has_colour()  # Textual checks only NO_COLOR
        self.on_terminal_taken: Callable[[bool], None] = lambda is_taken: None  # False: given back
        self.foreground = Foreground()
        # Workers and screens whose question or list did not come in time.
        self._never_came: WeakSet[Worker[Any] | Screen[Any]] = WeakSet()
        self._typed = TypeAhead(super().on_event, self._settle, self.call_later)

    @property
    def has_terminal(self) -> bool:
        """Whether a terminal shows the screens; a headless app has none."""
        raise NotImplementedError

    async def run_async(self, **kwargs: Any) -> ReturnType | None:
        """Run until the user leaves; handle signals before the app takes the terminal."""
        _leave_on_signals(self.heed_signal, self.foreground)
        try:
            return await super().run_async(**kwargs)
        finally:
            # The driver handled these signals, and is gone now.
            for number in (signal.SIGTSTP, signal.SIGCONT):
                signal.signal(number, signal.SIG_DFL)

    def heed_signal(self, number: int) -> None:
        """Leave cleanly."""
        self.exit()

    def show_in_pager(self, text: str) -> str:
        """Show a text in a pager, which uses the terminal until it ends.

        Return a sentence about what failed; empty if nothing did.
        """
        if not self.has_terminal:
            return "there is no terminal to show a pager in"
        with self.suspend():
            return show_in_pager(text, self.foreground)

    async def on_event(self, event: Event) -> None:
        """Make keys act one after another; ^q, which leaves, does not wait for other keys."""
        is_typed = isinstance(event, Key | Paste) and not event.is_forwarded
        is_quit_key = isinstance(event, Key) and event.key == "ctrl+q"
        if is_typed and not is_quit_key:
            await self._typed.take(event)
        else:
            await super().on_event(event)

    async def press_now(self, key: str) -> None:
        """Make another key act for the widget in focus, before the keys that were typed since."""
        await self._typed.take(Key(key, None), is_next=True)

    @property
    def has_pending_keys(self) -> bool:
        """Whether a typed key has not acted yet."""
        return self._typed.is_busy

    async def settle(self) -> None:
        """Wait until all typed keys have acted."""
        await wait_until_handled(self)
        while self._typed.is_busy and self.is_running:
            await asyncio.sleep(_SOON_S)

    async def _settle(self) -> None:
        """Wait until a key has acted, and the screen or question that it opens is open.

        A key has acted when it has gone through the widget in focus, its ancestors, and the app. A
        question may never open, because its screen was closed meanwhile. A list may take long to
        read. Keys wait for the same question or list only once.
        """
        deadline = time.monotonic() + _OPENING_S
        while self.screen_stack and self.is_running:
            screen = self.screen
            target = self.focused or screen
            for pump in (self, *target.ancestors_with_self, self):
                await wait_until_handled(pump)
            is_on_top = screen in self.screen_stack[-1:]
            if is_on_top and (not self._is_opening or time.monotonic() > deadline):
                if not self._is_listed:
                    self._never_came.add(screen)
                self._never_came.update(self._asking)
                return
            await asyncio.sleep(_SOON_S)

    @property
    def _is_opening(self) -> bool:
        """Whether something that the next key acts on is not open yet.

        This is the screen, its list, or a question that a worker is about to ask.
        """
        if not self.screen.is_mounted or not self._is_listed:
            return True
        return bool(self._asking) and not self.screen.is_modal

    @property
    def _is_listed(self) -> bool:
        """Whether the list that the next key acts on has been read, or is not needed."""
        if getattr(self.screen, "is_listed", True):
            return True
        return self.screen in self._never_came or self._typed.next_key in _LEAVE_KEYS

    @property
    def _asking(self) -> "set[Worker[Any]]":
        """The workers that are about to ask a question."""
        asking: set[Worker[Any]] = set()
        for worker in self.workers:
            if worker.group in _ASKING_GROUPS and not worker.is_finished:
                asking.add(worker)
        return asking.difference(self._never_came)

    def on_unmount(self) -> None:
        self._typed.stop()


def _leave_on_signals(leave: Callable[[int], None], foreground: Foreground) -> None:
    """Make the signals that would end the process close the screens cleanly.

    So the terminal is given back.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
        # While a program has the terminal, the loop does not run, and calls `leave` afterwards.
        signal.signal(number, foreground.heed_signal)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
