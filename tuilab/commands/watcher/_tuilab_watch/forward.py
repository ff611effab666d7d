"""Time the forward if a library calls it in one place.

Hooks before all modules of a training loop would cost more than the rest of watching.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from . import layout

_now = time.monotonic_ns
# The module, the class, and its function that computes the loss.
_FORWARDS = (
    ("lightning.pytorch.strategies.strategy", "Strategy", "training_step"),
    ("pytorch_lightning.strategies.strategy", "Strategy", "training_step"),
    ("transformers.trainer", "Trainer", "compute_loss"),
)


def watch(watcher: Any) -> None:
    """Wrap the forward of trainers that are loaded, if it is not wrapped yet."""
    for module, class_name, name in _FORWARDS:
        owner = getattr(sys.modules.get(module), class_name, None)
        plain = getattr(owner, name, None)
        if plain is not None and not hasattr(plain, "_is_watched"):
            setattr(owner, name, _timed(watcher, plain))


def _timed(watcher: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper that marks how long a forward takes."""
    is_learning = watcher.torch.is_grad_enabled  # Trainer evaluates with the same function

    @functools.wraps(forward)
    def timed(this: Any, *args: Any, **kwargs: Any) -> Any:
        if watcher.is_compiling() or not is_learning() or _goes_back_itself(this):
            return forward(this, *args, **kwargs)
        called = _now()
        began = called
        event = None
        if watcher.gpu is not None:
            event = watcher.gpu.begin_part()
            began = _now()
        result = forward(this, *args, **kwargs)
        ended = _now()
        try:
            flags = 0
            if event is not None and watcher.gpu.end_part(event, ended):
                flags = layout.TIMED
            spent_ns = min(watcher.spent_ns + began - called, layout.MOST)
            watcher.mark(layout.WENT_FORWARD, began, ended, 0.0, spent_ns, 0, flags)
            watcher.spent_ns = _now() - ended
        except Exception as problem:
            watcher.fail(problem)
        return result

    timed._is_watched = True  # type: ignore[attr-defined]
    return timed


def _goes_back_itself(this: Any) -> bool:
    """Return whether the training step of a Lightning module includes backward and optimizers."""
    module = getattr(this, "lightning_module", None)
    return not getattr(module, "automatic_optimization", True)
