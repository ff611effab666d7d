"""Keeps out of what torch compiles: a hook that is traced would be compiled anew at every step, and change what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from .importlib_bootstrap import our_functions


def is_compiling_of(torch: Any) -> Callable[[], bool]:
    """Return what says whether torch traces who asks, the cheapest that it has; the oldest have none."""
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
    """Have our own functions run as they are where a compiled function calls them between two of its graphs."""
    inside: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    for code in _our_code():
        if hasattr(inside, "skip_code"):  # up to 2.5
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
