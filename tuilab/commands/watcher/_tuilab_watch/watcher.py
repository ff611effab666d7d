"""Watch one process: hook into its torch, and put its steps and logged values into marks."""

from __future__ import annotations

import atexit
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from . import backward, collecting, compiling, data, forward, gpu, layout, out_of_memory
from .aside import Unscaled, aside_of
from .compiled_graphs import GraphReports
from .ending import call_at_end
from .exchange import ExchangeReports
from .hello import Hello, watch_autocast
from .importlib_bootstrap import hide_frames
from .loggers import Loggers
from .ring import Ring
from .stepping import Stepping

_MOST_NAMES = 60_000
_DEEPEST = 3  # levels of dicts within dicts
_PLAIN_CLASSES = ("Tensor", "Parameter", "ndarray")
# If any of these is set, `tuilab tune` treats the process, counts its steps, or wants facts.
TREATING = ("TUILAB_TREAT", "TUILAB_TREAT_STEPS", "TUILAB_TREAT_FACTS")


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
        self.exchange: Any = None  # set once the script makes a DistributedDataParallel
        # Time spent on watching that is in no mark yet. If threads run in parallel, the value of
        # the last thread stays.
        self.spent_ns = 0
        self.is_compiling: Callable[[], bool] = compiling.never
        self.aside: Any = nullcontext
        self.treatments: Any = None  # of `tuilab tune`, if it runs this process
        self.unscaled = Unscaled()
        self.put: Callable[[int, int, float, int], None] = self._put_first
        self._folder = folder
        self._hello = Hello()
        self._ring: Any = None
        self._names: dict[str, int] = {}
        self._loggers = Loggers(self)
        self._stepping: Any = None
        self._graph_reports = GraphReports(self)
        self._exchange_reports = ExchangeReports(self)
        self._has_failed = False
        self._ended_after = -1  # steps at the last SCRIPT_ENDED
        self.threads: set[int] = set()  # ids of the threads in which optimizers step
        os.register_at_fork(after_in_child=self._forget)

    def begin(self, torch: Any, *, is_all: bool) -> None:
        """Put the first hello, and hook into torch."""
        if self.torch is not None:
            return
        self.torch = torch
        self.is_all = is_all
        self.is_compiling = compiling.is_compiling_of(torch)
        self.aside = aside_of(torch)
        self._put_hello()
        self._begin_treatments()
        self._stepping = Stepping(self)
        self._stepping.begin()
        atexit.register(self.end)
        compiling.keep_out(torch)
        if is_all:
            backward.watch(self)
            data.watch(self)
            watch_autocast(torch, self.report_dtype)
            out_of_memory.watch(torch, self._folder)
            collecting.watch(self)
            self._exchange_reports.hook()
            print_lines_at_once()

    def _begin_treatments(self) -> None:
        """Let `tuilab tune` treat this process. The watcher then times the treated training."""
        if not any(os.environ.get(name) for name in TREATING):
            return
        try:
            self.treatments = import_module("_tuilab_treat.process").begin(self.torch, self)
            hide_frames()
        except Exception as problem:
            self.fail(problem)

    def hook_loaded(self) -> None:
        """Add hooks to the libraries that the script has loaded by now."""
        call_at_end(self.end)
        if self.is_all:
            self._stepping.watch_scalers()
            data.watch(self)
            forward.watch(self)
            self._loggers.wrap_loaded()
            self._report_compiled()
            self._graph_reports.hook()

    @property
    def has_marks(self) -> bool:
        """Whether this process has made a mark."""
        return self.put != self._put_first

    def end(self) -> None:
        """Mark that the script has ended.

        Do nothing if this process made no mark, or no step since it last marked the end.
        """
        if not self.has_marks or self._ended_after == self.steps:
            return
        self._ended_after = self.steps
        now_ns = time.monotonic_ns()
        try:
            if self.treatments is not None:
                self.treatments.finish()
            self._stepping.counted_steps.finish()
            if self.is_all:
                self._graph_reports.report()
                self._graph_reports.report_breaks()
            self.mark(layout.SCRIPT_ENDED, now_ns, now_ns)
        except Exception as problem:
            self.fail(problem)

    def log(self, step: float | None, values: Any, source: str = "tuilab.log") -> None:
        """Mark the values that a logger was given for a step.

        Without a step, use the number of steps that optimizers have made.
        """
        if step is None or not math.isfinite(step):
            step = self.steps
        if isinstance(step, int) and -(2**63) <= step < 2**63:
            is_float = 0
            step_bits = int(step)
        else:
            is_float = 1
            step_bits = layout.bits_of(float(step))
        for name, value in flatten(values):
            now_ns = time.monotonic_ns()
            full_name = f"{name}\n{source}"
            mark_value = partial(self._mark_logged, now_ns, step_bits, is_float, full_name)
            with self.aside():
                number = plain_number(value)
            if number is not None:
                mark_value(number)
            elif getattr(value, "is_cuda", False):
                gpu_marks = self.gpu_of(value)
                if gpu_marks is not None:
                    gpu_marks.copy(value, mark_value)

    def gpu_of(self, tensor: Any) -> Any:
        """Return the marks of the GPU that a tensor is on, or None if that GPU is not watched.

        Only the first GPU that was seen is watched.
        """
        if self.gpu is None:
            self.gpu = gpu.GpuMarks(self, tensor.device.index)
        if tensor.device.index != self.gpu.device:
            return None
        return self.gpu

    def name(self, words: str) -> int:
        """Return the id of a name; the first call puts the name into a mark."""
        if words not in self._names and len(self._names) < _MOST_NAMES:
            number = len(self._names) + 1
            self._names[words] = number
            self._get_ring().text(layout.NAME, words, number)
        return self._names.get(words, 0)

    def report_dtype(self, dtype: Any) -> None:
        """Report a dtype that is computed in, if it is the coarsest one so far."""
        if self._hello.add_dtype(dtype):
            self._put_hello()

    def report_loader(self, loader: Any) -> None:
        """Report how a DataLoader loads, if that is new."""
        if self._hello.add_loader(loader):
            self._put_hello()

    def report_optimizer(self, optimizer: Any, parameters: list[Any]) -> None:
        """Report how an optimizer steps, if that is new."""
        if self._hello.add_optimizer(optimizer, parameters):
            self._put_hello()

    def report_treatment(self, words: str) -> None:
        """Report what a treatment did, or why it did nothing."""
        self.text(layout.TREATED, words)

    def report_script_facts(self, words: str) -> None:
        """Report facts about the training to a tuning."""
        self.text(layout.SCRIPT_FACTS, words)

    def fail(self, problem: BaseException) -> None:
        """Report the first problem of the watcher to tuilab: the script did not cause it."""
        if not self._has_failed:
            self._has_failed = True
            sys.modules[__package__].write_trouble(self._folder, problem)

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

    def text(self, kind: int, words: str) -> None:
        """Put a text with its mark."""
        self._get_ring().text(kind, words)

    def _put_first(self, *mark: Any) -> None:
        """Put the first mark of this process, after another hello."""
        self.put = self._get_ring().put
        try:
            self._put_hello()
            self.hook_loaded()
        except Exception as problem:
            self.fail(problem)
        self.put(*mark)

    def _mark_logged(
        self, began: int, step_bits: int, is_float: int, full_name: str, value: float
    ) -> None:
        """Mark a logged value; `step_bits` are those of a float if `is_float` is 1."""
        self.mark(layout.LOGGED, began, step_bits, value, is_float, self.name(full_name))

    def _get_ring(self) -> Ring:
        """Return the ring of this process; the first call creates it."""
        ring: Ring = self._ring or Ring(self._folder, self.fail)
        self._ring = ring
        return ring

    def _report_compiled(self) -> None:
        """Report that torch.compile has compiled something, if that is new."""
        if compiling.has_compiled() and self._hello.add_compiled():
            self._put_hello()

    def _put_hello(self) -> None:
        """Put the facts that are known about this process."""
        ring = self._get_ring()
        mode = "all" if self.is_all else "steps"
        ring.text(layout.HELLO, self._hello.to_json(self.torch, mode))

    def _forget(self) -> None:
        """Reset the state in a forked child, which puts its own hello, and its names again."""
        self._ring = None
        self._names = {}
        self.gpu = None
        self.put = self._put_first
        self._has_failed = False
        self._graph_reports.forget()
        self._exchange_reports.forget()
        self._hello.loaders = []
        self._hello.optimizers = []
        if self._stepping is not None:
            self._stepping.forget()


def flatten(values: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the names and the values that a logger was given.

    If a value is a dict, the names within it are joined to its name by dots.
    """
    for name, value in list(values.items()):
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from flatten(value, f"{prefix}{name}.", depth + 1)
        else:
            yield f"{prefix}{name}", value


def plain_number(value: Any) -> float | None:
    """Return a logged value as a number; None if the value is no number, or is on a GPU.

    The watcher never waits for a GPU.
    """
    try:
        if hasattr(value, "device"):
            # A tensor of another class may ask other ranks for its value.
            if type(value).__name__ not in _PLAIN_CLASSES:
                return None
            # The device of a tensor has a type, the device of an array is a string.
            device_type = getattr(value.device, "type", value.device)
            if device_type != "cpu":
                return None
        if hasattr(value, "item"):
            return float(value.item())
        return float(value)
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
