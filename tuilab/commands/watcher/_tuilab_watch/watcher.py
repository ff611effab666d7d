"""Watch one process: hook into its torch, and put what is seen and what is logged into marks."""

from __future__ import annotations

import atexit
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

from . import backward, compiling, data, forward, gpu, layout
from .aside import Unscaled, aside_of
from .ending import call_at_end
from .hello import Hello, watch_autocast
from .loggers import Loggers
from .ring import Ring
from .stepping import Stepping

_MOST_NAMES = 60_000
_DEEPEST = 3  # levels of dicts within dicts


class Watcher:
    """The watcher of one process. A forked child has files of its own once it makes a mark.

    `put` is the function of the ring, except for the first mark. Before the first mark, the watcher
    puts another hello, because the script may have given torch its rank by then. It also hooks into
    what the script has loaded by then.
    """

    def __init__(self, folder: str) -> None:
        self.torch: Any = None
        self.is_all = False
        self.steps = 0
        self.gpu: Any = None  # set once a tensor is on a GPU
        # Time spent on watching that is in no mark yet. If threads run in parallel, the last one
        # sets it.
        self.spent_ns = 0
        self.is_compiling: Callable[[], bool] = compiling.never
        self.aside: Any = nullcontext
        self.unscaled = Unscaled()
        self.put: Callable[[int, int, float, int], None] = self._put_first
        self._folder = folder
        self._hello = Hello()
        self._ring: Any = None
        self._names: dict[str, int] = {}
        self._loggers = Loggers(self)
        self._stepping: Any = None
        self._has_failed = False
        self._ended_after = -1  # steps at the last SCRIPT_ENDED
        self.threads: set[int] = set()  # ids of the threads in which optimizers step
        os.register_at_fork(after_in_child=self._forget)

    def begin(self, torch: Any, *, is_all: bool) -> None:
        """Put the first hello, and hook into torch."""
        if self.torch is not None:
            return
        self.torch, self.is_all = torch, is_all
        self.is_compiling = compiling.is_compiling_of(torch)
        self.aside = aside_of(torch)
        self._tell_hello()
        self._stepping = Stepping(self)
        self._stepping.begin()
        atexit.register(self.end)
        compiling.keep_out(torch)
        if is_all:
            backward.watch(self)
            data.watch(self)
            watch_autocast(torch, self.sees_dtype)
            print_lines_at_once()

    def look(self) -> None:
        """Add hooks to what the script has loaded by now."""
        call_at_end(self.end)
        if self.is_all:
            self._stepping.watch_scalers()
            data.watch(self)
            forward.watch(self)
            self._loggers.look()

    def end(self) -> None:
        """Mark that the script has ended.

        Do nothing if this process made no mark, or no step since it last marked the end.
        """
        if self.put == self._put_first or self._ended_after == self.steps:
            return
        self._ended_after = self.steps
        now_ns = time.monotonic_ns()
        try:
            self.mark(layout.SCRIPT_ENDED, now_ns, now_ns)
        except Exception as problem:
            self.fail(problem)

    def log(self, step: float | None, values: Any, source: str = "tuilab.log") -> None:
        """Mark the values that a logger was given for a step.

        Without a step, use the number of steps that optimizers have made.
        """
        step = self.steps if step is None or not math.isfinite(step) else step
        is_whole = isinstance(step, int) and -(2**63) <= step < 2**63
        step_bits = int(step) if is_whole else layout.bits_of(float(step))
        for name, value in flat(values):
            tell = partial(
                self._mark_logged,
                time.monotonic_ns(),
                step_bits,
                0 if is_whole else 1,
                f"{name}\n{source}",
            )
            with self.aside():
                number = plain_number(value)
            if number is not None:
                tell(number)
            elif getattr(value, "is_cuda", False) and (gpu_index := self.gpu_of(value)) is not None:
                gpu_index.copy(value, tell)

    def gpu_of(self, tensor: Any) -> Any:
        """Return the marks of the GPU that a tensor is on, or None if that GPU is not watched.

        Only the first GPU that was seen is watched.
        """
        if self.gpu is None:
            self.gpu = gpu.GpuMarks(self, tensor.device.index)
        return self.gpu if tensor.device.index == self.gpu.device else None

    def name(self, words: str) -> int:
        """Return the id of a name; the first call puts the name into a mark."""
        if words not in self._names and len(self._names) < _MOST_NAMES:
            self._names[words] = len(self._names) + 1
            self._the_ring().text(layout.NAME, words, self._names[words])
        return self._names.get(words, 0)

    def sees_dtype(self, dtype: Any) -> None:
        """Report the coarsest dtype that is computed in, if that is new."""
        if self._hello.sees(dtype):
            self._tell_hello()

    def sees_loader(self, loader: Any) -> None:
        """Report how a DataLoader loads, if that is new."""
        if self._hello.sees_loader(loader):
            self._tell_hello()

    def fail(self, problem: BaseException) -> None:
        """Report the first problem of the watcher to tuilab: the script did not cause it."""
        if not self._has_failed:
            self._has_failed = True
            sys.modules[__package__].tell_trouble(self._folder, problem)

    def mark(
        self,
        kind: int,
        began: int,
        ended: int,
        value: float = 0.0,
        number: int = 0,
        name: int = 0,
        flags: int = 0,
    ) -> None:
        """Put a mark; layout.py describes its fields."""
        self.put(began, ended, value, layout.last_of(kind, name, flags) + number)

    def _put_first(self, *given: Any) -> None:
        self.put = self._the_ring().put
        try:
            self._tell_hello()
            self.look()
        except Exception as problem:
            self.fail(problem)
        self.put(*given)

    def _mark_logged(
        self, began: int, step_bits: int, is_odd: int, words: str, value: float
    ) -> None:
        self.mark(layout.LOGGED, began, step_bits, value, is_odd, self.name(words))

    def _the_ring(self) -> Ring:
        ring: Ring = self._ring or Ring(self._folder, self.fail)
        self._ring = ring
        return ring

    def _tell_hello(self) -> None:
        self._the_ring().text(
            layout.HELLO, self._hello.words(self.torch, "all" if self.is_all else "steps")
        )

    def _forget(self) -> None:
        """Reset the state in a forked child, which puts its own hello, and its names again."""
        self._ring, self._names, self.gpu, self.put = None, {}, None, self._put_first
        self._has_failed = False
        self._hello.loaders = []
        if self._stepping is not None:
            self._stepping.forget()


def flat(values: Any, prefix: str = "", deep: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the names and the values that a logger was given.

    If a value is a dict, the names within it are joined to its name by dots.
    """
    for name, value in list(values.items()):
        if isinstance(value, dict) and deep < _DEEPEST:
            yield from flat(value, f"{prefix}{name}.", deep + 1)
        else:
            yield f"{prefix}{name}", value


def plain_number(value: Any) -> float | None:
    """Return a logged value as a number; None if it is no number, or is on a GPU.

    The watcher never waits for a GPU.
    """
    try:
        if hasattr(value, "device"):
            # A tensor of another class may ask other ranks for its value.
            is_plain = type(value).__name__ in (
                "Tensor",
                "Parameter",
                "ndarray",
            )
            if not is_plain or getattr(value.device, "type", value.device) != "cpu":
                return None
        return float(value.item() if hasattr(value, "item") else value)
    except Exception:
        return None


def print_lines_at_once() -> None:
    """Have each printed line appear at once, as in a terminal, although stdout is a pipe."""
    stdout: Any = sys.stdout  # or the object that the script has put in its place
    try:
        if not stdout.line_buffering:
            stdout.reconfigure(line_buffering=True)
    except Exception:
        return
