"""Watches the steps of optimizers, and those that GradScaler leaves out."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any

from . import layout
from .core_time import CoreTimeReader

_now = time.monotonic_ns
_LOOKS = frozenset(
    (1, 2, 10, 100, 1000)
)  # after so many steps one looks again for what was loaded meanwhile
_SCALERS = ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler")  # from 2.3 on, and before
_NOBODY = -1
_MOST_NS = layout.MOST  # however long this was suspended


class Stepping:
    """The optimizers of a process: each has a number, which the next of its class takes over when it is gone."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._going: dict[
            int, tuple[int, int, Any, int]
        ] = {}  # steps, by the id of the optimizer; see _hooks
        self._numbers: dict[int, int] = {}  # by the id of the optimizer
        self._lasts: dict[int, int] = {}  # by that as well: the last word of the mark of its step
        self._alive: dict[int, Any] = {}  # and: what takes it out of these
        self._free: dict[str, list[int]] = {}  # numbers, by class
        self._count = 0
        self._core_time = CoreTimeReader(watcher)
        self._within = getattr(watcher.torch._C, "_current_graph_task_id", lambda: _NOBODY)

    def begin(self) -> None:
        """Hook in, once for all optimizers."""
        begins, ended = self._hooks()
        module = importlib.import_module("torch.optim.optimizer")
        module.register_optimizer_step_pre_hook(begins)
        module.register_optimizer_step_post_hook(ended)
        self._watch_scaler()

    def forget(self) -> None:
        """A forked child tells anew what its numbers mean."""
        self._count = 0
        self._core_time.forget()
        for of_it in (self._going, self._numbers, self._lasts, self._alive, self._free):
            of_it.clear()

    def number(self, optimizer: Any) -> int:
        """Return the number of an optimizer, told once."""
        number = self._numbers.get(id(optimizer))
        return self._number_anew(optimizer) if number is None else number

    def _hooks(self) -> tuple[Any, Any]:
        """Return what runs before and after a step; while torch traces them they are nothing, and cost a graph nothing.

        Of a step that goes on is known when our hook was done, what that took, an event on a GPU, and within how many steps of
        its own it is; of one that raised that stays until it steps again.
        """
        watcher, is_compiling, going, lasts = (
            self._watcher,
            self._watcher.is_compiling,
            self._going,
            self._lasts,
        )
        numbers = self._numbers
        mark_core_time = self._core_time.mark

        def begins(optimizer: Any, args: Any, kwargs: Any) -> None:
            if is_compiling():
                return
            key = id(optimizer)
            if going and is_within_step(sys._getframe(1)):
                if key in going:  # it calls super().step()
                    began, spent_ns, event, depth = going[key]
                    going[key] = began, spent_ns, event, depth + 1
                return
            called = began = _now()
            event = None
            if watcher.gpu is not None:
                event, began = watcher.gpu.event(), _now()
            if key not in numbers:
                self._tell_begin(optimizer, began)
                began = _now()
            going[key] = began, began - called, event, 1

        def ended(optimizer: Any, args: Any, kwargs: Any) -> None:
            if is_compiling():
                return
            now_ns, key = _now(), id(optimizer)
            found = going.pop(key, None)
            if found is None:
                return  # another one steps it
            began, spent_ns, event, depth = found
            if depth > 1:
                going[key] = began, spent_ns, event, depth - 1
                return
            watcher.steps = steps = watcher.steps + 1
            spent_ns += watcher.spent_ns
            if spent_ns > _MOST_NS:
                spent_ns = _MOST_NS
            if watcher.gpu is None and key in lasts:
                mark_core_time(now_ns, lasts[key])
            if (
                watcher.gpu is None
                and key in lasts
                and steps not in _LOOKS
                and "found_inf" not in optimizer.__dict__
            ):
                put = watcher.put
                put(began, now_ns, 0.0, lasts[key] + spent_ns)
            else:
                self._tell(optimizer, began, now_ns, event, spent_ns)
            watcher.spent_ns = _now() - now_ns

        return begins, ended

    def _tell_begin(self, optimizer: Any, began: int) -> None:
        """Mark that the first step of an optimizer begins: a step of LBFGS may take minutes and many backwards."""
        try:
            with self._watcher.aside():
                number = self.number(optimizer)
            self._watcher.mark(layout.STEP_BEGAN, began, began, 0.0, 0, number)
        except Exception as problem:
            self._watcher.fail(problem)

    def _tell(self, optimizer: Any, began: int, ended: int, event: Any, spent_ns: int) -> None:
        """Tell a step of which there is more to say: also the first of an optimizer, and with it whether it steps within."""
        try:
            if self._watcher.steps in _LOOKS:
                self._watcher.look()
                self._core_time.look()
            with self._watcher.aside():
                self._tell_more(optimizer, began, ended, event, spent_ns)
        except Exception as problem:
            self._watcher.fail(problem)

    def _tell_more(self, optimizer: Any, began: int, ended: int, event: Any, spent_ns: int) -> None:
        kind, flags = layout.STEPPED, 0 if self._within() == _NOBODY else layout.WITHIN
        number, gpu = self.number(optimizer), self._watcher.gpu
        self._lasts[id(optimizer)] = layout.last_of(layout.STEPPED, number)
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is not None and found_inf.is_cpu:
            kind = layout.SKIPPED if found_inf.item() else kind
        if gpu is not None and gpu.times(event, ended):
            flags |= layout.TIMED
        if found_inf is not None and found_inf.is_cuda and gpu is not None:
            flags |= gpu.lands(found_inf, ended)
        self._watcher.mark(kind, began, ended, 0.0, spent_ns, number, flags)
        if gpu is not None:
            gpu.land()

    def _number_anew(self, optimizer: Any) -> int:
        key, kind = id(optimizer), type(optimizer).__name__
        free = self._free.setdefault(kind, [])
        if free:
            number = free.pop()
        else:
            self._count += 1
            number = self._watcher.name(f"{kind}\noptimizer {self._count}")
        self._alive[key] = weakref.ref(optimizer, lambda _: self._drop(key, free))
        self._numbers[key] = number
        self._watcher.threads.add(threading.get_ident())
        self._see(optimizer)
        return number

    def _see(self, optimizer: Any) -> None:
        """Learn from its parameters what is computed in, and where."""
        self._core_time.see(
            parameter for group in optimizer.param_groups for parameter in group["params"]
        )
        first = next(
            (parameter for group in optimizer.param_groups for parameter in group["params"]), None
        )
        if first is not None:
            self._watcher.sees_dtype(first.dtype)
            if first.is_cuda:
                self._watcher.gpu_of(first)

    def _drop(self, key: int, free: list[int]) -> None:
        for of_it in (self._going, self._alive, self._lasts):
            of_it.pop(key, None)
        number = self._numbers.pop(key, None)
        if number is not None:
            free.append(number)

    # ---- GradScaler

    def _watch_scaler(self) -> None:
        """Tell steps that it leaves out: it does not even call those of an optimizer that is not fused."""
        if self._watcher.is_all:
            self.watch_scalers()
        scaler = _scaler()
        step = getattr(scaler, "_maybe_opt_step", None)
        if scaler is None or step is None:
            return
        watcher = self._watcher

        @functools.wraps(step)
        def watched_step(this: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            began, steps_before = _now(), watcher.steps
            result = step(this, optimizer, *args, **kwargs)
            if watcher.steps == steps_before and not watcher.is_compiling():
                watcher.mark(layout.SKIPPED, began, _now(), 0.0, 0, self.number(optimizer))
            return result

        init = scaler.__init__

        @functools.wraps(init)
        def watched_init(this: Any, *args: Any, **kwargs: Any) -> None:
            if watcher.is_all:
                self.watch_scalers()  # it may be of a kind that was loaded since
            init(this, *args, **kwargs)

        scaler._maybe_opt_step, scaler.__init__ = watched_step, watched_init

    def watch_scalers(self) -> None:
        """Have what GradScaler and its kinds scale remember what it was: a root is told unscaled."""
        kinds = [_scaler()]
        for kind in kinds:
            if kind is not None:
                kinds.extend(kind.__subclasses__())
                if "scale" in vars(kind) and not hasattr(kind.scale, "_is_watched"):
                    kind.scale = _remembering(kind.scale, self._watcher)


def _remembering(scale: Any, watcher: Any) -> Any:
    @functools.wraps(scale)
    def watched_scale(this: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = scale(this, outputs, *args, **kwargs)
        if result is not outputs and not watcher.is_compiling():
            try:
                with watcher.aside():
                    remember(result, outputs, watcher)
            except Exception as problem:
                watcher.fail(problem)
        return result

    watched_scale._is_watched = True  # type: ignore[attr-defined]
    return watched_scale


def remember(scaled: Any, plain: Any, watcher: Any) -> None:
    """Keep what a number was that was scaled: no more is told of a root."""
    if isinstance(plain, (list, tuple)):
        for index, output in enumerate(scaled):
            remember(output, plain[index], watcher)
    elif type(plain) is watcher.torch.Tensor and plain.numel() == 1:
        watcher.unscaled.keep(scaled, plain.detach())


def _scaler() -> Any:
    scaler_modules: list[Any] = [sys.modules.get(name) for name in _SCALERS]
    return next(
        (module.GradScaler for module in scaler_modules if hasattr(module, "GradScaler")), None
    )


def is_within_step(hooked: FrameType) -> bool:
    """Say whether this step is called by that of an optimizer: what steps was called in the same way further out.

    A step that raised ends nothing, so that what is remembered of it tells nothing.
    """
    outer = hooked.f_back
    while outer is not None:
        if outer.f_code is hooked.f_code:
            return True
        outer = outer.f_back
    return False
