"""Watch the steps of optimizers, and the steps that GradScaler skips."""

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
# After so many steps, the watcher looks again for what was loaded meanwhile.
_LOOKS = frozenset((1, 2, 10, 100, 1000))
_SCALERS = ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler")  # from torch 2.3 on, and before
_NOBODY = -1
_MOST_NS = layout.MOST  # longer times, such as those of a suspended process, are cut to this


class Stepping:
    """The optimizers of a process. Each of them has a number.

    If an optimizer is gone, the next optimizer of its class gets its number.
    """

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        # The next four are by the id of an optimizer. `_going` has the running steps; see `_hooks`.
        self._going: dict[int, tuple[int, int, Any, int]] = {}
        self._numbers: dict[int, int] = {}
        self._lasts: dict[int, int] = {}  # the last word of the mark of its step
        self._alive: dict[int, Any] = {}  # a weak reference, which removes it here when it is gone
        self._free: dict[str, list[int]] = {}  # numbers that are free, by class
        self._count = 0
        self._core_time = CoreTimeReader(watcher)
        self._within = getattr(watcher.torch._C, "_current_graph_task_id", lambda: _NOBODY)

    def begin(self) -> None:
        """Register the hooks, once for all optimizers."""
        begins, ended = self._hooks()
        module = importlib.import_module("torch.optim.optimizer")
        module.register_optimizer_step_pre_hook(begins)
        module.register_optimizer_step_post_hook(ended)
        self._watch_scaler()

    def forget(self) -> None:
        """Reset the state in a forked child, which names its numbers again."""
        self._count = 0
        self._core_time.forget()
        for of_it in (self._going, self._numbers, self._lasts, self._alive, self._free):
            of_it.clear()

    def number(self, optimizer: Any) -> int:
        """Return the number of an optimizer; the first call assigns it."""
        number = self._numbers.get(id(optimizer))
        return self._number_anew(optimizer) if number is None else number

    def _hooks(self) -> tuple[Any, Any]:
        """Return the hooks that run before and after a step.

        While torch traces them, they do nothing, and cost a graph nothing.

        The entry of a running step in `going` has four parts: when our hook was done, how long the
        hook took, an event on a GPU, and how many calls of the optimizer's own `step` are nested.
        If a step raises, its entry stays until the optimizer steps again.
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
                if key in going:  # its step calls super().step()
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
                return  # another optimizer steps this one
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
        """Mark that the first step of an optimizer begins.

        A step of LBFGS may take minutes and many backwards.
        """
        try:
            with self._watcher.aside():
                number = self.number(optimizer)
            self._watcher.mark(layout.STEP_BEGAN, began, began, 0.0, 0, number)
        except Exception as problem:
            self._watcher.fail(problem)

    def _tell(self, optimizer: Any, began: int, ended: int, event: Any, spent_ns: int) -> None:
        """Mark a step that needs more than the fast path.

        The first step of an optimizer does: its mark shows whether it is made during a backward.
        """
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
        """Learn from an optimizer's parameters which dtype and device are used."""
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
        """Mark the steps that GradScaler skips.

        If an optimizer is not fused, GradScaler does not even call the step that it skips.
        """
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
                self.watch_scalers()  # its class may have been loaded since
            init(this, *args, **kwargs)

        scaler._maybe_opt_step, scaler.__init__ = watched_step, watched_init

    def watch_scalers(self) -> None:
        """Wrap `scale` of GradScaler and its subclasses, to remember the unscaled values.

        The mark of a root has its unscaled value.
        """
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
    """Keep the unscaled value of a scaled tensor that has one element.

    Other tensors are not kept, because the mark of a root has room for one number only.
    """
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
    """Return whether the step of an optimizer calls this step.

    If so, the code of the frame `hooked`, which calls the hooks, is also found further out. The
    steps that are remembered do not show this: if a step raises, its end is never seen.
    """
    outer = hooked.f_back
    while outer is not None:
        if outer.f_code is hooked.f_code:
            return True
        outer = outer.f_back
    return False
