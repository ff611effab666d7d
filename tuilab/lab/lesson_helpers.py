"""Helpers for lessons: errors and warnings of calls, limits of values, busy neighbours, sweeps."""

import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

import torch

from tuilab.engine import processes
from tuilab.errors import TuilabError
from tuilab.lab.arguments import describe_value, number_in, truth, whole
from tuilab.lab.failures.failure import text_of

_HALVINGS = 40  # of a range of floats: until a millionth of a millionth of it is left
# An interpreter that prints a byte when it begins, and then keeps a core busy.
_SPIN = "import os; os.write(1, b'.')\nwhile True: pass"
T = TypeVar("T")
Tell = Callable[[int, int, str], object]  # gets the number done, the total, and the unit


def raised_by(f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Return the error of a call as `TypeError: first line`; empty if it raised none.

    Errors of tuilab are raised.
    """
    try:
        f(*args)
    except TuilabError:
        raise
    except Exception as problem:
        complaint = _describe(type(problem), text_of(problem))
        # An error that refers to itself would keep the local variables of the call alive.
        traceback.clear_frames(problem.__traceback__)
        return complaint
    return ""


def warned_by(f: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return the warnings of a call, each as `UserWarning: first line`, also repeated ones."""
    was_always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(*args)
    finally:
        torch.set_warn_always(was_always)
    return [_describe(warning.category, str(warning.message)) for warning in caught]


def _describe(kind: type[BaseException], text: str) -> str:
    """Return an error in one line, without lone surrogates, which a claim cannot hold."""
    lines = text.strip().splitlines()
    if not lines:
        return kind.__name__
    first = lines[0].encode(errors="backslashreplace").decode()
    return f"{kind.__name__}: {first}"


def find_limit(works: Callable[[Any], Any], low: float, high: float) -> float:
    """Return the largest value that works, between `low`, which does, and `high`, which does not.

    It is a whole number if both are. Raises TypeError or ValueError for other limits.
    """
    is_whole = _is_whole(low) and _is_whole(high)
    least: float
    most: float
    if is_whole:
        least = whole("low", low, -(10**30), 10**30)
        most = whole("high", high, -(10**30), 10**30)
    else:
        least = number_in("low", low, -1e300, 1e300)
        most = number_in("high", high, -1e300, 1e300)
    if not least < most:
        raise ValueError(
            f"low takes a value below high, not {describe_value(low)} with"
            f" high={describe_value(high)}"
        )
    if not _does(works, least):
        raise ValueError(
            f"low takes a value that works, but {least:g} does not; choose another low"
        )
    if _does(works, most):
        raise ValueError(
            f"high takes a value that does not work, but {most:g} does; choose a larger high"
        )
    if is_whole:
        return _halve_whole(works, least, most)
    return _halve(works, least, most)


def _halve_whole(works: Callable[[Any], Any], works_at: Any, fails_at: Any) -> int:
    """Return the largest whole number that works, from `works_at` up to below `fails_at`."""
    while fails_at - works_at > 1:
        middle = (works_at + fails_at) // 2
        if _does(works, middle):
            works_at = middle
        else:
            fails_at = middle
    return int(works_at)


def _halve(works: Callable[[Any], Any], works_at: float, fails_at: float) -> float:
    """Return about the largest number that works, after so many halvings of the range."""
    for _ in range(_HALVINGS):
        middle = (works_at + fails_at) / 2
        if _does(works, middle):
            works_at = middle
        else:
            fails_at = middle
    return works_at


def _does(works: Callable[[Any], Any], value: Any) -> bool:
    return truth("works", works(value))


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Keep so many other processes busy in a `with` block, which begins when all are busy.

    They end with it, or with this process. Raises RuntimeError if one ends before it is busy.
    """
    with ExitStack() as stack:
        neighbours = [stack.enter_context(_spinning()) for _ in range(count)]
        for process in neighbours:
            if process.stdout is None or not process.stdout.read(1):
                raise RuntimeError(
                    f"a busy neighbour ended with exit code {process.wait()} before it was busy"
                )
        yield


@contextmanager
def _spinning() -> Iterator["subprocess.Popen[bytes]"]:
    """Keep another process busy in a `with` block; it prints a byte when it begins."""
    follow = partial(processes.die_with_parent, os.getpid())
    command = [sys.executable, "-I", "-S", "-c", _SPIN]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=follow
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def swept(values: Iterable[T], unit: str, tell: Tell) -> Iterator[T]:
    """Yield values one after another, and report each that is done.

    Raises TypeError, before the first value, if `values` is a text or no list.
    """
    if isinstance(values, range):  # it may be long, so no list is made of it
        return _each(values, unit, tell)
    try:
        if isinstance(values, str | bytes):
            raise TypeError("a text is one value")
        return _each(list(values), unit, tell)
    except TypeError as problem:
        raise TypeError(
            f"values takes a list of values, for example [1, 10, 100], not {describe_value(values)}"
        ) from problem


def _each(values: "list[T] | range", unit: str, tell: Tell) -> Iterator[T]:
    total = len(values)
    for done, value in enumerate(values, 1):
        yield value  # type: ignore[misc]  # those of a range are integers
        tell(done, total, unit)
