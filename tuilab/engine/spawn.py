"""Starts the child processes of a supervisor: workers, the sampler, the judge.

Kept free of slow imports, so that a worker that is started ahead loads while its supervisor does.
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
BOX_TOLD = b"!"  # among the heartbeats of a sampler: it has told of the box

# What a worker's environment gets unless the user has set it: silence for a C++ library that prints on its own.
_WORKER_DEFAULTS = {"KINETO_LOG_LEVEL": "99"}


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return the ends of a new line for messages: ours, and that of a worker, which has a high number."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours, socket.socket(fileno=move_to_high_fd(theirs.detach()))


class Child:
    """A child process, the pipes it prints into (each with its number, 1 or 2) and the line it talks on."""

    def __init__(
        self, writer: str, process: "subprocess.Popen[bytes]", line: socket.socket | None = None
    ) -> None:
        self.writer = writer
        self.pid = process.pid
        self.line = line
        self.pipes = {
            pipe: number for pipe, number in ((process.stdout, 1), (process.stderr, 2)) if pipe
        }
        self.started = self.last_heard = time.monotonic()
        self.deadline: float | None = None
        self.asker: Child | None = None  # the worker that waits for this arm
        self.repeat = 0
        self.is_ready = False  # it was started ahead and waits for its order; of a sampler: it has told what it tells once
        self.rss_peak_bytes: int | None = None  # of the largest of its processes
        self.farewell: WorkerResult | None = None
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
        """Say whether it lives although it was killed a while ago."""
        return (
            not self.is_over
            and self._killed_at is not None
            and time.monotonic() - self._killed_at > processes.PATIENCE_S
        )

    def is_slow_to_go(self) -> bool:
        """Say whether it has been on its way out for a while, by itself or killed, and is not gone."""
        if self._doomed_since is None and is_doomed(self.pid):
            self._doomed_since = time.monotonic()
        return (
            self._doomed_since is not None
            and time.monotonic() - self._doomed_since > processes.PATIENCE_S
        )

    def take_status(self, status: int, usage: struct_rusage) -> None:
        """Note what wait4 gave."""
        self.rss_peak_bytes = usage.ru_maxrss * 1024 or None  # no kernel that keeps it says 0
        if os.WIFSIGNALED(status):
            self.signal = os.WTERMSIG(status)
        else:
            self.code = os.WEXITSTATUS(status)
        self._process.returncode = os.waitstatus_to_exitcode(
            status
        )  # so that Popen does not wait for it again

    def how_it_ended(self) -> str:
        """Return how the process ended in words."""
        if self.reason:
            return self.reason
        if self.signal is None:
            return f"exit code {self.code}"
        return processes.ended_by(self.signal)

    def outcome(self) -> tuple[RunState, str]:
        """Return the state and reason that a worker's end amounts to; success needs an observed exit code 0."""
        if self.signal:
            return RunState.FAILED if self.reason else RunState.KILLED, self.how_it_ended()
        if self.farewell is None:
            return (
                RunState.FAILED,
                f"the worker ended with exit code {self.code} before run() returned",
            )
        if self.farewell.error:
            return RunState.FAILED, self.farewell.error[:REASON_LIMIT]
        if self.code:
            return (
                RunState.FAILED,
                f"the worker ended with exit code {self.code} after run() returned",
            )
        return RunState.SUCCEEDED, f"not testable here: {self.farewell.lacks}"[
            :REASON_LIMIT
        ] if self.farewell.lacks else ""

    def tell(self, words: str) -> bool:
        """Write a line to its stdin, the last; say whether it could be written."""
        assert self._process.stdin is not None
        try:
            with self._process.stdin as ear:
                ear.write(f"{words}\n".encode())
        except BrokenPipeError:
            return False
        return True

    def kill(self, reason: str) -> None:
        """Kill the process itself; it has not been reaped, so the pid is still its own."""
        self.reason = reason
        self.deadline = None
        self._killed_at = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)


def spawn_worker(
    writer: str, run: str, arm: "ArmOrder | None" = None, command: "CommandOrder | None" = None
) -> Child:
    """Start a fresh interpreter in its own session that waits for its order on a line of its own.

    It runs a scenario, or an arm of one, or a command of the user's, whose environment is the front's.
    """
    ours, theirs = socket_pair()
    module = "tuilab.commands.worker" if command else "tuilab.lab.worker"
    words = [*(arm.prefix if arm else []), sys.executable, "-P", "-m", module, str(theirs.fileno())]
    environment = {
        **worker_environment(run, is_plain=command is not None),
        **(arm.env if arm else {}),
    }
    with theirs:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                pass_fds=[theirs.fileno(), *(command.descriptors if command else [])],
                start_new_session=True,
                preexec_fn=partial(
                    processes.start_clean, os.getpid()
                ),  # safe: the supervisor has one thread
            )
        except OSError:
            ours.close()
            raise
    if command:
        for one in command.handed_over:
            os.close(one)
        command.stdin, command.others = None, []
    ours.setblocking(False)
    return Child(writer, process, ours)


def worker_environment(run: str, *, is_plain: bool = False) -> dict[str, str]:
    """Return the environment of a worker whose arm adds nothing to it."""
    return {**({} if is_plain else _WORKER_DEFAULTS), **os.environ, presence.MARK: run}


def spawn_spare() -> Child | None:
    """Start a worker that has no order yet; None when there can be none: it is started when its turn comes."""
    try:
        return spawn_worker("spare", processes.SPARE)
    except OSError:
        return None


def warm_up(
    spare: Child | None, modules: list[str], *, is_first: bool = False, is_timed: bool = True
) -> Child | None:
    """Have a worker load modules before it has an order; None where it cannot be told."""
    from tuilab.engine import messages

    if spare is None or spare.line is None:
        return None
    try:
        messages.send(spare.line, messages.WarmUp(modules, is_first, is_timed))
    except (OSError, ValueError):  # or a message cannot hold all that it is to load
        return None
    return spare


def spawn_sampler(run_dir: Path, stream: str) -> Child:
    """Start the sampler; its stdin is its lifeline, its stdout its heartbeat."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "tuilab.engine.sampler",
        str(run_dir),
        str(os.getpid()),
        stream,
    ]
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
    """Start the process that reaches the verdicts when it is told to."""
    command = [sys.executable, "-P", "-m", "tuilab.engine.judge", str(run_dir)]
    environment = {**os.environ, presence.MARK: run_dir.name}
    process = subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    )
    return Child("judge", process)


def spawn_rest(run_dir: Path) -> Child:
    """Start the process that reads what a worker of a command, which was killed, had not read of its marks."""
    environment = {**os.environ, presence.MARK: run_dir.name}
    words = words_for_rest(run_dir)
    return Child(
        "rest",
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
        ),
    )


def words_for_rest(run_dir: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "tuilab.commands.leftover_marks", str(run_dir)]


def has_rest(run_dir: Path) -> bool:
    """Say whether marks of a command are left, which only a worker that was killed leaves."""
    return any(run_dir.glob("marks-*"))
