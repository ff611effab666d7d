"""The record of a failure: which exception it is named after, the traceback of all of them, and what to do about it."""

import os
from itertools import pairwise
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, extract_tb
from typing import Any

from tuilab.lab.failures.hints import hint_for, is_gpu_full, is_of_cuda
from tuilab.record import events

# Characters; one may take six bytes in a record, and a record has a limit.
_TRACEBACK_LIMIT = 8_000
_MESSAGE_LIMIT = 2_000
_MOST = 100  # exceptions of a chain
_PACKAGE = str(Path(__file__).parents[2]) + os.sep


def describe(problem: BaseException, source: Path, source_dir: str = "") -> events.ScenarioFailed:
    """Return the record of an exception, and of those before it; `source` is the copy of a file in `source_dir`."""
    text = _traceback(problem, str(source)).replace(str(source), "scenario.py")
    if len(text) > _TRACEBACK_LIMIT:
        text = text[: _TRACEBACK_LIMIT // 2] + "\n…\n" + text[-_TRACEBACK_LIMIT // 2 :]
    first = first_of(problem)
    message, name = text_of(first)[:_MESSAGE_LIMIT], name_of(first)[:200]
    hints = [hint_for(error, text_of(error)) for error in (first, *chain_of(problem))]
    hint = next(filter(None, hints), "")
    return events.ScenarioFailed(
        type=name, message=message, traceback=text, hint=hint, source_dir=_recordable(source_dir)
    )


def _recordable(path: str) -> str:
    """Return a path, or nothing where it has bytes that no record can hold."""
    return path if path.isprintable() else ""


def reason_of(problem: BaseException) -> str:
    """Return a failure in one line."""
    first = first_of(problem)
    return f"{name_of(first)[:200]}: {(text_of(first).splitlines() or [''])[0][:300]}"


def is_of_full_gpu(problem: BaseException) -> bool:
    """Say whether the memory of a GPU did not suffice."""
    return any(is_gpu_full(error, text_of(error)) for error in chain_of(problem))


def first_of(problem: BaseException) -> BaseException:
    """Return the exception that a failure is named after.

    After an error of CUDA each of its calls fails, those that clean up, too: what went wrong is what came before.
    """
    chain = chain_of(problem)
    for later, _ in pairwise(chain):
        if _field(later, "__cause__") is not None or not is_of_cuda(later, text_of(later)):
            return later
    return chain[-1]


def chain_of(problem: BaseException) -> list[BaseException]:
    """Return an exception and those that it was raised from, or while they were handled: the last one first."""
    chain = [problem]
    while (
        (cause := _before(chain[-1])) is not None
        and len(chain) < _MOST
        and not any(cause is error for error in chain)
    ):
        chain.append(cause)
    return chain


def text_of(problem: BaseException) -> str:
    """Return what an exception says; its class may be unable to."""
    try:
        return str.__str__(str(problem))  # which may be a text with code of its own
    except BaseException as worse:  # KeyboardInterrupt, too: nobody has pressed anything
        return f"(its text cannot be read: {name_of(worse)})"


def exit_code_of(leaving: Any) -> int | None:
    """Return the code that an exit asks for; None where that is no number, or cannot be told."""
    try:
        code = leaving.code
        return 0 if code is None else int.__int__(code) if isinstance(code, int) else None
    except BaseException:  # its class, or that of the code, has code of its own there
        return None


def name_of(problem: BaseException) -> str:
    """Return the name of an exception's class, whatever the class of that class says."""
    return str(type.__dict__["__name__"].__get__(type(problem)))


def _traceback(problem: BaseException, source: str) -> str:
    """Return the traceback of an exception; of one that Python itself cannot print only where it was raised, and its name."""
    try:
        return "".join(_told(problem, source).format())
    except BaseException as worse:
        where = "".join(StackSummary.from_list(_frames(problem, source)).format())
        return (
            f"{where}{name_of(problem)}: {text_of(problem)}\n(the rest cannot be read:"
            f" {name_of(worse)})"
        )


def _told(problem: BaseException, source: str) -> TracebackException:
    """Return what Python prints of an exception and those before it: without our frames, and what our refusals come from."""
    whole = formatted = TracebackException(type(problem), problem, _field(problem, "__traceback__"))
    while True:
        formatted.stack = StackSummary.from_list(_frames(problem, source))
        cause, told_before = _before(problem), _before(formatted)
        if (
            told_before is not None
            and _field(problem, "__cause__") is not None
            and _is_raised_by_us(problem)
        ):
            cause, told_before = _before(cause), _before(told_before)
            formatted.__cause__, formatted.__context__, formatted.__suppress_context__ = (
                None,
                told_before,
                False,
            )
        if cause is None or told_before is None:
            return whole
        problem, formatted = cause, told_before


def _before(problem: Any) -> Any:
    """Return what an exception was raised from, or while it was handled; of what is told of one, what is told of that."""
    cause = _field(problem, "__cause__")
    return (
        cause
        if cause is not None or _field(problem, "__suppress_context__")
        else _field(problem, "__context__")
    )


def _field(problem: Any, name: str) -> Any:
    """Return what an exception holds, which its class may have hidden behind code of its own."""
    return (
        BaseException.__dict__[name].__get__(problem)
        if issubclass(type(problem), BaseException)
        else getattr(problem, name)
    )


def _frames(problem: BaseException, source: str) -> list[FrameSummary]:
    """Return the frames of a traceback from the scenario on: without ours, unless the fault is ours.

    What we raise ourselves is the refusal of what the scenario handed in.
    """
    frames = list(extract_tb(_field(problem, "__traceback__")))
    first = next((index for index, frame in enumerate(frames) if frame.filename == source), 0)
    is_refusal = bool(frames) and (not _is_ours(frames[-1]) or _is_raised_by_us(problem))
    return [frame for frame in frames[first:] if not (is_refusal and _is_ours(frame))]


def _is_raised_by_us(problem: BaseException) -> bool:
    return any(
        _is_ours(frame) and (frame.line or "").startswith("raise")
        for frame in extract_tb(_field(problem, "__traceback__"))[-1:]
    )


def _is_ours(frame: FrameSummary) -> bool:
    return frame.filename.startswith(_PACKAGE)
