"""Hooks into the torch of this process: steps of optimizers, backwards with their roots, waits for data, and what is logged."""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

from . import layout, loggers
from .ring import Ring

_now = time.monotonic_ns


class Watcher:
    """What is seen of one process; a child that is forked has marks of its own, once it makes any."""

    def __init__(self, folder: str, torch: Any, *, is_all: bool) -> None:
        self._folder = folder
        self._torch = torch
        self._is_all = is_all
        self._ring: Any = None
        self._names: dict[str, int] = {}
        self._optimizers: dict[int, tuple[Any, int]] = {}  # by id: a weak reference, and its number
        self._optimizer_count = 0
        self._depth = 0  # of optimizers' steps within one another
        self._began = 0
        self._has_just_ended = False
        self._backward_depth = 0
        self._has_stepped = False
        self._steps = 0
        self._gpu: Any = None
        os.register_at_fork(after_in_child=self._forget)

    def begin(self) -> None:
        """Say hello, and hook in."""
        self._mark_hello()
        optimizer = importlib.import_module("torch.optim.optimizer")
        optimizer.register_optimizer_step_pre_hook(self._step_begins)
        optimizer.register_optimizer_step_post_hook(self._step_ended)
        self._watch_scaler()
        if self._is_all:
            self._watch_backward()
            self._watch_data()
            print_lines_at_once()

    def log(self, step: float, values: dict[str, Any], source: str = "tuilab.log") -> None:
        """Mark values of a step, as a logger was given them."""
        is_whole = isinstance(step, int) and -(2**63) <= step < 2**63
        at = int(step) if is_whole else layout.bits_of(float(step))
        for name, value in values.items():
            number = plain_number(value)
            if number is not None:
                self.marks.mark(layout.LOGGED, _now(), at, number, 0 if is_whole else 1, self._name(f"{name}\n{source}"))

    @property
    def marks(self) -> Ring:
        ring: Ring = self._ring or Ring(self._folder)
        self._ring = ring
        return ring

    def _forget(self) -> None:
        """A forked child tells of itself, and again what its names mean."""
        self._ring, self._names, self._optimizers, self._optimizer_count = None, {}, {}, 0
        self._depth = self._backward_depth = 0

    def _mark_hello(self) -> None:
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[19])
        hello = {
            "pid": os.getpid(),
            "start": start,
            "torch": str(self._torch.__version__),
            "python": sys.version.split()[0],
            "executable": sys.executable or "",
            "rank": os.environ.get("RANK", ""),
            "local_rank": os.environ.get("LOCAL_RANK", ""),
            "world": os.environ.get("WORLD_SIZE", ""),
            "threads": self._torch.get_num_threads(),
            "mode": "all" if self._is_all else "steps",
        }
        self.marks.text(layout.HELLO, json.dumps(hello))

    def _name(self, words: str) -> int:
        """Return the id of a name, told once."""
        if words not in self._names and len(self._names) < 60_000:
            self._names[words] = len(self._names) + 1
            self.marks.text(layout.NAME, words, self._names[words])
        return self._names.get(words, 0)

    # ---- steps

    def _number(self, optimizer: Any) -> int:
        known = self._optimizers.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            self._optimizer_count = min(self._optimizer_count + 1, 60_000)
            words = f"{type(optimizer).__name__}\noptimizer {self._optimizer_count}"
            known = self._optimizers[id(optimizer)] = weakref.ref(optimizer), self._name(words)
        return known[1]

    def _step_begins(self, optimizer: Any, *given: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        if self._depth and self._has_just_ended:
            self._depth = 0  # the step before raised, and never ended
        self._has_just_ended = False
        self._depth += 1
        if self._depth == 1:
            if not self._has_stepped:
                self._has_stepped = True
                self._at_first_step()
            self._began = _now()

    def _step_ended(self, optimizer: Any, *given: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        self._has_just_ended = True
        self._depth -= 1
        if self._depth == 0:
            ended = _now()
            self._steps += 1
            is_skipped = is_inf(getattr(optimizer, "found_inf", None))
            kind = layout.SKIPPED if is_skipped else layout.STEPPED
            self.marks.mark(kind, self._began, ended, 0.0, 0, self._number(optimizer))

    def _at_first_step(self) -> None:
        """Hook into what the script has loaded by now."""
        if self._is_all:
            self._watch_data()
            loggers.watch(self)

    def _watch_scaler(self) -> None:
        """Tell steps that GradScaler leaves out, and what it scales: a root is told unscaled."""
        scaler = getattr(sys.modules.get("torch.amp.grad_scaler"), "GradScaler", None)
        step, scale = getattr(scaler, "_maybe_opt_step", None), getattr(scaler, "scale", None)
        if scaler is None or step is None or scale is None:
            return

        @functools.wraps(step)
        def watched_step(this: Any, optimizer: Any, *given: Any, **more: Any) -> Any:
            began, before = _now(), self._steps
            result = step(this, optimizer, *given, **more)
            if self._steps == before:
                self.marks.mark(layout.SKIPPED, began, _now(), 0.0, 0, self._number(optimizer))
            return result

        @functools.wraps(scale)
        def watched_scale(this: Any, outputs: Any, *given: Any, **more: Any) -> Any:
            result = scale(this, outputs, *given, **more)
            if isinstance(outputs, self._torch.Tensor) and result is not outputs:
                result._tuilab_unscaled = outputs.detach()
            return result

        scaler._maybe_opt_step, scaler.scale = watched_step, watched_scale

    # ---- backwards

    def _watch_backward(self) -> None:
        autograd = self._torch.autograd
        backward = autograd.backward
        is_compiling = self._torch.compiler.is_compiling

        @functools.wraps(backward)
        def watched_backward(tensors: Any, *given: Any, **more: Any) -> Any:
            if self._backward_depth or is_compiling():
                return backward(tensors, *given, **more)
            self._backward_depth = 1
            began = _now()
            try:
                return backward(tensors, *given, **more)
            finally:
                self._backward_depth = 0
                ended = _now()
                self._mark_backward(tensors, began, ended)

        autograd.backward = watched_backward

    def _mark_backward(self, tensors: Any, began: int, ended: int) -> None:
        value = self._root(tensors, ended)
        if value is None:
            self.marks.mark(layout.WENT_BACK, began, ended)
        else:
            self.marks.mark(layout.WENT_BACK, began, ended, value, 0, 0, layout.HAS_VALUE)

    def _root(self, tensors: Any, ended: int) -> float | None:
        """Return the value that a backward began from, if it is one number that lies on the CPU."""
        try:
            root = tensors if isinstance(tensors, self._torch.Tensor) else tensors[0] if len(tensors) == 1 else None
            root = getattr(root, "_tuilab_unscaled", root)
            if root is None or root.numel() != 1:
                return None
            if root.device.type != "cpu":
                return None
            return float(root.detach().item())
        except Exception:  # a tensor of a class of its own may do anything
            return None

    # ---- data

    def _watch_data(self) -> None:
        """Time what a loop waits for in a DataLoader: its next batch, and the start of its workers."""
        module = sys.modules.get("torch.utils.data.dataloader")
        one, many = getattr(module, "_BaseDataLoaderIter", None), getattr(module, "DataLoader", None)
        if one is None or many is None or hasattr(one.__next__, "_is_watched"):
            return
        one.__next__ = self._timed(one.__next__)
        many.__iter__ = self._timed(many.__iter__)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(this: Any) -> Any:
            began = _now()
            try:
                return function(this)
            finally:
                self.marks.mark(layout.WAITED, began, _now())

        timed._is_watched = True  # type: ignore[attr-defined]
        return timed


def is_inf(found: Any) -> bool:
    """Say whether an optimizer was told to leave its step out, where that is known without waiting for a GPU."""
    return found is not None and found.device.type == "cpu" and bool(found.item())


def plain_number(value: Any) -> float | None:
    """Return what is logged as a number; None for words, and for what lies on a GPU, which is never waited for."""
    try:
        if hasattr(value, "device") and getattr(value.device, "type", "cpu") != "cpu":
            return None
        return float(value.item() if hasattr(value, "item") else value)
    except Exception:
        return None


def print_lines_at_once() -> None:
    """Have prints appear as in a terminal, although stdout is a pipe."""
    stdout: Any = sys.stdout  # or whatever the script has put there
    try:
        if not stdout.line_buffering:
            stdout.reconfigure(line_buffering=True)
    except Exception:
        return
