"""Start the child processes of a supervisor: workers, the sampler, the judge.

This module has no slow imports, so that an early supervisor can start its worker before it loads
the rest.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from resource import struct_rusage
from typing import TYPE_CHECKING

from tuilab.engine import processes
from tuilab.engine.slow_exits import is_doomed
from tuilab.record import presence
from tuilab.record.states import RunState
from tuilab.storage.files import move_to_high_fd

if TYPE_CHECKING:
    from tuilab.engine.messages import ArmOrder, CommandOrder, WorkerResult

REASON_LIMIT = 1000  # characters
BOX_TOLD = b"!"  # a heartbeat of the sampler: it has described the machine

# Defaults for the environment of a worker: Kineto, a C++ library, prints unless it is told not to.
_WORKER_DEFAULTS = {"KINETO_LOG_LEVEL": "99"}


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a new socket pair: ours, and one with a high descriptor for a worker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours, socket.socket(fileno=move_to_high_fd(theirs.detach()))


class Child:
    """A child process, its output pipes with their descriptors (1 or 2), and its message socket."""

    def __init__(
        self, writer: str, process: "subprocess.Popen[bytes]", line: socket.socket | None = None
    ) -> None:
        self.writer = writer
        self.pid = process.pid
        self.line = line
        self.pipes = {}
        for pipe, number in ((process.stdout, 1), (process.stderr, 2)):
            if pipe:
                self.pipes[pipe] = number
        self.started = time.monotonic()
        self.last_heard = self.started
        self.deadline: float | None = None
        self.asker: Child | None = None  # the worker that waits for the result of this arm
        self.repeat = 0
        # A worker has loaded its modules; a sampler has described the machine.
        self.is_ready = False
        self.rss_peak_bytes: int | None = None  # of its largest process
        self.result: WorkerResult | None = None
        self.reason = ""  # why the supervisor ended it
        self._killed_at: float | None = None
        self._doomed_since: float | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self._process = process
        for pipe in self.pipes:
            os.set_blocking(pipe.fileno(), False)

    @property
    def is_over(self) -> bool:
        return self.code is not None or self.signal is not None

    def cannot_be_killed(self) -> bool:
        """Say whether it still lives some seconds after it was killed."""
        if self.is_over or self._killed_at is None:
            return False
        return time.monotonic() - self._killed_at > processes.PATIENCE_S

    def is_slow_to_go(self) -> bool:
        """Say whether it has been exiting for some seconds, by itself or killed.

        The time begins with the first call that finds it exiting, so call this again and again.
        """
        if self._doomed_since is None and is_doomed(self.pid):
            self._doomed_since = time.monotonic()
        if self._doomed_since is None:
            return False
        return time.monotonic() - self._doomed_since > processes.PATIENCE_S

    def take_status(self, status: int, usage: struct_rusage) -> None:
        """Keep the result of wait4: the exit code or the signal, and the peak of memory."""
        self.rss_peak_bytes = usage.ru_maxrss * 1024 or None  # 0: the kernel does not record it
        if os.WIFSIGNALED(status):
            self.signal = os.WTERMSIG(status)
        else:
            self.code = os.WEXITSTATUS(status)
        # So that Popen does not wait for it again.
        self._process.returncode = os.waitstatus_to_exitcode(status)

    def how_it_ended(self) -> str:
        """Return a sentence about how the process ended; only to be called after its end."""
        if self.reason:
            return self.reason
        if self.signal is None:
            return f"exit code {self.code}"
        return processes.ended_by(self.signal)

    def outcome(self) -> tuple[RunState, str]:
        """Return the state and the reason for a worker; success needs exit code 0 and a result."""
        if self.signal and not self.reason:
            return RunState.KILLED, self.how_it_ended()
        if self.signal:
            return RunState.FAILED, self.how_it_ended()
        ended = f"the worker ended with exit code {self.code}"
        if self.result is None:
            return RunState.FAILED, f"{ended} before run() returned"
        if self.result.error:
            return RunState.FAILED, self.result.error[:REASON_LIMIT]
        if self.code:
            return RunState.FAILED, f"{ended} after run() returned"
        if self.result.lacks:
            return RunState.SUCCEEDED, f"not testable here: {self.result.lacks}"[:REASON_LIMIT]
        return RunState.SUCCEEDED, ""

    def tell(self, words: str) -> bool:
        """Write the last line to its stdin, which this closes; return False if nobody reads it."""
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stdin:
                stdin.write(f"{words}\n".encode())
        except BrokenPipeError:
            return False
        return True

    def kill(self, reason: str) -> None:
        """Kill the process, whose end then has this reason; its deadline is dropped.

        Its pid cannot be reused, because it has not been reaped.
        """
        self.reason = reason
        self.deadline = None
        self._killed_at = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)


def spawn_worker(
    writer: str, run: str, arm: "ArmOrder | None" = None, command: "CommandOrder | None" = None
) -> Child:
    """Start a new interpreter in its own session, which waits for its order on a socket.

    It runs a scenario, an arm of one, or a command of the user in the environment of the client.
    The descriptors that only a command keeps are closed here and removed from `command`, so a later
    worker does not get them. Raises OSError if the process cannot be started.
    """
    ours, theirs = socket_pair()
    module = "tuilab.commands.worker" if command else "tuilab.lab.worker"
    words = [sys.executable, "-P", "-m", module, str(theirs.fileno())]
    environment = worker_environment(run, is_plain=command is not None)
    if arm:
        words = arm.prefix + words
        environment |= arm.env
    descriptors = [theirs.fileno()]
    if command:
        descriptors += command.descriptors
    with theirs:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                pass_fds=descriptors,
                start_new_session=True,
                # Safe, because the supervisor has one thread.
                preexec_fn=partial(processes.start_clean, os.getpid()),
            )
        except OSError:
            ours.close()
            raise
    if command:
        for descriptor in command.handed_over:
            os.close(descriptor)
        command.stdin = None
        command.others = []
    ours.setblocking(False)
    return Child(writer, process, ours)


def worker_environment(run: str, *, is_plain: bool = False) -> dict[str, str]:
    """Return the environment of a worker without that of an arm.

    `is_plain`: without our defaults.
    """
    defaults = {} if is_plain else _WORKER_DEFAULTS
    return {**defaults, **os.environ, presence.MARK: run}


def spawn_spare() -> Child | None:
    """Start a worker in advance of its order, or return None if that fails."""
    try:
        return spawn_worker("spare", processes.SPARE)
    except OSError:
        return None


def warm_up(
    spare: Child | None, modules: list[str], *, is_first: bool = False, is_timed: bool = True
) -> Child | None:
    """Tell a worker to load modules before its order, and return it; None if that fails.

    None also if there is no worker, or if it has closed its socket.
    """
    from tuilab.engine import messages

    if spare is None or spare.line is None:
        return None
    try:
        messages.send(spare.line, messages.WarmUp(modules, is_first, is_timed))
    except (OSError, ValueError):  # ValueError: the list of modules is too long
        return None
    return spare


def spawn_sampler(run_dir: Path, stream: str) -> Child:
    """Start the sampler; raise OSError if that fails.

    It ends when its stdin closes, and its stdout is a heartbeat.
    """
    arguments = [str(run_dir), str(os.getpid()), stream]
    command = [sys.executable, "-P", "-m", "tuilab.engine.sampler", *arguments]
    process = subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, presence.MARK: run_dir.name},
        start_new_session=True,
    )
    return Child(stream, process)


def spawn_judge(run_dir: Path) -> Child:
    """Start the process that computes verdicts on request; raise OSError if that fails."""
    command = [sys.executable, "-P", "-m", "tuilab.engine.judge", str(run_dir)]
    environment = {**os.environ, presence.MARK: run_dir.name}
    process = subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    )
    return Child("judge", process)


def spawn_rest(run_dir: Path) -> Child:
    """Start the process that reads the marks which a killed worker of a command left unread.

    Raises OSError if that fails.
    """
    process = subprocess.Popen(
        words_for_rest(run_dir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, presence.MARK: run_dir.name},
    )
    return Child("rest", process)


def words_for_rest(run_dir: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "tuilab.commands.leftover_marks", str(run_dir)]


def has_rest(run_dir: Path) -> bool:
    """Say whether there are unread marks of a command, which only a killed worker leaves."""
    return any(run_dir.glob("marks-*"))
