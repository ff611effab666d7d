"""Keep the watcher out of what torch compiles.

If torch traced a hook, it would compile the hook again at every step. That would change what is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from .importlib_bootstrap import our_functions


def is_compiling_of(torch: Any) -> Callable[[], bool]:
    """Return the cheapest function of torch that says whether torch traces the caller.

    The oldest versions of torch have none. For them, return a function that always says no.
    """
    compiler, utils = getattr(torch, "compiler", None), getattr(torch, "_utils", None)
    for place, name in (
        (compiler, "is_dynamo_compiling"),
        (compiler, "is_compiling"),
        (utils, "is_compiling"),
    ):
        found: Callable[[], bool] | None = getattr(place, name, None)
        if found is not None:
            return found
    return never


def never() -> bool:
    return False


def keep_out(torch: Any) -> None:
    """Have torch run the watcher's functions as they are.

    A compiled function may call them between two of its graphs.
    """
    inside: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    for code in _our_code():
        if hasattr(inside, "skip_code"):  # torch up to 2.5
            inside.skip_code(code)
        elif hasattr(inside, "set_code_exec_strategy"):
            skip = inside._FrameAction.SKIP
            inside.set_code_exec_strategy(
                code, inside._FrameExecStrategy(skip, inside._FrameAction.DEFAULT)
            )


def _our_code() -> Iterator[CodeType]:
    for function in our_functions():
        yield from _with_inner(function.__code__)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
