"""Read the CPU time of the thread that steps, and mark it with the steps of optimizers.

The clocks of a thread and of its process cost a system call each. So a step that is shorter than a
millisecond has no reading of its own: the next reading covers several steps.
"""

from __future__ import annotations

import _thread
import contextlib
import math
import os
import time
from typing import Any

from . import layout

try:
    import fcntl
    import resource
except ImportError:  # not on Unix
    fcntl = resource = None  # type: ignore[assignment]

_EVERY_NS = 1_000_000  # between two readings of one optimizer's steps
_SCHEDSTAT = "/proc/thread-self/schedstat"
# The script uses low numbers, also when it closes descriptors and opens others.
_HIGH_FD = 900
_ACCELERATORS = ("cuda", "xpu")  # of torch: threads on the CPU may spin while they wait for one


class CoreTimeReader:
    """The readings of one process.

    They end for good if they could be wrong: if another thread steps, or if a GPU is used.
    """

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._schedstat = -1
        # When the next step of an optimizer is read, by the last word of the marks of its steps.
        # The hook after a step looks here before it calls `mark`, because that is faster.
        self.due: dict[int, float] = {}
        self._begin()

    def _begin(self) -> None:
        self._is_over = not hasattr(resource, "RUSAGE_THREAD")
        self._thread = 0
        self._waits = -1  # voluntary switches of the thread at the last reading

    def forget(self) -> None:
        """Begin again in a forked child, which steps in another thread."""
        self.end()
        self.due.clear()
        self._begin()

    def end(self) -> None:
        """Stop reading."""
        self._is_over = True
        if self._schedstat >= 0:
            with contextlib.suppress(OSError):
                os.close(self._schedstat)
            self._schedstat = -1

    def check_accelerators(self) -> None:
        """End the readings if the process uses an accelerator by now."""
        torch = self._watcher.torch
        for name in _ACCELERATORS:
            module = getattr(torch, name, None)
            is_initialized = getattr(module, "is_initialized", None)
            if is_initialized is not None and is_initialized():
                self.end()

    def check_parameters(self, parameters: Any) -> None:
        """End the readings if an optimizer has a parameter that is not in the memory of the CPU."""
        for parameter in parameters:
            if not parameter.is_cpu:
                self.end()
                return

    def mark(self, now_ns: int, step_word: int) -> None:
        """Mark a reading before the mark of a step; `step_word` is the last word of that mark."""
        if self._is_over:
            self.due[step_word] = math.inf
        if now_ns < self.due.get(step_word, 0):
            return
        try:
            self._read(now_ns, step_word)
        except Exception as problem:
            self.end()
            self._watcher.fail(problem)

    def _read(self, now_ns: int, step_word: int) -> None:
        """Mark what this thread and the process have used; end the readings if they mean nothing.

        They mean nothing if several threads make steps, or if the kernel counts neither waits nor
        delays.
        """
        thread_ns = time.thread_time_ns()
        process_ns = time.process_time_ns()
        waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        thread = _thread.get_ident()
        if not self._thread:
            self._thread = thread
        if thread != self._thread:
            self.end()
            return
        delay_ns = -1.0
        if waits != self._waits:
            self._waits = waits
            delay_ns = self._delay_ns()
            # This kernel counts neither waits nor delays, so the thread may well have waited.
            if not waits and delay_ns < 0:
                self.end()
                return
        last_word = layout.used_of(step_word) + (waits & layout.MOST)
        self._watcher.put(thread_ns, process_ns, delay_ns, last_word)
        self.due[step_word] = now_ns + _EVERY_NS

    def _delay_ns(self) -> float:
        """Return for how long the thread wanted a core and had none, since it began.

        Return -1 if the kernel does not count that time. Reading a file of /proc takes longer than
        reading a clock. So the file is read only if the thread gave its core away by itself. If the
        thread did not, all of the time off its core is such a delay.
        """
        try:
            if self._schedstat < 0:
                fd = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
                self._schedstat = _move_to_high_number(fd)
            ran_ns, delay_ns, _ = os.pread(self._schedstat, 96, 0).split()
            if not int(ran_ns):
                return -1.0
            return float(int(delay_ns))
        except (OSError, ValueError):
            return -1.0


def _move_to_high_number(fd: int) -> int:
    """Return a descriptor of the same file with a high number, or `fd` if none is free."""
    try:
        high: int = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except OSError:
        return fd
    os.close(fd)
    return high
