"""An app whose keys act in the order in which they were typed, and that leaves in order when a signal asks for it.

It uses no private part of Textual: any Textual can draw its screens.
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
from tuilab.tui.terminal.pager import show_in_pager
from tuilab.tui.terminal.typeahead import TypeAhead, passed

_OPENING_S = 5.0  # that a question may take to come
_SOON_S = 0.003  # between two looks whether what was typed has acted
_ASKING = ("question", "deletable")  # workers that open a question
_LEAVE = ("escape", "q")  # keys that are meant for no list


class TypedApp(App[ReturnType]):
    """The part of the app that does not draw."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.no_color = self.no_color or not has_colour()  # Textual asks NO_COLOR alone
        self.on_terminal_taken: Callable[[bool], None] = lambda is_taken: None  # and given back
        self._never_came: WeakSet[Worker[Any] | Screen[Any]] = (
            WeakSet()
        )  # questions and lists that were waited for in vain
        self._typed = TypeAhead(super().on_event, self._settle, self.call_later)

    @property
    def has_terminal(self) -> bool:
        """Whether the screens are shown in a terminal: a headless app has none."""
        raise NotImplementedError

    async def run_async(self, **kwargs: Any) -> ReturnType | None:
        """Run until the user leaves; signals are heeded before there is anything to be given back."""
        _leave_on_signals(self.heed_signal)
        try:
            return await super().run_async(**kwargs)
        finally:
            for number in (
                signal.SIGTSTP,
                signal.SIGCONT,
            ):  # which the driver heeds, and nobody is left to
                signal.signal(number, signal.SIG_DFL)

    def heed_signal(self, number: int) -> None:
        """Leave in order."""
        self.exit()

    def show_in_pager(self, text: str) -> str:
        """Have the user read a text in a pager, which has the terminal meanwhile; return a sentence where that failed."""
        if not self.has_terminal:
            return "there is no terminal to show a pager in"
        with self.suspend():
            return show_in_pager(text)

    async def on_event(self, event: Event) -> None:
        """Have keys act one after another; the one that leaves waits for none."""
        if (
            isinstance(event, Key | Paste)
            and not event.is_forwarded
            and getattr(event, "key", "") != "ctrl+q"
        ):
            await self._typed.take(event)
        else:
            await super().on_event(event)

    async def press_now(self, key: str) -> None:
        """Do what another key does where the user is, before what was typed since."""
        await self._typed.take(Key(key, None), is_next=True)

    @property
    def is_hearing(self) -> bool:
        """Whether something that was typed has not acted yet."""
        return self._typed.is_busy

    async def settle(self) -> None:
        """Wait until all that was typed has acted."""
        await passed(self)
        while self._typed.is_busy and self.is_running:
            await asyncio.sleep(_SOON_S)

    async def _settle(self) -> None:
        """Wait until a key has gone through what has the focus, all around it and the app, and what it opens is open.

        A question that was to be asked and never comes, as its screen has gone meanwhile, is waited for once; so is a list
        that takes long to read.
        """
        deadline = time.monotonic() + _OPENING_S
        while self.screen_stack and self.is_running:
            screen = self.screen
            for pump in (self, *(self.focused or screen).ancestors_with_self, self):
                await passed(pump)
            if screen in self.screen_stack[-1:] and (
                not self._is_opening or time.monotonic() > deadline
            ):
                self._never_came.update(
                    self._asking if self._is_listed else {screen, *self._asking}
                )
                return
            await asyncio.sleep(_SOON_S)

    @property
    def _is_opening(self) -> bool:
        """Whether a screen, what its keys act on, or a question that somebody is about to ask, is not there yet."""
        return (
            not self.screen.is_mounted
            or not self._is_listed
            or (bool(self._asking) and not self.screen.is_modal)
        )

    @property
    def _is_listed(self) -> bool:
        """Whether what the next key acts on is on the screen, or need not be."""
        is_listed = getattr(self.screen, "is_listed", True)
        return is_listed or self.screen in self._never_came or self._typed.next_key in _LEAVE

    @property
    def _asking(self) -> "set[Worker[Any]]":
        """What is about to ask a question."""
        asking = {
            worker for worker in self.workers if worker.group in _ASKING and not worker.is_finished
        }
        return asking.difference(self._never_came)

    def on_unmount(self) -> None:
        self._typed.stop()


def _leave_on_signals(leave: Callable[[int], None]) -> None:
    """Have the signals that would end the process leave the screens in order, so that the terminal is given back."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
