"""Drive the terminal for Textual, and survive what happens over SSH.

While the screens are open, nothing here waits until the terminal accepts bytes. Bytes that it does
not accept at once are kept, and sent as soon as it accepts more. Every frame ends with a question
that the terminal answers. The answer shows that the frame has arrived at the far end of the link,
and not only in a buffer on the way.
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
from textual.message import Message

from tuilab.tui.terminal.guardian import open_again
from tuilab.tui.terminal.keyboard import Typed
from tuilab.tui.terminal.textual_parts import TextualDriver

# The question is "device status report", the oldest of all. Some terminals print a part of newer
# questions, because they do not know them.
_QUESTION = b"\x1b[5n"
_ANSWER = re.compile(r"\x1b\[0n")
_LONGEST_ANSWER = 4
_PATIENCE_S = 5.0  # an answer that takes longer is lost, or the link is frozen
_LONGEST_PATIENCE_S = 80.0  # long, so that few frames are on their way when a frozen link thaws
_STALLED_S = 1.0
_LAST_ANSWER_S = 2.0  # when the screens close: how long after a question its answer may arrive
_LAST_WORDS_S = 1.0  # when the screens close: how long the terminal may take to accept the rest
_READ = 4096
_SILENCE_S = 0.1  # between two checks whether an incomplete sequence is now complete
# How long a key may take to act before the next key of its burst, in slices. On a busy machine a
# key takes long.
_KEY_SLICE_S = 0.05
_KEY_SLICES = 60


class Terminal(TextualDriver):
    """Reads keys, writes frames, and reports if a frame may be sent or the terminal is gone."""

    def __init__(self, app: Any, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self.app = app
        self.loop = asyncio.get_running_loop()
        self.on_ready: Callable[[], None] = lambda: None
        # Called at the start, and after a suspension, when the terminal shows something else.
        self.on_start: Callable[[], None] = lambda: None
        self.settle: Callable[[], Coroutine[Any, Any, None]] = _nothing
        self.bytes_sent = 0
        self.round_trip_s = 0.0  # of the last frame whose answer came
        self.size_reports = 0  # how often the system reported that the size has changed
        self.is_given_back = True  # False: the terminal did not accept all that restores it
        self._report_taken: Callable[[bool], None] = app.on_terminal_taken
        self._out_fd = open_again(1)
        self._lock = threading.RLock()  # the input thread and signal handlers write as well
        self._waiting = b""
        self._is_writer_added = False
        self._answers_expected = 0
        self._answer_begun = ""
        self._has_answered = False
        self._patience_s = _PATIENCE_S
        self._asked_s = 0.0  # when the last question was sent
        self._started_s = 0.0
        self._is_gone = False
        self._is_leaving = False
        self._is_stuck = False  # the terminal accepted nothing when we left
        # The bytes that we sent last end in the middle of a sequence. The terminal would take
        # further bytes for a part of it. Only the guardian begins with bytes that end a sequence.
        self._is_cut = False
        # A byte in this pipe wakes the input thread when it has nothing more to read.
        self._wake_fd, self._wake_writer_fd = os.pipe()
        app.terminal = self

    @property
    def is_ready(self) -> bool:
        """Whether the last frame is sent and, if the terminal gives answers, has arrived."""
        if self._waiting:
            return False
        if self._answers_expected <= 0 or not self._has_answered:
            return True
        return time.monotonic() - self._asked_s > self._patience_s

    @property
    def is_stalled(self) -> bool:
        """Whether the last frame has been on its way for long."""
        return not self.is_ready and time.monotonic() - self._asked_s > _STALLED_S

    def send_frame(self, frame: str) -> None:
        """Send a frame, and ask the terminal whether it has arrived.

        If the answer to the last frame did not come, wait twice as long for the next answer, but at
        most 80 s.
        """
        if self._is_leaving:
            return
        with self._lock:
            if self._answers_expected > 0 and self._has_answered:
                self._answers_expected = 0
                self._patience_s = min(self._patience_s * 2, _LONGEST_PATIENCE_S)
            self._answers_expected = max(self._answers_expected, 0) + 1
            self._asked_s = time.monotonic()
            self.write(frame + _QUESTION.decode())

    def write(self, data: str) -> None:
        """Send as many bytes as the terminal accepts now, and the rest later."""
        with self._lock:
            if not self._is_cut:
                self._waiting += data.encode(errors="replace")
            self._send()

    def start_application_mode(self) -> None:
        """Take the terminal and open the screens.

        A process in the background cannot do that: then the screens open when it is continued.
        """
        self._is_leaving = False
        self._is_cut = False
        self._answers_expected = 1  # the start asks one question
        self._started_s = time.monotonic()
        self._asked_s = self._started_s
        self._report_taken(True)
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Textual did not start: we are in the background, and the shell uses the terminal.
        if self.is_to_resume or not self.has_opened:
            self.is_to_resume = True
            self._is_leaving = True
            self._report_taken(False)
            return
        self.loop.add_signal_handler(signal.SIGWINCH, self._report_size)
        self.loop.call_soon_threadsafe(self.on_start)

    def disable_input(self) -> None:
        """Ask nothing more, and wait for the answers that are still on their way.

        The shell would take a late answer for something that the user typed. If no answer has ever
        come, the terminal may give none, or may be far away. Then the wait is counted from the
        start of the screens.
        """
        if not self._is_leaving:
            self._is_leaving = True
            self._take_question_back()
            self._is_stuck = not self._push(_LAST_WORDS_S)
        wait_begin_s = self._asked_s if self._has_answered else self._started_s
        deadline = wait_begin_s + _LAST_ANSWER_S
        while self._answers_expected > 0 and time.monotonic() < deadline:
            if self._is_stuck or self._is_gone:
                break
            time.sleep(0.005)  # the input thread counts the answers
        self._answers_expected = 0
        os.write(self._wake_writer_fd, b".")
        super().disable_input()
        os.read(self._wake_fd, 1)  # empties the pipe for the next start

    def stop_application_mode(self) -> None:
        """Give the terminal back, and wait a moment until it accepts the last bytes.

        If it does not, `is_given_back` is False, and the bytes are dropped.
        """
        super().stop_application_mode()
        patience_s = 0.0 if self._is_stuck else _LAST_WORDS_S
        self.is_given_back = self._push(patience_s)
        if self.is_given_back:
            self._report_taken(False)
        self._is_cut = bool(self._waiting)
        self._waiting = b""

    def _take_question_back(self) -> None:
        """Remove the questions that have not been sent yet; no answer to them is expected."""
        with self._lock:
            unasked = self._waiting.replace(_QUESTION, b"")
            if unasked != self._waiting:
                self._waiting = unasked
                self._answers_expected -= 1

    def _push(self, patience_s: float) -> bool:
        """Wait for the terminal to accept the waiting bytes; return whether it accepted all."""
        deadline = time.monotonic() + patience_s
        while self._waiting and not self._is_gone and time.monotonic() < deadline:
            with selectors.DefaultSelector() as selector:
                selector.register(self._out_fd, selectors.EVENT_WRITE)
                selector.select(0.1)
            with self._lock:
                self._send()
        return not self._waiting

    def heed_stop(self) -> None:
        # The loop calls it, so that it does not run in the middle of interrupted code.
        self.loop.call_soon_threadsafe(self._stop)

    def heed_continue(self) -> None:
        self.loop.call_soon_threadsafe(self._come_back)

    def _stop(self) -> None:
        """Give the terminal back and stop, unless the app is leaving or has stopped already."""
        if self.app.return_code is None and not self._is_leaving:
            super().heed_stop()

    def _come_back(self) -> None:
        """Open the screens again after a stop.

        SIGSTOP gives no warning, so the screens may still have the terminal. Then they first give
        it back. Otherwise Textual would save the modes of the open screens, and restore these when
        the screens close.
        """
        if self._is_gone or self.app.return_code is not None:
            return
        if not self.has_opened and not self.is_to_resume:
            return  # not open yet
        if not self.is_to_resume:
            self.suspend_application_mode()
        self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read keys until the app leaves or the terminal is gone; drop bytes that are not UTF-8."""
        typed = Typed()
        decode = codecs.getincrementaldecoder("utf-8")(errors="ignore").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._wake_fd, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                timeout_s = _SILENCE_S if typed.is_begun else None
                ready_fds = {key.fd for key, _ in selector.select(timeout_s)}
                messages: list[Message] = []
                if self.fileno in ready_fds:
                    data = self._read()
                    if not data:
                        self._leave_lost_terminal()
                        return
                    text = self._take_answers(decode(data))
                    if text:
                        messages += typed.feed(text)
                messages += typed.tick()
                for event in messages:
                    if self._is_leaving:
                        break  # do not wait for keys to act: answers may still arrive
                    self.process_message(event)
                    if isinstance(event, Key) and event is not messages[-1]:
                        self._wait_until_key_acted()

    def _wait_until_key_acted(self) -> None:
        """Hold the next key of a burst back until this key has acted.

        The next key is meant for the widget that has the focus then. As keys are held back, a flood
        of keys stays in the terminal, and not in our memory.

        The wait is divided into slices. If the process is stopped during the wait, only one of many
        slices is lost. After each slice the wait ends if the app is leaving, because the app waits
        for this thread to end.
        """
        settling = asyncio.run_coroutine_threadsafe(self.settle(), self.loop)
        for _ in range(_KEY_SLICES):
            with suppress(TimeoutError, CancelledError):
                settling.result(_KEY_SLICE_S)
            if settling.done() or self._is_leaving or self.exit_event.is_set():
                break
        settling.cancel()

    def ask_about_frames(self) -> None:
        """Ask the question that ends each frame, to learn if the terminal answers, and how soon."""
        self.write(_QUESTION.decode())

    def ask_about_size(self) -> None:
        """Ask for no reports of the size between the keys, because the system reports the size."""

    def terminal_size(self) -> tuple[int, int]:
        """Return the size from the terminal; COLUMNS and LINES may have been exported long ago."""
        try:
            columns, rows = os.get_terminal_size(self._out_fd)
        except OSError:
            return 80, 24
        return columns or 80, rows or 24

    def _report_size(self) -> None:
        """Report the size that the terminal has now.

        The loop calls this function. A plain signal handler could be interrupted by a second one,
        and would then report its older size after the newer size.
        """
        self.size_reports += 1
        size = Size(*self.terminal_size())
        self.app.post_message(Resize(size, size))

    def _read(self) -> bytes:
        """Return what the terminal has sent; nothing if the terminal is gone."""
        try:
            return os.read(self.fileno, _READ)
        except OSError:
            return b""

    def _take_answers(self, text: str) -> str:
        """Return the text without the answers; count these, also if one arrives in two parts."""
        keys, answers = _ANSWER.subn("", self._answer_begun + text)
        self._answer_begun = keys[-_LONGEST_ANSWER:]
        if answers:
            self._note_answers(answers)
        return _ANSWER.sub("", text)

    def _note_answers(self, count: int) -> None:
        """Count answers of the terminal. After the last one, report that a frame may be sent."""
        with self._lock:
            self._has_answered = True
            self._patience_s = _PATIENCE_S
            self._answers_expected -= count
            if self._answers_expected <= 0:
                self.round_trip_s = time.monotonic() - self._asked_s
                self.loop.call_soon_threadsafe(self.on_ready)

    def _send(self) -> None:
        """Send as many waiting bytes as the terminal accepts, and the rest when it accepts more.

        If the terminal is gone, drop the bytes and make the app exit.
        """
        if self._is_gone:
            self._waiting = b""
            return
        try:
            while self._waiting:
                sent_count = os.write(self._out_fd, self._waiting)
                self.bytes_sent += sent_count
                self._waiting = self._waiting[sent_count:]
        except BlockingIOError:
            self.loop.call_soon_threadsafe(self._await_room)
        except OSError:
            self._waiting = b""
            self._leave_lost_terminal()

    def _await_room(self) -> None:
        """Make the loop call `_continue` when the terminal accepts bytes again."""
        if not self._is_writer_added:
            self._is_writer_added = True
            self.loop.add_writer(self._out_fd, self._continue)

    def _continue(self) -> None:
        """Send more bytes, because the terminal accepts some again; after the last, report that."""
        with self._lock:
            self._send()
            if not self._waiting:
                self.loop.remove_writer(self._out_fd)
                self._is_writer_added = False
        if not self._waiting:
            self.on_ready()

    def _leave_lost_terminal(self) -> None:
        """Make the app exit, because its terminal is gone."""
        if not self._is_gone:
            self._is_gone = True
            self.loop.call_soon_threadsafe(self.app.exit, None, 0)


async def _nothing() -> None:
    """Wait for nothing: before the first frame no widget has the focus."""
