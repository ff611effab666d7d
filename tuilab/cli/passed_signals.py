"""Pass signals on from `tuilab exec` to its command, as if the command had been started directly.

A scheduler, `timeout` or a CI job that ends a step knows only the process of tuilab: without this
the command would run on for ever. SIGHUP is not passed on, because a run outlives its terminal.
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
_PARENT = 1  # index of the parent's pid among the fields behind the name in /proc/PID/stat


class PassedSignals:
    """Within, signals are kept until the command runs, and then passed on to it once each.

    Call `pass_on` at each poll of the run.
    """

    def __init__(self) -> None:
        self._arrival_s: dict[int, float] = {}  # by signal that waits for the command
        self._old_handlers: dict[int, Any] = {}

    def __enter__(self) -> "PassedSignals":
        """Keep the signals from now on, except if one is ignored or stops the run itself."""
        for number in _PASSED_ON:
            # After `trap '' TERM` a signal is ignored, and the command ignores it as well.
            is_ignored = signal.getsignal(number) is signal.SIG_IGN
            # As the first process of a container, tuilab stops the run cleanly on SIGTERM.
            is_stop = number == signal.SIGTERM and first_process.is_container_main()
            if not (is_ignored or is_stop):
                self._old_handlers[number] = signal.signal(number, self._keep)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)

    def pass_on(self, summary: RunSummary) -> None:
        """Send the kept signals to the command, if it runs by now.

        If that fails, they are dropped, and stderr gets the reason.
        """
        if not self._arrival_s:
            return
        try:
            command = _find_command(summary)
            while command and self._arrival_s:
                number, _ = self._arrival_s.popitem()
                processes.send(*command, number)
        except OSError as problem:  # /proc does not show the processes
            self._arrival_s.clear()
            reason = problem.strerror or str(problem)
            print(
                f"tuilab: a signal could not be passed on to the command: {reason}; "
                "send it to the command itself",
                file=sys.stderr,
            )

    def _keep(self, number: int, frame: FrameType | None) -> None:
        """Keep a signal for the command.

        If it comes again later, and still no command runs that could get it, it ends this process.
        """
        first_s = self._arrival_s.setdefault(number, time.monotonic())
        if time.monotonic() - first_s > _PATIENCE_S:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def _find_command(summary: RunSummary) -> tuple[int, int] | None:
    """Return the pid and start time of the command; None if it is not running (yet).

    Raises OSError if /proc does not show the processes.
    """
    worker = summary.workers.get("worker-0")
    if worker is None or worker.started is None or worker.exited is not None:
        return None
    worker_pid = worker.started.pid
    if presence.start_time(worker_pid) != worker.started.start:
        return None
    for child in presence.descendants(worker_pid):
        fields = presence.stat_fields(child)
        if fields is None or int(fields[_PARENT]) != worker_pid:
            continue
        child_start = presence.start_time(child)
        # Before exec, the child is a copy of the worker and has its command line.
        if child_start is not None and _read_cmdline(child) != _read_cmdline(worker_pid):
            return child, child_start
    return None


def _read_cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
