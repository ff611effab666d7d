"""Keep the watcher out of what torch compiles.

If torch traced a hook, it would compile the hook again at every step. That would change what is
measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from .importlib_bootstrap import our_functions


def is_compiling_of(torch: Any) -> Callable[[], bool]:
    """Return the cheapest function of torch that says whether torch traces the caller.

    The oldest versions of torch have none. For them, return a function that always says no.
    """
    compiler = getattr(torch, "compiler", None)
    utils = getattr(torch, "_utils", None)
    cheapest_first = (
        (compiler, "is_dynamo_compiling"),
        (compiler, "is_compiling"),
        (utils, "is_compiling"),
    )
    for module, name in cheapest_first:
        is_compiling: Callable[[], bool] | None = getattr(module, name, None)
        if is_compiling is not None:
            return is_compiling
    return never


def never() -> bool:
    """Return False: torch compiles nothing, or has no function that says so."""
    return False


def has_compiled() -> bool:
    """Return whether torch.compile has compiled anything, or has tried to."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return bool(counters.get("frames"))


def keep_out(torch: Any) -> None:
    """Have torch run the watcher's functions as they are.

    A compiled function may call them between two of its graphs.
    """
    dynamo = getattr(torch._C, "_dynamo", None)
    eval_frame: Any = getattr(dynamo, "eval_frame", None)
    for code in _our_code():
        if hasattr(eval_frame, "skip_code"):  # torch up to 2.5
            eval_frame.skip_code(code)
        elif hasattr(eval_frame, "set_code_exec_strategy"):
            actions = eval_frame._FrameAction
            strategy = eval_frame._FrameExecStrategy(actions.SKIP, actions.DEFAULT)
            eval_frame.set_code_exec_strategy(code, strategy)


def _our_code() -> Iterator[CodeType]:
    """Yield the code of all functions of the watcher."""
    for function in our_functions():
        yield from _with_inner(function.__code__)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and those of the functions that it makes."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
