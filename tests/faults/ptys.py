"""A real terminal with a client that draws no screens."""

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import termios
import threading
from dataclasses import dataclass, field

from tests.conftest import TUILAB
from tests.faults.sites import Site

# A client may send colours, cursor, line and screen control of the live line of rich.
ALLOWED = re.compile(rb"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|[\r\n\t]")


@dataclass
class Terminal:
    """A real terminal with a client, which a thread reads so that nothing blocks."""

    ours: int
    front: "subprocess.Popen[bytes]"
    seen: bytearray = field(default_factory=bytearray)  # all that the client has sent
    before: list[object] = field(default_factory=list)

    def read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.ours, 65536):
                self.seen += data


def open_terminal(
    site: Site,
    terminals: "list[Terminal]",
    *words: str,
    size: tuple[int, int] = (24, 80),
    is_read: bool = True,
) -> Terminal:
    """Start `tuilab ...` as the foreground job of a terminal of its own."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {
        **site.environment,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    before = termios.tcgetattr(theirs)
    front = subprocess.Popen(
        ["setsid", "--ctty", TUILAB, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        close_fds=True,
    )
    os.close(theirs)
    terminal = Terminal(ours, front, before=before)
    terminals.append(terminal)
    if is_read:
        threading.Thread(target=terminal.read, daemon=True).start()
    return terminal


def is_restored(terminal: Terminal) -> bool:
    """O7, O8: whether cursor and modes are as before. Fail if other sequences were ever sent."""
    seen = bytes(terminal.seen)
    strange = re.findall(rb"[\x00-\x1f\x7f].{0,20}", ALLOWED.sub(b"", seen))
    assert strange == [], strange[:5]
    return (
        seen.rfind(b"\x1b[?25h") >= seen.rfind(b"\x1b[?25l")
        and termios.tcgetattr(terminal.ours) == terminal.before
    )
