"""See each operator of one step, in a mode that is pushed onto torch's stack and removed again.

The mode is pushed without `with`: a step begins and ends in hooks of the optimizer. If the script
has entered a mode of its own in the meantime, ours is removed from below it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

# The operators of these namespaces have kernels in C++. They compute, or communicate.
BUILT_IN = ("aten", "prim", "prims", "c10d", "_c10d_functional", "profiler")


def make_mode(torch: Any, take: Callable[..., None], name_whole: Callable[[Any], None]) -> Any:
    """Return a new mode that calls `take` after each operator.

    `name_whole` gets each operator of a higher order. Such an operator runs without the mode.
    """
    base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
    operator_class = torch._ops.OpOverload
    plain_types = (torch.Tensor, torch.nn.Parameter)
    hide_functions = torch._C.DisableTorchFunction

    class CountingMode(base):  # type: ignore[misc]
        """Calls each operator as it is, and then looks at it."""

        supports_higher_order_operators = True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Return False: else torch would load its compiler at the first operator."""
            return False

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Return True: torch.compile works as it would without this mode."""
            return True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if not isinstance(func, operator_class):
                name_whole(func)
                return func(*args, **kwargs)
            for one in types:
                if one not in plain_types and _has_own_dispatch(torch, one):
                    return NotImplemented  # its inner operators on plain tensors come here
            if func.namespace not in BUILT_IN:
                # The kernel may be in Python, and may rely on the function modes of the script.
                result = func(*args, **kwargs)
                with hide_functions():
                    take(func, args, kwargs, result)
                return result
            # The function modes and the tensor classes of the script do not notice the detour.
            with hide_functions():
                result = func(*args, **kwargs)
                take(func, args, kwargs, result)
            return result

    return CountingMode()


def _has_own_dispatch(torch: Any, tensor_class: Any) -> bool:
    """Return whether a class of tensors runs operators in its own way."""
    own = getattr(tensor_class, "__torch_dispatch__", None)
    return own is not torch._C._disabled_torch_dispatch_impl


def push(torch: Any, mode: Any) -> None:
    """Put a mode on top of the stack of this thread."""
    torch._C._push_on_torch_dispatch_stack(mode)


def is_pushed(torch: Any, mode: Any) -> bool:
    """Return whether a mode is in the stack of this thread."""
    count = torch._C._len_torch_dispatch_stack()
    return any(torch._C._get_dispatch_stack_at(index) is mode for index in range(count))


def remove(torch: Any, mode: Any) -> bool:
    """Remove a mode from the stack of this thread, wherever it is; return whether it was there."""
    if not is_pushed(torch, mode):
        return False
    above = []
    while True:
        top = _pop(torch)
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_dispatch_stack(other)
    return True


def _pop(torch: Any) -> Any:
    """Pop the top mode of this thread; older versions of torch have no kinds of modes to choose."""
    try:
        return torch._C._pop_torch_dispatch_stack(None)
    except TypeError:
        return torch._C._pop_torch_dispatch_stack()


def remove_soon(torch: Any, mode: Any) -> None:
    """Remove a mode as soon as the operator that runs now has ended.

    While an operator runs in the mode, torch has taken the mode off the stack, and puts it back
    afterwards. The next call or return after that is the first moment at which it can be removed.
    """
    if sys.getprofile() is not None:
        return  # the script has a profiler of its own, so the mode stays until the end of the step

    def notice(frame: Any, event: str, arg: Any) -> None:
        if remove(torch, mode):
            sys.setprofile(None)

    sys.setprofile(notice)
