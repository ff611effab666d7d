"""A real terminal for tests: a pty with `tuilab` in it, and an emulator of what a user would see.

It answers the questions of programs, keeps every byte that was sent, and can stop reading.
"""

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
from wcwidth import wcwidth

from tests.conftest import TUILAB
from tuilab.tui.terminal.guardian import RESTORE

PATIENCE_S = 60.0
# Variables that the command does not inherit. Workers of pytest have a size there.
_LEFT_OUT = ("TMUX", "NO_COLOR", "COLUMNS", "LINES")
_DRAWS_S = 5.0  # the longest wait for a frame of screens that have failed
_QUESTION = b"\x1b[5n"
_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>?=][0-9;]*[a-zA-Z]")  # modes, which draw nothing
_BEGUN = re.compile(rb"\x1b(\[[0-9;<>?=]*)?$")  # a sequence without its end
# The screens may send: pointer shape, title, notification, bell, colours, cursor moves, modes, the
# keyboard protocol, and the question after a frame.
ALLOWED = re.compile(
    rb"(\x1b\]22;[a-z]*\x07|\x1b\][29];tuilab: [^\x00-\x1f\x7f]*\x07|\x07|\x1b\[2[23];2t|"
    rb"\x1b\[[0-9;]*m|\x1b\[[0-9]+(;[0-9]+H|C)|\x1b\[\?[0-9]+[hl]|\x1b\[[<>][0-9]*u|\x1b\[5n|[\r\n]|[^\x00-\x1f\x7f])*"
)
# The guardian sends this, after a sequence that the end of the screens may have cut short.
_GIVEN_BACK = re.compile(rb"(\x1b(\](2(2(;[a-z]*)?)?)?|\[[<>?]?[0-9;]*)?)?" + re.escape(RESTORE))
_UNSAFE = re.compile("[\x80-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


class _Screen(pyte.Screen):
    """Show a blank in place of half a wide character, where pyte fails.

    If only a part of a frame has come, it can have overwritten the other half.
    """

    @property
    def display(self) -> list[str]:
        for line in self.buffer.values():
            if not all(cell.data for cell in line.values()):
                self._fill_halves(line)
        shown: list[str] = super().display
        return shown

    def _fill_halves(self, line: Any) -> None:
        """Fill the cells that pyte reads. It skips the cell after a wide character."""
        is_behind = False
        for x in range(self.columns):
            if is_behind:
                is_behind = False
                continue
            if not line[x].data:
                line[x] = line[x]._replace(data=" ")
            is_behind = wcwidth(line[x].data[0]) == 2


class Terminal:
    """A terminal of its own with a command in it, as the foreground job of a session."""

    def __init__(
        self,
        *command: str,
        columns: int = 120,
        rows: int = 40,
        env: dict[str, str],
        answers: bool = True,
        limit: int = 0,
        kind: dict[str, str] | None = None,
        stderr: int | None = None,
    ) -> None:
        """Start the command. `kind` has the environment variables that name the terminal."""
        self.ours, theirs = os.openpty()
        self.screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._answers = answers
        self._limit = limit  # of the link, in bytes per second; 0 means no limit
        # The bytes on their way through the link, each with the time of its start.
        self._link: deque[tuple[float, bytes]] = deque()
        self._lock = threading.Lock()
        self._is_reading = True
        self._is_closed = False
        self._trouble = ""
        self._begun = b""
        self.delay_s = 0.0  # the longest time that bytes needed for the link
        self.sent = bytearray()
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(theirs)
        if kind is None:
            kind = {
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "LC_ALL": "C.UTF-8",
                "COLORTERM": "truecolor",
            }
        environment = {name: value for name, value in env.items() if name not in _LEFT_OUT}
        environment |= kind
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs if stderr is None else stderr,
            env=environment,
            close_fds=True,
        )
        os.close(theirs)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._carrier = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()
        self._carrier.start()

    @property
    def text(self) -> str:
        """What the screen shows."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, *words: str, patience_s: float = PATIENCE_S) -> str:
        """Wait until the screen shows all the words, and return what it shows."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            text = self.text
            if all(word in text for word in words):
                return text
            is_over = (
                self.process.poll() is not None and not self._thread.is_alive() and not self._link
            )
            if is_over and text == self.text:
                break
            time.sleep(0.01)
        seen = f"{words} not on the screen ({self._state()}):\n{self.text}"
        raise AssertionError(f"{seen}\n{self._drawn_again()}\n{self._last_words()}")

    def _state(self) -> str:
        reader = "" if self._thread.is_alive() else ", nobody reads any more"
        return f"exit {self.process.poll()}, {len(self.sent)} bytes came{reader}{self._trouble}"

    def _drawn_again(self) -> str:
        """Ask for a whole new frame, and return what it shows.

        So an error names output that was only not sent. Screens that hang draw no frame.
        """
        frames = self.frames
        deadline = time.monotonic() + _DRAWS_S
        with contextlib.suppress(OSError):
            self.type("\x0c")
        while self.frames == frames and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if self.frames == frames:
            return "asked to draw again, it sent no frame"
        return f"drawn again, it shows:\n{self.text}"

    def _last_words(self) -> str:
        """Abort the command, and return the stack that Python prints then."""
        sent_before = len(self.sent)
        self.process.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(5)
        return self.sent[sent_before:].decode(errors="replace")

    def type(self, keys: str | bytes) -> None:
        """Type these characters."""
        os.write(self.ours, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as a window does."""
        with self._lock:
            self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    @property
    def frames(self) -> int:
        """How many frames were sent, and 1 for the start: each of them ends with a question."""
        with self._lock:
            return self.sent.count(_QUESTION)

    def wipe(self) -> None:
        """Forget what the screen shows, so that only what is drawn from here on is found."""
        with self._lock:
            self.screen.reset()

    def forget(self) -> None:
        """Forget what was sent so far, if it would be too much to keep."""
        with self._lock:
            self.sent.clear()

    def stop_reading(self) -> None:
        """Read nothing more, like a link that hangs."""
        self._is_reading = False

    def read_again(self) -> None:
        """Read what was sent meanwhile, and everything from here on."""
        self._is_reading = True

    def hang_up(self) -> None:
        """Close the terminal as its window does."""
        self._is_closed = True
        # Without this, the threads would use the next file that gets the number of this descriptor.
        self._thread.join()
        self._carrier.join()
        os.close(self.ours)

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Wait for the end of the command and of what it sent, and return its exit code."""
        code = self.process.wait(timeout)
        self._thread.join(2)
        return code

    def age_s(self) -> float:
        """Return for how long the oldest bytes have been on their way; 0 if there are none."""
        if not self._link:
            return 0.0
        started_s, _ = self._link[0]
        return time.monotonic() - started_s

    def is_restored(self) -> bool:
        """Whether the modes are as before and everything that was switched on is off again."""
        seen = bytes(self.sent)
        for mode in (1000, 1003, 1006, 2004, 1004, 1049):
            if seen.rfind(b"\x1b[?%dh" % mode) > seen.rfind(b"\x1b[?%dl" % mode):
                return False
        is_cursor_back = seen.rfind(b"\x1b[?25h") >= seen.rfind(b"\x1b[?25l")
        return is_cursor_back and termios.tcgetattr(self.ours) == self.before

    def strange(self) -> list[bytes]:
        """Return what the screens may not send.

        These are sequences, each with the bytes around it, and characters that steer a terminal.
        """
        sent = _GIVEN_BACK.sub(b"", bytes(self.sent), count=1)
        strange = []
        at = 0
        while allowed := ALLOWED.match(sent, at):
            at = allowed.end()
            if at >= len(sent):
                break
            if not sent[at : at + 1].isspace():
                strange.append(sent[max(at - 40, 0) : at + 40])
            at += 1
        text = self.sent.decode(errors="replace")
        strange += [character.encode() for character in _UNSAFE.findall(text)]
        return strange

    def close(self) -> None:
        """End everything."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        if not self._is_closed:
            self.hang_up()

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        # Not `select`: it takes no descriptor above 1023, and a long session of tests may have that.
        news = select.poll()
        news.register(self.ours, select.POLLIN)
        try:
            while not self._is_closed:
                if not self._is_reading:
                    time.sleep(0.01)
                elif news.poll(50) and not self._read_once():
                    return
        except Exception as problem:
            self._trouble = f", the reader failed: {problem!r}"

    def _read_once(self) -> bool:
        """Read what has come. Return whether more may come."""
        try:
            data = os.read(self.ours, 65536)
        except OSError:  # no process has the other end open: at the end, or for a moment
            if self.process.poll() is not None:
                return False
            time.sleep(0.01)
            return True
        if self._limit:
            self._link.append((time.monotonic(), data))
        else:
            self._arrive(data)
        return bool(data)

    def _carry(self) -> None:
        """Be a slow link: it takes everything at once, like ssh, and delivers it at a limited rate."""
        while self._limit and not self._is_closed:
            if not self._link:
                time.sleep(0.005)
                continue
            started_s, data = self._link[0]
            time.sleep(len(data) / self._limit)
            self._arrive(data)
            self.delay_s = max(self.delay_s, time.monotonic() - started_s)
            self._link.popleft()

    def _arrive(self, data: bytes) -> None:
        """Show bytes in the emulator, except for the begin of a sequence, and answer questions."""
        with self._lock:
            self.sent += data
            data = self._begun + data
            begun = _BEGUN.search(data)
            end = begun.start() if begun else len(data)
            self._begun = data[end:]
            data = data[:end]
            self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data))
        if self._answers:
            with contextlib.suppress(OSError):
                for _ in range(data.count(_QUESTION)):
                    os.write(self.ours, b"\x1b[0n")


@contextlib.contextmanager
def terminal(root: Path, *words: str, command: str = TUILAB, **more: Any) -> Iterator[Terminal]:
    """Open `tuilab ...` in a terminal with a folder of runs of its own."""
    env = {**os.environ, "TUILAB_ROOT": str(root / "runs"), "PYTHONFAULTHANDLER": "1"}
    env |= more.pop("env", {})
    opened = Terminal(command, *words, env=env, **more)
    try:
        yield opened
    finally:
        opened.close()
