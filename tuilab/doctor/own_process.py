"""Run code in its own process, which may hang or crash, and return its output and how it ended."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO, Protocol

_LIMIT = 256 * 1024
_POLL_S = 0.001


class AskedProcess(Protocol):
    """The interface of a process that is asked: a Popen or a ForkedProcess."""

    @property
    def pid(self) -> int: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    def wait(self, timeout: float) -> int: ...


class ForkedProcess:
    """A fork of this process in its own session; modules that are loaded here are loaded there."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Fork, and call `work` in the child with its stdout into a pipe to the parent."""
        out, into = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            _work_apart(work, into)
        os.close(into)
        self.stdout: IO[bytes] | None = os.fdopen(out, "rb")
        self._code: int | None = None

    def wait(self, timeout: float) -> int:
        """Return the exit code, negative for a signal; raise TimeoutExpired after `timeout`."""
        until = time.monotonic() + timeout
        while self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                raise subprocess.TimeoutExpired("a fork", timeout)
            else:
                time.sleep(_POLL_S)
        return self._code


def _work_apart(work: Callable[[], None], into: int) -> None:
    """Call `work` in a new session with stdout into a pipe, and end the process."""
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd, place in ((null, 0), (into, 1), (null, 2)):
            os.dup2(fd, place)
        work()
        code = 0
    finally:
        os._exit(code)


def may_fork() -> bool:
    """Say whether this process has one thread: a fork would keep the locks of others forever."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def hear(
    module: str,
    arguments: list[str],
    patience_s: float,
    take: Callable[[bytes], None] | None = None,
) -> tuple[bytes, str]:
    """Run a module; return its output, and a sentence on how its process ended.

    `take` is called with the output so far whenever there is more.
    """
    try:
        process = start(module, arguments)
    except OSError as problem:
        return b"", f"cannot start a process for this check: {problem.strerror}"
    return to_its_end(process, patience_s, take)


def start(
    module: str, arguments: list[str], stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a module in its own process and session: its children are ended with it."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),  # not the environment of C, which arrays.py changes
        start_new_session=True,
    )


def to_its_end(
    asked: AskedProcess, patience_s: float, take: Callable[[bytes], None] | None = None
) -> tuple[bytes, str]:
    """Read the output of a process to its end, or until it is silent for too long.

    Then end the process and its children, and return the output with a sentence on how it ended.
    """
    assert asked.stdout is not None
    with asked.stdout:
        output, late_s = _read_pipe(asked.stdout.fileno(), patience_s, take)
    return output, _end(asked, late_s)


def _read_pipe(
    fd: int, patience_s: float, take: Callable[[bytes], None] | None
) -> tuple[bytes, float]:
    """Return the output, and the seconds waited in vain (0.0 if the output ended, or is too long).

    Each line of output restarts the patience. `take` is called with the whole output so far.
    """
    output = b""
    deadline = time.monotonic() + patience_s
    while True:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0 or not select.select([fd], [], [], remaining_s)[0]:
            return output, patience_s
        data = os.read(fd, 65536)
        if not data or len(output) > _LIMIT:
            return output, 0.0
        output += data
        if b"\n" in data:
            deadline = time.monotonic() + patience_s
            if take:
                take(output)


def _end(asked: AskedProcess, late_s: float) -> str:
    """End a process and its children, and return how it ended; do not wait for a hanging kernel."""
    code = None
    exit_patience_s = 0.001 if late_s else 0.5
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = asked.wait(exit_patience_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(asked.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        asked.wait(0.5)
    if late_s:
        return f"no answer within {late_s:g} s"
    if code is None:
        return "the process that checks it stopped answering"
    if code < 0:
        return f"the process that checks it crashed with signal {-code}"
    # Callers use this sentence only if a check has no answer, so exit code 0 is too early as well.
    return f"the process that checks it ended early, with exit code {code}"
