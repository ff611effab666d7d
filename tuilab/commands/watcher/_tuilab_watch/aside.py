"""What is asked of a tensor aside: neither the script's modes nor its own classes of tensors hear of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any


def aside_of(torch: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Return what stands around such questions; it costs next to nothing where the script has no modes."""
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
    """Return what counts the modes of the script: of functions, and of what they dispatch."""
    return getattr(torch._C, "_len_torch_function_stack", int), getattr(
        torch._C, "_len_torch_dispatch_stack", int
    )


class Unscaled:
    """What GradScaler's results were before: beside the tensors, which are the script's to look at, copy and save."""

    def __init__(self) -> None:
        self.kept: dict[
            int, tuple[Any, Any]
        ] = {}  # by the id of the scaled one: a weak reference to it, and the plain one

    def keep(self, scaled: Any, plain: Any) -> None:
        key = id(scaled)
        self.kept[key] = weakref.ref(scaled, lambda _: self.kept.pop(key, None)), plain

    def of(self, scaled: Any) -> Any:
        """Return what a tensor was, or itself."""
        alive, plain = self.kept.get(id(scaled), (None, None))
        return plain if alive is not None and alive() is scaled else scaled
