"""The terminal as Textual's driver, made to survive what happens over SSH.

Nothing here waits for the terminal: what it does not take at once is kept and sent when it can. Every frame ends with a
question that the terminal answers, so that we know when a frame has arrived at the far end of the link, not only in a buffer on
the way.
"""

import asyncio
import codecs
import os
import re
import selectors
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from textual.events import Key, Resize
from textual.geometry import Size

from tuilab.tui.terminal.guardian import open_again
from tuilab.tui.terminal.keyboard import Typed
from tuilab.tui.terminal.textual_parts import TextualDriver

_QUESTION = (  # are you well? the oldest question of all; some terminals print a part of those that they do not know
    b"\x1b[5n"
)
_ANSWER = re.compile(r"\x1b\[0n")
_LONGEST_ANSWER = 4
_PATIENCE_S = 5.0  # an answer that is not there by then is lost, or the link is frozen
_LONGEST_PATIENCE_S = 80.0  # on a frozen link, so that few frames are on their way when it thaws
_STALLED_S = 1.0
_LAST_ANSWER_S = 2.0  # after the question
_LAST_WORDS_S = 1.0  # for what is not sent when the screens close
_READ = 4096
_SILENCE_S = 0.1  # between two looks whether what was begun to be typed is whole
_HEARD_S, _HEARD_SLICES = (
    0.05,
    60,
)  # that a key has to act before the next one of its burst; on a busy box it takes long


class Terminal(TextualDriver):
    """Reads keys, writes frames; says when the next frame may be sent, and when nobody is there any more."""

    def __init__(self, app: Any, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self.app = app
        self.loop = asyncio.get_running_loop()
        self.on_ready: Callable[[], None] = lambda: None
        self.on_start: Callable[[], None] = lambda: (
            None
        )  # and again after a suspension: the terminal shows something else
        self.settle: Callable[[], Coroutine[Any, Any, None]] = _nothing
        self.bytes_sent = 0
        self.round_trip_s = 0.0  # of the last frame that was answered
        self.sizes_told = 0  # how often the system told that the terminal has another size
        self.is_given_back = (
            True  # whether the terminal was told everything that leaves it as it was
        )
        self._tell_taken: Callable[[bool], None] = app.on_terminal_taken
        self._out = open_again(1)
        self._lock = threading.RLock()  # the reading thread and signal handlers write, too
        self._waiting = b""
        self._is_writer_added = False
        self._answers_expected = 0
        self._answer_begun = ""
        self._has_answered = False
        self._patience_s = _PATIENCE_S
        self._asked = 0.0
        self._started = 0.0
        self._is_gone = False
        self._is_leaving = False
        self._is_stuck = False  # took nothing when we left
        self._is_cut = False  # what we sent last has no end: only the guardian can say something that is understood
        self._told, self._teller = (
            os.pipe()
        )  # the reading thread, that there will be nothing more to read
        app.terminal = self

    @property
    def is_ready(self) -> bool:
        """Whether the last frame has left us and, where the terminal answers, has arrived."""
        is_answered = self._answers_expected <= 0 or not self._has_answered
        return not self._waiting and (
            is_answered or time.monotonic() - self._asked > self._patience_s
        )

    @property
    def is_stalled(self) -> bool:
        """Whether the last frame has been on its way for long."""
        return not self.is_ready and time.monotonic() - self._asked > _STALLED_S

    def send_frame(self, frame: str) -> None:
        """Send a frame and ask whether it arrived; when the answer to the last one did not come, wait longer for this one."""
        if self._is_leaving:
            return
        with self._lock:
            if self._answers_expected > 0 and self._has_answered:
                self._answers_expected = 0
                self._patience_s = min(self._patience_s * 2, _LONGEST_PATIENCE_S)
            self._answers_expected = max(self._answers_expected, 0) + 1
            self._asked = time.monotonic()
            self.write(frame + _QUESTION.decode())

    def write(self, data: str) -> None:
        """Send as much as the terminal takes now, the rest when it can."""
        with self._lock:
            self._waiting += b"" if self._is_cut else data.encode(errors="replace")
            self._send()

    def start_application_mode(self) -> None:
        self._is_leaving = self._is_cut = False
        self._answers_expected = 1  # to the question that starting asks
        self._asked = self._started = time.monotonic()
        self._tell_taken(True)
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if (
            self.is_to_resume or not self.has_opened
        ):  # in the background: the terminal is the shell's
            self.is_to_resume = self._is_leaving = True
            self._tell_taken(False)
            return
        self.loop.add_signal_handler(signal.SIGWINCH, self._tell_size)
        self.loop.call_soon_threadsafe(self.on_start)

    def disable_input(self) -> None:
        """Ask nothing more, and let the answers that are on their way arrive: the shell would take them for something typed.

        Where no answer has ever come, the terminal may be one that gives none, or far away.
        """
        if not self._is_leaving:
            self._is_leaving = True
            self._take_question_back()
            self._is_stuck = not self._push(_LAST_WORDS_S)
        deadline = (self._asked if self._has_answered else self._started) + _LAST_ANSWER_S
        while (
            self._answers_expected > 0
            and not self._is_stuck
            and not self._is_gone
            and time.monotonic() < deadline
        ):
            time.sleep(0.005)  # the reading thread takes them
        self._answers_expected = 0
        os.write(self._teller, b".")
        super().disable_input()
        os.read(self._told, 1)

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        self.is_given_back = self._push(0 if self._is_stuck else _LAST_WORDS_S)
        if self.is_given_back:
            self._tell_taken(False)
        self._is_cut, self._waiting = bool(self._waiting), b""

    def _take_question_back(self) -> None:
        """Do not ask what has not been sent yet."""
        with self._lock:
            unasked = self._waiting.replace(_QUESTION, b"")
            if unasked != self._waiting:
                self._waiting = unasked
                self._answers_expected -= 1

    def _push(self, patience_s: float) -> bool:
        """Wait a moment for the terminal to take what was sent; return whether it did."""
        deadline = time.monotonic() + patience_s
        while self._waiting and not self._is_gone and time.monotonic() < deadline:
            with selectors.DefaultSelector() as selector:
                selector.register(self._out, selectors.EVENT_WRITE)
                selector.select(0.1)
            with self._lock:
                self._send()
        return not self._waiting

    def heed_stop(self) -> None:
        self.loop.call_soon_threadsafe(
            self._stop
        )  # not in the middle of whatever the signal interrupts

    def heed_continue(self) -> None:
        self.loop.call_soon_threadsafe(self._come_back)

    def _stop(self) -> None:
        """Give the terminal back and stop, unless we are about to leave, or have stopped."""
        if self.app.return_code is None and not self._is_leaving:
            super().heed_stop()

    def _come_back(self) -> None:
        """Open the screens again; after a stop that came without a warning the terminal has not been given back yet.

        Textual would take the modes of the open screens for those that the terminal is to be left with.
        """
        if self._is_gone or self.app.return_code is not None:
            return
        if not self.has_opened and not self.is_to_resume:
            return  # not open yet
        if not self.is_to_resume:
            self.suspend_application_mode()
        self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read what is typed until we leave or the terminal is gone; bytes that are no UTF-8 are dropped."""
        typed = Typed()
        decode = codecs.getincrementaldecoder("utf-8")(errors="ignore").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._told, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                text = ""
                if self.fileno in {
                    key.fd for key, _ in selector.select(_SILENCE_S if typed.is_begun else None)
                }:
                    data = self._read()
                    if not data:
                        self._lose()
                        return
                    text = self._take_answers(decode(data))
                messages = [*(typed.feed(text) if text else ()), *typed.tick()]
                for event in messages:
                    if self._is_leaving:
                        break  # and have nobody wait: there may be answers to come
                    self.process_message(event)
                    if isinstance(event, Key) and event is not messages[-1]:
                        self._wait_until_heard()

    def _wait_until_heard(self) -> None:
        """Hold the next key of a burst back until this one has acted: it is meant for what has the focus then.

        So a flood of keys stays in the terminal, and not in our memory. The time is taken in slices: one that we were stopped
        in is one of many. Who leaves waits for this thread.
        """
        heard = asyncio.run_coroutine_threadsafe(self.settle(), self.loop)
        for _ in range(_HEARD_SLICES):
            with suppress(TimeoutError, CancelledError):
                heard.result(_HEARD_S)
            if heard.done() or self._is_leaving or self.exit_event.is_set():
                break
        heard.cancel()

    def ask_about_frames(self) -> None:
        """Ask the question of the frames instead: whether there are answers, and how soon."""
        self.write(_QUESTION.decode())

    def ask_about_size(self) -> None:
        """Ask for no reports of the size between the keys: the system tells it."""

    def terminal_size(self) -> tuple[int, int]:
        """Return what the terminal says of itself; variables that were exported once are not asked."""
        try:
            columns, rows = os.get_terminal_size(self._out)
        except OSError:
            columns, rows = 80, 24
        return columns or 80, rows or 24

    def _tell_size(self) -> None:
        """Tell the size that the terminal has now: not from a handler that another may interrupt, and be outlived by."""
        self.sizes_told += 1
        size = Size(*self.terminal_size())
        self.app.post_message(Resize(size, size))

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _READ)
        except OSError:
            return b""

    def _take_answers(self, text: str) -> str:
        """Return what is typed without the answers; one may come in two parts."""
        keys, answers = _ANSWER.subn("", self._answer_begun + text)
        self._answer_begun = keys[-_LONGEST_ANSWER:]
        if answers:
            self._note_answers(answers)
        return _ANSWER.sub("", text)

    def _note_answers(self, count: int) -> None:
        with self._lock:
            self._has_answered = True
            self._patience_s = _PATIENCE_S
            self._answers_expected -= count
            if self._answers_expected <= 0:
                self.round_trip_s = time.monotonic() - self._asked
                self.loop.call_soon_threadsafe(self.on_ready)

    def _send(self) -> None:
        if self._is_gone:
            self._waiting = b""
            return
        try:
            while self._waiting:
                sent = os.write(self._out, self._waiting)
                self.bytes_sent += sent
                self._waiting = self._waiting[sent:]
        except BlockingIOError:
            self.loop.call_soon_threadsafe(self._await_room)
        except OSError:
            self._waiting = b""
            self._lose()

    def _await_room(self) -> None:
        if not self._is_writer_added:
            self._is_writer_added = True
            self.loop.add_writer(self._out, self._continue)

    def _continue(self) -> None:
        with self._lock:
            self._send()
            if not self._waiting:
                self.loop.remove_writer(self._out)
                self._is_writer_added = False
        if not self._waiting:
            self.on_ready()

    def _lose(self) -> None:
        """Leave: nobody is there any more."""
        if not self._is_gone:
            self._is_gone = True
            self.loop.call_soon_threadsafe(self.app.exit, None, 0)


async def _nothing() -> None:
    """Before the first picture nobody has the focus."""
