"""Read tensors aside: neither the script's modes nor its own tensor classes notice the reading."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any


def aside_of(torch: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Return the function that makes the context in which tensors are read.

    It costs next to nothing if the script has no modes.
    """
    functions, dispatch = modes_of(torch)
    guards = [
        getattr(torch._C, name, None) for name in ("DisableTorchFunction", "_DisableTorchDispatch")
    ]
    nothing = nullcontext()

    def aside() -> AbstractContextManager[Any]:
        if not (functions() or dispatch()):
            return nothing
        stack = ExitStack()
        for guard in guards:
            if guard is not None:
                stack.enter_context(guard())
        return stack

    return aside


def modes_of(torch: Any) -> tuple[Callable[[], int], Callable[[], int]]:
    """Return the functions that count the script's modes: torch-function and dispatch modes."""
    return getattr(torch._C, "_len_torch_function_stack", int), getattr(
        torch._C, "_len_torch_dispatch_stack", int
    )


class Unscaled:
    """The unscaled values of the tensors that GradScaler returned.

    They are kept outside the tensors, because the script may look at, copy and save its tensors.
    """

    def __init__(self) -> None:
        # By the id of the scaled tensor: a weak reference to it, and the plain tensor.
        self.kept: dict[int, tuple[Any, Any]] = {}

    def keep(self, scaled: Any, plain: Any) -> None:
        key = id(scaled)
        self.kept[key] = weakref.ref(scaled, lambda _: self.kept.pop(key, None)), plain

    def of(self, scaled: Any) -> Any:
        """Return the plain tensor of a scaled one, or the tensor itself if it was not scaled."""
        alive, plain = self.kept.get(id(scaled), (None, None))
        return plain if alive is not None and alive() is scaled else scaled
