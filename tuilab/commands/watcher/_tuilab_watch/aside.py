"""Read tensors aside: neither the script's modes nor its own tensor classes notice the reading."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any


def aside_of(torch: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Return the function that makes the context in which tensors are read.

    If the script has no modes, the function costs next to nothing.
    """
    count_function_modes, count_dispatch_modes = modes_of(torch)
    function_guard = getattr(torch._C, "DisableTorchFunction", None)
    dispatch_guard = getattr(torch._C, "_DisableTorchDispatch", None)
    no_guards = nullcontext()

    def aside() -> AbstractContextManager[Any]:
        """Return a guard against the script's modes; if it has none, an empty guard."""
        if not (count_function_modes() or count_dispatch_modes()):
            return no_guards
        stack = ExitStack()
        for guard in (function_guard, dispatch_guard):
            if guard is not None:
                stack.enter_context(guard())
        return stack

    return aside


def modes_of(torch: Any) -> tuple[Callable[[], int], Callable[[], int]]:
    """Return the functions that count the script's modes: torch-function and dispatch modes."""
    # Versions of torch without such a function have no such modes: int() is 0.
    count_function_modes = getattr(torch._C, "_len_torch_function_stack", int)
    count_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", int)
    return count_function_modes, count_dispatch_modes


class Unscaled:
    """The unscaled values of the tensors that GradScaler returned.

    They are kept outside the tensors, because the script may look at, copy and save its tensors.
    """

    def __init__(self) -> None:
        # By the id of the scaled tensor: a weak reference to it, and the plain tensor.
        self.kept: dict[int, tuple[Any, Any]] = {}

    def keep(self, scaled: Any, plain: Any) -> None:
        """Keep the plain tensor for as long as its scaled tensor exists."""
        key = id(scaled)
        reference = weakref.ref(scaled, lambda _: self.kept.pop(key, None))
        self.kept[key] = reference, plain

    def of(self, scaled: Any) -> Any:
        """Return the plain tensor of a scaled one, or the tensor itself if it was not scaled."""
        reference, plain = self.kept.get(id(scaled), (None, None))
        if reference is not None and reference() is scaled:
            return plain
        return scaled
