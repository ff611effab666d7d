"""Hears what a process of its own has to say, which may hang or crash without harm to who asked, and how it ended."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_LIMIT = 256 * 1024

Process = subprocess.Popen[bytes]


def hear(module: str, words: list[str], patience_s: float, take: Callable[[bytes], None] | None = None) -> tuple[bytes, str]:
    """Return what a module says, and how its process ended, in words; `take` gets what was said whenever it is more."""
    try:
        asked = start(module, words)
    except OSError as problem:
        return b"", f"no process could be started to ask: {problem.strerror}"
    return to_its_end(asked, patience_s, take)


def start(module: str, words: list[str], stdin: int = subprocess.DEVNULL) -> Process:
    """Start a module in a process of its own; all that this one starts is ended with it."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def to_its_end(asked: Process, patience_s: float, take: Callable[[bytes], None] | None = None) -> tuple[bytes, str]:
    """Hear a process until it has no more to say, or says nothing for too long."""
    assert asked.stdout is not None
    with asked.stdout:
        said, late_s = _listen(asked.stdout.fileno(), patience_s, take)
    return said, _end(asked, late_s)


def _listen(fd: int, patience_s: float, take: Callable[[bytes], None] | None) -> tuple[bytes, float]:
    """Return what is said until the end, or until no answer comes in time; then also how long was waited."""
    said = b""
    deadline = time.monotonic() + patience_s
    while (left_s := deadline - time.monotonic()) > 0:
        if not select.select([fd], [], [], left_s)[0]:
            break
        more = os.read(fd, 65536)
        if not more or len(said) > _LIMIT:
            return said, 0.0
        said += more
        if b"\n" in more:
            deadline = time.monotonic() + patience_s
            if take:
                take(said)
    return said, patience_s


def _end(asked: Process, late_s: float) -> str:
    """End a process and all that it started, and say how it ended; one that hangs in the kernel is not waited for."""
    code = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = asked.wait(0.5 if not late_s else 0.001)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(asked.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        asked.wait(0.5)
    if late_s:
        return f"no answer within {late_s:g} s"
    if code is None:
        return "the process that was asked says nothing more"
    return f"it ended the process that was asked, by signal {-code}" if code < 0 else f"its process ended with exit code {code}"
