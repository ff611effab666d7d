"""The living children of a supervisor: their messages, their output and their ends."""

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping
from typing import IO, Protocol

from tuilab.engine import messages
from tuilab.engine.messages import ArmOrder, Ready, WorkerResult
from tuilab.engine.spawn import BOX_TOLD, Child

_READ = 256 * 1024  # bytes of a pipe that are read at a time


class Output(Protocol):
    """Takes the output of children for one stream; `flush` is called every second.

    `take` gets empty data when a pipe ends.
    """

    def take(self, data: bytes) -> None: ...

    def flush(self) -> None: ...


class Children:
    """All children of a supervisor. Every event of the supervisor is handled in `turn`."""

    def __init__(
        self,
        outputs: Mapping[int, Output],
        on_signal: Callable[[int], None],
        on_arm: Callable[[ArmOrder, Child], None],
        on_death: Callable[[Child], None],
    ) -> None:
        self.children: dict[int, Child] = {}
        self._outputs = outputs
        self._on_signal = on_signal
        self._on_arm = on_arm
        self._on_death = on_death
        self._selector = selectors.DefaultSelector()
        self._flushed = time.monotonic()
        self._listen_to_signals()

    def add(self, child: Child) -> None:
        """Watch a child from now on: its pipes, its messages, its deadline and its death."""
        self.children[child.pid] = child
        for pipe in child.pipes:
            read = self._read_heartbeat if child.line is None else self._read
            self._selector.register(pipe, selectors.EVENT_READ, (read, child, pipe))
        if child.line is not None:
            self._selector.register(child.line, selectors.EVENT_READ, (self._receive, child))

    def turn(self, patience_s: float) -> None:
        """Wait at most `patience_s` for an event, and handle all events.

        Events are signals, messages, output and heartbeats. Then dead children are reaped, late
        ones are killed, and the outputs are flushed once a second.
        """
        for key, _ in self._selector.select(patience_s):
            handle, *arguments = key.data
            handle(*arguments)
        self._reap()
        self._check_deadlines()
        self._flush_outputs()

    def _listen_to_signals(self) -> None:
        """Make SIGTERM, SIGINT and SIGCHLD events of `turn`; ignore the signals of a terminal."""
        reader, self._signal_writer = socket.socketpair()
        for end in (reader, self._signal_writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._signal_writer.fileno(), warn_on_full_buffer=False)
        self._selector.register(reader, selectors.EVENT_READ, (self._read_signals, reader))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)  # a run outlives its terminal, so no hangup
        signal.pthread_sigmask(signal.SIG_SETMASK, [])  # blocked signals are inherited through exec

    def _read_signals(self, reader: socket.socket) -> None:
        for number in reader.recv(4096):
            self._on_signal(number)

    def _receive(self, child: Child) -> None:
        """Handle every message that a worker has sent; close its socket if the worker closed it.

        The socket is also closed after an error. If a message is invalid, that is the result of the
        worker.
        """
        while child.line is not None:
            try:
                message = messages.receive(child.line)
            except BlockingIOError:
                return
            except OSError:
                message = None  # it died before it read its order
            except ValueError as problem:
                child.result = WorkerResult(
                    error=f"the worker sent something that is no message: {problem}"
                )
                message = None
            if isinstance(message, WorkerResult):
                child.result = message
            elif isinstance(message, Ready):
                child.is_ready = True
            elif isinstance(message, ArmOrder):
                self._on_arm(message, child)
            else:
                self._hang_up(child)

    def _hang_up(self, child: Child) -> None:
        if child.line is not None:
            self._selector.unregister(child.line)
            child.line.close()
            child.line = None

    def _read(self, child: Child, pipe: IO[bytes]) -> bool:
        """Pass on the content of a pipe, and return whether there may be more."""
        data = pipe.read(_READ)
        if data is None:
            return False
        self._outputs[child.pipes[pipe]].take(data)
        if not data:
            self._close_pipe(child, pipe)
        return bool(data)

    def _read_heartbeat(self, child: Child, pipe: IO[bytes]) -> None:
        """Note that a sampler lives, and at BOX_TOLD that it has described the machine."""
        child.last_heard = time.monotonic()
        data = pipe.read(_READ)
        if data == b"":
            self._close_pipe(child, pipe)
        elif data and BOX_TOLD in data:
            child.is_ready = True

    def _close_pipe(self, child: Child, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        pipe.close()
        del child.pipes[pipe]

    def _reap(self) -> None:
        """Reap all processes that have ended, and handle the death of each child.

        Other processes are orphans of the run, which became children of this subreaper: they are
        only reaped.
        """
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                child = self.children.pop(pid, None)
                if child:
                    child.take_status(status, usage)
                    self._finish(child)

    def _finish(self, child: Child) -> None:
        """Read the last messages and output of a dead child, close its pipes, report its death."""
        if child.line is not None:
            for pipe in list(child.pipes):
                # A pipe holds only a few reads; a process that the child left behind may print on.
                for _ in range(16):
                    if not self._read(child, pipe):
                        break
            self._receive(child)
            self._hang_up(child)
        for pipe in list(child.pipes):
            self._close_pipe(child, pipe)
        self._on_death(child)

    def _check_deadlines(self) -> None:
        """Kill each child whose deadline has passed; the timeout is then the reason of its end."""
        now = time.monotonic()
        for child in list(self.children.values()):
            if child.deadline and now > child.deadline:
                child.kill(f"timed out after {child.deadline - child.started:.3g} s")

    def _flush_outputs(self) -> None:
        now = time.monotonic()
        if now - self._flushed > 1:
            self._flushed = now
            for capture in self._outputs.values():
                capture.flush()
