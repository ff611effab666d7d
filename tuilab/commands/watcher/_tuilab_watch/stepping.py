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
from .counting.counted_steps import CountedSteps

_now = time.monotonic_ns
# After so many steps, the watcher adds hooks to the libraries that were loaded meanwhile.
_HOOKING_STEPS = frozenset((1, 2, 10, 100, 1000))
_SCALERS = ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler")  # from torch 2.3 on, and before
_NOBODY = -1
_MOST_NS = layout.MOST  # longer times, such as those of a suspended process, are cut to this


class Stepping:
    """The optimizers of a process. Each of them has a number.

    If an optimizer is gone, the next optimizer of its class gets its number.
    """

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        # The keys of the next four are the ids of optimizers. `_make_hooks` describes the entries
        # of `_running`, which has the steps that have begun and not ended.
        self._running: dict[int, tuple[int, int, Any, int]] = {}
        self._numbers: dict[int, int] = {}
        self._last_words: dict[int, int] = {}  # the last word of the marks of its steps
        # Weak references. If an optimizer is gone, its reference removes it from all of these.
        self._references: dict[int, Any] = {}
        self._free: dict[str, list[int]] = {}  # numbers that are free, by class
        self._count = 0
        self._core_time = CoreTimeReader(watcher)
        self._unusual_steps = set(_HOOKING_STEPS)
        self.counted_steps = CountedSteps(watcher, self._unusual_steps)
        # The function returns the id of a backward that is running, or _NOBODY.
        self._running_backward = getattr(
            watcher.torch._C, "_current_graph_task_id", lambda: _NOBODY
        )

    def begin(self) -> None:
        """Register the hooks, once for all optimizers."""
        before_step, after_step = self._make_hooks()
        module = importlib.import_module("torch.optim.optimizer")
        module.register_optimizer_step_pre_hook(before_step)
        module.register_optimizer_step_post_hook(after_step)
        if self._watcher.treatments is not None:
            module.register_optimizer_step_post_hook(self._make_treating_hook())
        self._watch_scaler()

    def forget(self) -> None:
        """Reset the state in a forked child, which names its numbers again."""
        self._count = 0
        self._core_time.forget()
        self.counted_steps.forget()
        self._running.clear()
        self._numbers.clear()
        self._last_words.clear()
        self._references.clear()
        self._free.clear()

    def number(self, optimizer: Any) -> int:
        """Return the number of an optimizer; the first call assigns it."""
        number = self._numbers.get(id(optimizer))
        if number is None:
            number = self._assign_number(optimizer)
        return number

    def _make_hooks(self) -> tuple[Any, Any]:
        """Return the hooks that run before and after a step.

        While torch traces them, they do nothing, and cost a graph nothing.

        The entry of a running step in `running` has four parts: when our hook was done, how long
        the hook took, an event on a GPU, and how many calls of the optimizer's own `step` are
        nested. If a step raises, its entry stays until the optimizer steps again.
        """
        watcher = self._watcher
        is_compiling = watcher.is_compiling
        running = self._running
        numbers = self._numbers
        last_words = self._last_words
        core_time_due = self._core_time.due
        mark_core_time = self._core_time.mark
        unusual_steps = self._unusual_steps

        def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            """Note that a step begins, and mark the first one of an optimizer."""
            if is_compiling():
                return
            key = id(optimizer)
            if running and is_within_step(sys._getframe(1)):
                if key in running:  # its step calls super().step()
                    began, spent_ns, event, depth = running[key]
                    running[key] = began, spent_ns, event, depth + 1
                return
            began = _now()
            spent_ns = 0
            event = None
            if watcher.gpu is not None or key not in numbers:
                called = began
                if watcher.gpu is not None:
                    event = watcher.gpu.begin_part()
                    began = _now()
                if key not in numbers:
                    self._mark_first_begin(optimizer, began)
                    began = _now()
                spent_ns = began - called
            running[key] = began, spent_ns, event, 1

        def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            """Mark the step that ends, unless another step of an optimizer encloses it."""
            if is_compiling():
                return
            now_ns = _now()
            key = id(optimizer)
            entry = running.pop(key, None)
            if entry is None:
                return  # another optimizer steps this one
            began, spent_ns, event, depth = entry
            if depth > 1:
                running[key] = began, spent_ns, event, depth - 1
                return
            steps = watcher.steps + 1
            watcher.steps = steps
            spent_ns += watcher.spent_ns
            if spent_ns > _MOST_NS:
                spent_ns = _MOST_NS
            is_usual = False
            if watcher.gpu is None and key in last_words:
                last_word = last_words[key]
                if now_ns >= core_time_due.get(last_word, 0):
                    mark_core_time(now_ns, last_word)
                is_usual = steps not in unusual_steps and "found_inf" not in optimizer.__dict__
            if is_usual:
                put = watcher.put
                put(began, now_ns, 0.0, last_word + spent_ns)
            else:
                self._mark_unusual(optimizer, began, now_ns, event, spent_ns)
            watcher.spent_ns = _now() - now_ns

        return before_step, after_step

    def _make_treating_hook(self) -> Any:
        """Return the hook that shows the treatments each step that was marked.

        It runs after the hook that marks the step, because a treatment may end the process.
        """
        watcher = self._watcher
        is_compiling = watcher.is_compiling
        steps = 0

        def show_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            nonlocal steps
            if is_compiling() or watcher.steps == steps:
                return
            steps = watcher.steps
            watcher.treatments.stepped(optimizer)

        return show_step

    def _mark_first_begin(self, optimizer: Any, began: int) -> None:
        """Mark that the first step of an optimizer begins.

        A step of LBFGS may take minutes and many backwards.
        """
        try:
            with self._watcher.aside():
                number = self.number(optimizer)
            self._watcher.mark(layout.STEP_BEGAN, began, began, 0.0, 0, number)
        except Exception as problem:
            self._watcher.fail(problem)

    def _mark_unusual(
        self, optimizer: Any, began: int, ended: int, event: Any, spent_ns: int
    ) -> None:
        """Mark a step that needs more than the fast path.

        The first step of an optimizer does: its mark shows whether it is made during a backward.
        """
        number = self._numbers.get(id(optimizer), 0)
        try:
            self.counted_steps.end_if_over(number, ended)
            if self._watcher.steps in _HOOKING_STEPS:
                self._watcher.hook_loaded()
                self._core_time.check_accelerators()
            with self._watcher.aside():
                self._mark_step(optimizer, began, ended, event, spent_ns)
            self.counted_steps.begin_if_due(self.number(optimizer), self._watcher.steps)
        except Exception as problem:
            self._watcher.fail(problem)

    def _mark_step(self, optimizer: Any, began: int, ended: int, event: Any, spent_ns: int) -> None:
        """Mark a step with all that is known about it, and then the results of the GPU."""
        flags = 0
        is_within_backward = self._running_backward() != _NOBODY
        if is_within_backward:
            flags |= layout.WITHIN
        number = self.number(optimizer)
        gpu = self._watcher.gpu
        self._last_words[id(optimizer)] = layout.last_of(layout.STEPPED, number)
        kind = layout.STEPPED
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is not None and found_inf.is_cpu and found_inf.item():
            kind = layout.SKIPPED
        if gpu is not None:
            if gpu.end_step(event, ended, is_within_backward=is_within_backward):
                flags |= layout.TIMED
        if found_inf is not None and found_inf.is_cuda and gpu is not None:
            flags |= gpu.mark_value_later(found_inf, ended)
        self._watcher.mark(kind, began, ended, 0.0, spent_ns, number, flags)
        if gpu is not None:
            gpu.mark_landed()

    def _assign_number(self, optimizer: Any) -> int:
        """Give an optimizer a number: a free one of its class, or else a new one."""
        key = id(optimizer)
        class_name = type(optimizer).__name__
        free = self._free.setdefault(class_name, [])
        if free:
            number = free.pop()
        else:
            self._count += 1
            number = self._watcher.name(f"{class_name}\noptimizer {self._count}")
        self._references[key] = weakref.ref(optimizer, lambda _: self._drop(key, free))
        self._numbers[key] = number
        self._watcher.threads.add(threading.get_ident())
        self._report_optimizer(optimizer)
        return number

    def _report_optimizer(self, optimizer: Any) -> None:
        """Report how an optimizer steps, and which dtypes and device its parameters use."""
        parameters: list[Any] = []
        for group in optimizer.param_groups:
            parameters.extend(group["params"])
        self._core_time.check_parameters(parameters)
        self._watcher.report_optimizer(optimizer, parameters)
        if not parameters:
            return
        for dtype in {parameter.dtype for parameter in parameters}:
            self._watcher.report_dtype(dtype)
        first = parameters[0]
        if first.is_cuda:
            self._watcher.gpu_of(first)

    def _drop(self, key: int, free: list[int]) -> None:
        """Forget an optimizer that is gone, and free its number."""
        self._running.pop(key, None)
        self._references.pop(key, None)
        self._last_words.pop(key, None)
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
            """Let GradScaler step an optimizer; mark a skipped step if the optimizer made none."""
            began = _now()
            steps_before = watcher.steps
            result = step(this, optimizer, *args, **kwargs)
            if watcher.steps == steps_before and not watcher.is_compiling():
                self._mark_skipped(optimizer, began)
            return result

        init = scaler.__init__

        @functools.wraps(init)
        def watched_init(this: Any, *args: Any, **kwargs: Any) -> None:
            if watcher.is_all:
                self.watch_scalers()  # the script may have defined a subclass since
            init(this, *args, **kwargs)

        scaler._maybe_opt_step = watched_step
        scaler.__init__ = watched_init

    def _mark_skipped(self, optimizer: Any, began: int) -> None:
        """Mark a step that GradScaler skipped without calling it; it ends a step all the same."""
        ended = _now()
        flags = 0
        gpu = self._watcher.gpu
        if gpu is not None and gpu.end_step(None, ended, is_within_backward=False):
            flags = layout.TIMED
        self._watcher.mark(layout.SKIPPED, began, ended, 0.0, 0, self.number(optimizer), flags)
        if gpu is not None:
            gpu.mark_landed()
        if self._watcher.treatments is not None:
            self._watcher.treatments.stepped(optimizer)

    def watch_scalers(self) -> None:
        """Wrap `scale` of GradScaler and its subclasses, to remember the unscaled values.

        The mark of a root has its unscaled value.
        """
        base = _scaler()
        if base is None:
            return
        classes = [base]
        for scaler in classes:
            classes.extend(scaler.__subclasses__())  # the loop comes to these as well
            if "scale" in vars(scaler) and not hasattr(scaler.scale, "_is_watched"):
                scaler.scale = _remembering(scaler.scale, self._watcher)


def _remembering(scale: Any, watcher: Any) -> Any:
    """Return a wrapper of `scale` that keeps the unscaled values."""

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
    """Return the class GradScaler; None if torch has not loaded it."""
    for name in _SCALERS:
        module: Any = sys.modules.get(name)
        if hasattr(module, "GradScaler"):
            return module.GradScaler
    return None


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
