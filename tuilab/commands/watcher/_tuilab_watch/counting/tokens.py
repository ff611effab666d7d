"""Count the tokens of a step: the elements of the integers that the outermost module is given.

If no module was called, the batches of the DataLoader count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

_LIKELY = "input_ids"
_MOST_LOOKED_AT = 20  # of the values of a batch
FROM_MODULE = "module"
FROM_LOADER = "DataLoader"


class Tokens:
    """The tokens of one step, and whether a thread works on it that cannot be seen."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._integers = (torch.int32, torch.int64)
        self._calling = torch.nn.Module._call_impl.__code__
        self._running_backward = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self._outermost: Any = None  # the id of the outermost module that got integers
        self._has_outermost = False  # whether any module was called
        self._of_module = 0
        self._of_loader = 0
        self.has_unseen_thread = False
        self.has_evaluation = False  # whether a module was called without gradients

    def see_call(self, module: Any, args: Any, kwargs: Any) -> None:
        """Look at the call of a module that has ended."""
        if not self._torch._C._len_torch_dispatch_stack():
            self.has_unseen_thread = True
            return
        if self._running_backward() != -1 or not self._is_outermost():
            return
        if not self._torch.is_grad_enabled():
            self.has_evaluation = True
            return
        self._has_outermost = True
        tokens = self._tokens_in([kwargs.get(_LIKELY), *args, *kwargs.values()])
        if tokens and self._outermost in (None, id(module)):
            self._outermost = id(module)
            self._of_module += tokens

    def see_batch(self, batch: Any) -> None:
        """Look at a batch of a DataLoader."""
        self._of_loader += self._tokens_in([batch])

    def as_facts(self) -> dict[str, Any]:
        """Return how many tokens were seen, and where."""
        if self._has_outermost:
            return {"tokens": self._of_module, "tokens_from": FROM_MODULE}
        return {"tokens": self._of_loader, "tokens_from": FROM_LOADER}

    def _is_outermost(self) -> bool:
        """Return whether no other module calls this one."""
        calls = 0
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            calls += frame.f_code is self._calling
            frame = frame.f_back
        return calls == 1

    def _tokens_in(self, values: Any, depth: int = 0) -> int:
        """Return the elements of the first integer tensor that has a row for each sequence."""
        for value in list(values)[:_MOST_LOOKED_AT]:
            if isinstance(value, self._torch.Tensor):
                if value.dtype in self._integers and value.dim() >= 2:
                    return int(value.numel())
            elif depth < 2:
                inner = _parts_of(value)
                tokens = self._tokens_in(inner, depth + 1) if inner else 0
                if tokens:
                    return tokens
        return 0


def _parts_of(value: Any) -> Any:
    """Return the values of a dict, with the likely one first, or the parts of a list or tuple."""
    if isinstance(value, (list, tuple)):
        return value
    if hasattr(value, "values") and hasattr(value, "get"):
        return [value.get(_LIKELY), *value.values()]
    return []


def watch_calls(torch: Any, tokens: Tokens) -> Callable[[], None]:
    """Have torch call `tokens` after each module; return the function that ends this."""
    modules: Any = import_module("torch.nn.modules.module")
    hide_functions = torch._C.DisableTorchFunction

    def see(module: Any, args: Any, kwargs: Any, result: Any) -> None:
        with hide_functions():
            tokens.see_call(module, args, kwargs)

    def see_args(module: Any, args: Any, result: Any) -> None:
        see(module, args, {}, result)

    try:
        handle = modules.register_module_forward_hook(see, with_kwargs=True)
    except TypeError:  # older versions of torch
        handle = modules.register_module_forward_hook(see_args)

    def remove() -> None:
        handle.remove()
        # torch keeps an entry, and its compiler would take it for a hook that is still there
        getattr(modules, "_global_forward_hooks_with_kwargs", {}).pop(handle.id, None)

    return remove
