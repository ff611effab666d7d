"""Passes signals that reach the front of `tuilab exec` on to the command, as if that had been started in its place.

A scheduler, `timeout` or a CI job that ends a step knows only the front: without this the command would go on for ever.
SIGHUP is not passed on: a run outlives its terminal.
"""

import signal
import sys
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from tuilab import first_process
from tuilab.engine import processes
from tuilab.record import presence
from tuilab.record.summary import RunSummary

_PASSED_ON = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_PATIENCE_S = 5.0  # with a command that does not start
_PARENT = 1  # the field of a process's parent, behind its name in /proc/PID/stat


class PassedSignals:
    """Within, signals are kept until the command runs, and passed on to it once each."""

    def __init__(self) -> None:
        self._waiting: dict[int, float] = {}  # signals, and when each came
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "PassedSignals":
        for number in _PASSED_ON:
            is_ignored = (
                signal.getsignal(number) is signal.SIG_IGN
            )  # as after `trap '' TERM`: the command ignores it as well
            is_stop = (
                number == signal.SIGTERM and first_process.is_container_main()
            )  # then it stops the run in order
            if not (is_ignored or is_stop):
                self._before[number] = signal.signal(number, self._keep)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_on(self, summary: RunSummary) -> None:
        """Send the command what has come for it, if it runs by now."""
        if not self._waiting:
            return
        try:
            command = _command_of(summary)
            while command and self._waiting:
                processes.send(*command, self._waiting.popitem()[0])
        except OSError as problem:  # /proc does not show the processes
            self._waiting.clear()
            why = problem.strerror or str(problem)
            print(
                f"tuilab: a signal could not be passed on to the command: {why}; send it to the command itself",
                file=sys.stderr,
            )

    def _keep(self, number: int, frame: FrameType | None) -> None:
        """Keep a signal; if it comes again and there is still no command to pass it on to, it ends this process."""
        came = self._waiting.setdefault(number, time.monotonic())
        if time.monotonic() - came > _PATIENCE_S:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def _command_of(summary: RunSummary) -> tuple[int, int] | None:
    """Return the pid and start time of the command; None if it does not run, or has not been executed yet."""
    worker = summary.workers.get("worker-0")
    if worker is None or worker.started is None or worker.exited is not None:
        return None
    pid, start = worker.started.pid, worker.started.start
    if presence.start_time(pid) != start:
        return None
    for child in presence.descendants(pid):
        fields = presence.stat_fields(child)
        if fields is None or int(fields[_PARENT]) != pid:
            continue
        child_start = presence.start_time(child)
        if child_start is not None and _cmdline(child) != _cmdline(
            pid
        ):  # before exec it is a copy of its parent
            return child, child_start
    return None


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
