"""Choose the steps that are counted, begin and end the counting, and report what was counted.

A counted step reaches from the end of one optimizer step to the end of the next step of the same
optimizer: the one that steps least often, as it ends a step for tuilab. Nothing is counted if that
could change what the script computes or compiles.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import layout
from . import COUNT
from . import mode as modes
from .flops import FlopCount, triton_kernels
from .places import Places
from .tokens import Tokens, watch_calls
from .warned_places import redirect_warnings

# Steps of the optimizer after which a step is counted: after the warm-up of torch, and later again.
# Scripts evaluate and log at round numbers, so these are not next to one.
_AFTER = (5, 47)
_MOST_TRIES = 10
_MOST_STEPS = 2_000  # optimizer steps, after which no step is counted any more
_RECENT = 50  # optimizer steps: an optimizer that made none of them is not in use
_MOST_OPERATORS = 300_000  # of a counted step: more would take too long
_NOBODY = -1
COMPILED = "torch.compile is in use, and a compiled graph shows none of its operators"


class CountedSteps:
    """The counting in one process. `unusual_steps` has the steps at which it wants to be called."""

    def __init__(self, watcher: Any, unusual_steps: set[int]) -> None:
        self._watcher = watcher
        self._unusual_steps = unusual_steps
        self._is_wanted = os.environ.get(COUNT) == "1" and watcher.is_all
        self._counts: dict[int, int] = {}  # steps, by the number of the optimizer
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._counted = 0  # steps that were counted to their end
        self._tries = 0
        self._step: _CountedStep | None = None
        self._running_backward = getattr(
            watcher.torch._C, "_current_graph_task_id", lambda: _NOBODY
        )
        if self._is_wanted:
            unusual_steps.update(range(1, 3))

    def end_if_over(self, number: int, ended: int) -> None:
        """End the counted step if this step of an optimizer ends it; report what was counted."""
        step = self._step
        if step is None or step.optimizer != number:
            return
        self._step = None
        step.leave()
        facts = step.facts(ended)
        if facts.get("reason"):
            is_last = self._tries >= _MOST_TRIES
        else:
            self._counted += 1
            is_last = self._counted >= len(_AFTER)
        self._put(facts)
        self._is_wanted = not is_last and not step.is_hopeless

    def begin_if_due(self, number: int, steps: int) -> None:
        """Begin to count if a step has ended after which a step is to be counted.

        `steps` is the number of optimizer steps so far. The caller runs in none of our guards.
        """
        if not self._is_wanted:
            return
        self._counts[number] = self._counts.get(number, 0) + 1
        self._recent.append(number)
        if self._step is None and self._tries < _MOST_TRIES and self._is_due(number):
            self._begin(number)
        if steps < _MOST_STEPS:
            self._unusual_steps.add(steps + 1)
        else:
            self._is_wanted = self._step is not None

    def forget(self) -> None:
        """Stop counting in a forked child, which inherits the modes of the thread that forked."""
        self._is_wanted = False
        step = self._step
        self._step = None
        if step is not None:
            step.leave()

    def finish(self) -> None:
        """End a step that is being counted when the script ends."""
        step = self._step
        if step is not None and step.thread == threading.get_ident():
            self.forget()

    def _is_due(self, number: int) -> bool:
        """Return whether a step of this optimizer ends a step, and the next one is to be counted.

        The optimizer with the fewest steps ends a step; of several, the one that steps last.
        """
        if self._counts[number] < _AFTER[self._counted]:
            return False
        return all(self._counts[other] >= self._counts[number] for other in set(self._recent))

    def _begin(self, number: int) -> None:
        """Begin to count, or report why that is not possible."""
        self._tries += 1
        reason, is_final = self._why_not()
        if not reason:
            try:
                self._step = _CountedStep(self._watcher, number, self._counts[number])
                self._step.enter()
            except Exception as problem:
                self._step = None
                reason = f"counting cannot begin: {type(problem).__name__}: {problem}"[:200]
                is_final = True
        if reason and (is_final or self._tries >= _MOST_TRIES):
            self._put({"reason": reason})
            self._is_wanted = False

    def _why_not(self) -> tuple[str, bool]:
        """Return why the next step cannot be counted, and whether that will not change.

        An empty reason means that it can be counted.
        """
        torch = self._watcher.torch
        if not hasattr(torch._C, "_push_on_torch_dispatch_stack"):
            return f"torch {torch.__version__} has no modes", True
        if _has_compiled():
            return COMPILED, True
        if self._running_backward() != _NOBODY:
            return "an optimizer steps during a backward", True
        if len(self._watcher.threads) > 1:
            return "several threads train", True
        if torch._C._len_torch_dispatch_stack():
            return "the script uses a TorchDispatchMode of its own", False
        if _is_capturing():
            return "a CUDA graph is being captured", False
        return "", False

    def _put(self, facts: dict[str, Any]) -> None:
        self._watcher.text(layout.COUNTED, _short_json(facts))


class _CountedStep:
    """One step while it is counted."""

    def __init__(self, watcher: Any, optimizer: int, steps: int) -> None:
        self._watcher = watcher
        self._torch = watcher.torch
        self.optimizer = optimizer
        self.thread = threading.get_ident()
        self.is_hopeless = False  # whether another step would fail for the same reason
        self._steps = steps  # of the optimizer before this step
        self._began = 0
        self._operators = 0
        self._reason = ""  # why the step is not counted after all
        self._is_over = False
        self._flops = FlopCount(self._torch)
        self._places = Places(self._torch)
        self._tokens = Tokens(self._torch)
        self._mode = modes.make_mode(self._torch, self._take, self._name_whole)
        self._has_begun_loop = False
        self._undo: list[Callable[[], Any]] = []
        self._hide_functions = self._torch._C.DisableTorchFunction

    def enter(self) -> None:
        """Begin to count: see all operators, calls of modules, batches and kernels."""
        try:
            self._undo.append(watch_calls(self._torch, self._tokens))
            self._watch_loader()
            self._watch_kernels()
            self._watch_compiler()
            self._undo.append(redirect_warnings(vars(modes)))
        except Exception:
            self.leave()
            raise
        self._began = time.monotonic_ns()
        modes.push(self._torch, self._mode)

    def leave(self) -> None:
        """Stop to count. If the mode was lost, it is removed when it sees an operator again."""
        was_pushed = modes.remove(self._torch, self._mode)
        if not was_pushed and not self._reason:
            self._reason = "torch has left the mode that counts"
        while self._undo:
            self._undo.pop()()
        self._reason = self._reason or self._late_reason()
        self._is_over = True

    def facts(self, ended: int) -> dict[str, Any]:
        """Return what was counted, or the reason why nothing was."""
        facts: dict[str, Any] = {
            "after": self._steps,
            "began": self._began,
            "ended": ended,
            "until": time.monotonic_ns(),
        }
        if self._reason:
            facts["reason"] = self._reason
            return facts
        facts["flops"] = self._flops.total
        facts["kinds"] = self._flops.by_kind()
        facts["uncounted"] = list(self._flops.uncounted)
        facts |= self._tokens.as_facts()
        facts |= self._places.as_facts()
        facts |= _describe_device(self._torch, self._flops.busiest_device())
        facts["until"] = time.monotonic_ns()  # the step that follows has this delay
        return facts

    def _give_up(self, reason: str) -> None:
        self._reason = self._reason or reason

    def _late_reason(self) -> str:
        """Return why the counts of a step that has ended are not complete."""
        if _has_compiled():
            self.is_hopeless = True
            return COMPILED
        if self._tokens.has_unseen_thread:
            self.is_hopeless = True
            return "modules run in threads that are not seen, as those of DataParallel"
        if self._has_begun_loop and self._tokens.has_evaluation:
            return "an evaluation ran within each step that was tried"
        return ""

    # ---- what is seen

    def _take(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Count an operator that has run. Nothing that fails here may reach the script."""
        if self._is_over or self._reason:
            if threading.get_ident() == self.thread:
                modes.remove_soon(self._torch, self._mode)
            return
        try:
            self._operators += 1
            if self._operators > _MOST_OPERATORS:
                self.is_hopeless = True
                self._give_up(f"a step has more than {_MOST_OPERATORS:,} operators")
                return
            self._flops.add(operator, args, kwargs, result)
            self._places.take(operator, args, kwargs, result)
        except Exception as problem:
            self._give_up(
                f"{operator} cannot be counted: {type(problem).__name__}: {problem}"[:200]
            )

    def _name_whole(self, operator: Any) -> None:
        self._flops.name_uncounted(str(getattr(operator, "_name", operator)))

    def _watch_loader(self) -> None:
        """Look at each batch of a DataLoader, and notice the beginning of a loop."""
        module: Any = sys.modules.get("torch.utils.data.dataloader")
        iterator_class = getattr(module, "_BaseDataLoaderIter", None)
        loader_class = getattr(module, "DataLoader", None)
        if iterator_class is None or loader_class is None:
            return
        fetch = iterator_class.__next__
        begin = loader_class.__iter__

        def seen_next(this: Any) -> Any:
            batch = fetch(this)
            try:
                with self._hide_functions():
                    self._tokens.see_batch(batch)
            except Exception as problem:
                self._give_up(f"a batch cannot be counted: {type(problem).__name__}: {problem}")
            return batch

        def seen_iter(this: Any) -> Any:
            self._has_begun_loop = True
            if not self._torch.is_grad_enabled():
                self._tokens.has_evaluation = True
            return begin(this)

        self._replace(iterator_class, "__next__", fetch, seen_next)
        self._replace(loader_class, "__iter__", begin, seen_iter)

    def _watch_kernels(self) -> None:
        """Notice kernels that torch does not dispatch: those of Triton, and of CUDA graphs."""
        kernels = triton_kernels()
        if kernels is not None and callable(getattr(kernels, "run", None)):
            launch = kernels.run

            def seen_launch(this: Any, *args: Any, **kwargs: Any) -> Any:
                name = getattr(getattr(this, "fn", None), "__name__", "a kernel")
                self._flops.name_uncounted(f"triton kernel {name}")
                return launch(this, *args, **kwargs)

            self._replace(kernels, "run", launch, seen_launch)
        graphs: Any = getattr(sys.modules.get("torch.cuda.graphs"), "CUDAGraph", None)
        if graphs is not None and callable(getattr(graphs, "replay", None)):
            replay = graphs.replay

            def seen_replay(this: Any) -> Any:
                self.is_hopeless = True
                self._give_up("a CUDA graph is replayed, which shows none of its operators")
                return replay(this)

            self._replace(graphs, "replay", replay, seen_replay)

    def _watch_compiler(self) -> None:
        """End the counting before torch.compile is called: it would see our hooks."""

        def leave() -> None:
            if threading.get_ident() == self.thread and not self._is_over:
                self.is_hopeless = True
                self._give_up(COMPILED)
                self.leave()

        compile_function = getattr(self._torch, "compile", None)
        if compile_function is not None:

            def seen_compile(*args: Any, **kwargs: Any) -> Any:
                leave()
                return compile_function(*args, **kwargs)

            self._replace(self._torch, "compile", compile_function, seen_compile)
        frames: Any = sys.modules.get("torch._dynamo.eval_frame")
        context_class = getattr(frames, "_TorchDynamoContext", None)
        if context_class is not None:
            init = context_class.__init__

            def seen_init(this: Any, callback: Any, *args: Any, **kwargs: Any) -> None:
                if callable(callback):  # without one, functions are kept out of the compiler
                    leave()
                init(this, callback, *args, **kwargs)

            self._replace(context_class, "__init__", init, seen_init)

    def _replace(self, owner: Any, name: str, before: Any, new: Any) -> None:
        """Put a function in the place of another, until the step has ended.

        If somebody else has replaced it by then, it stays; it passes everything on.
        """

        def put_back() -> None:
            if getattr(owner, name) is new:
                setattr(owner, name, before)

        setattr(owner, name, new)
        self._undo.append(put_back)


def _has_compiled() -> bool:
    """Return whether torch.compile was called; what it returned may be compiled at any call."""
    frames: Any = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", None) or {}
    if any(callable(backend) for backend in list(backends.values())):
        return True
    utils: Any = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return bool(counters.get("frames"))


def _is_capturing() -> bool:
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is None or not cuda.is_initialized():
        return False
    return bool(cuda.is_current_stream_capturing())


def _describe_device(torch: Any, device: Any) -> dict[str, Any]:
    """Return what tuilab needs to measure a matrix product on the same device."""
    facts = {
        "device": device.type if device is not None else "",
        "threads": torch.get_num_threads(),
        "precision": torch.get_float32_matmul_precision(),
    }
    if hasattr(os, "sched_getaffinity"):
        facts["cores"] = len(os.sched_getaffinity(0))
    if device is not None and device.type == "cuda":
        cuda: Any = sys.modules.get("torch.cuda")
        properties = cuda.get_device_properties(device)
        facts["uuid"] = str(getattr(properties, "uuid", ""))
        facts["gpu"] = str(getattr(properties, "name", ""))[:60]
    return facts


def _short_json(facts: dict[str, Any]) -> str:
    """Return facts as JSON that fits into a mark; if need be, with fewer lines of the script."""
    text = json.dumps(facts)
    while len(text.encode()) > layout.LONGEST_TEXT and facts.get("places"):
        facts["places"].pop()
        text = json.dumps(facts)
    return text
