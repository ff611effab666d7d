"""Make the record of a failure: its exception, the traceback with all causes, and a hint."""

import os
from itertools import pairwise
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, extract_tb
from typing import Any

from tuilab.lab.failures.hints import hint_for, is_gpu_full, is_of_cuda
from tuilab.record import events

# Characters, each of up to six bytes in a record.
_TRACEBACK_LIMIT = 8_000
_MESSAGE_LIMIT = 2_000
_MOST = 100  # exceptions of a chain
_PACKAGE = str(Path(__file__).parents[2]) + os.sep  # frames below this folder are ours


def describe(problem: BaseException, source: Path, source_dir: str = "") -> events.ScenarioFailed:
    """Return the record of an exception and its causes; `source` is the copy of the scenario."""
    text = _traceback(problem, str(source)).replace(str(source), "scenario.py")
    if len(text) > _TRACEBACK_LIMIT:
        text = text[: _TRACEBACK_LIMIT // 2] + "\n…\n" + text[-_TRACEBACK_LIMIT // 2 :]
    first = first_of(problem)
    return events.ScenarioFailed(
        type=name_of(first)[:200],
        message=text_of(first)[:_MESSAGE_LIMIT],
        traceback=text,
        hint=_first_hint([first, *chain_of(problem)]),
        source_dir=source_dir if source_dir.isprintable() else "",
    )


def _first_hint(errors: list[BaseException]) -> str:
    for error in errors:
        hint = hint_for(error, text_of(error))
        if hint:
            return hint
    return ""


def reason_of(problem: BaseException) -> str:
    """Return a failure in one line."""
    first = first_of(problem)
    lines = text_of(first).splitlines()
    first_line = lines[0][:300] if lines else ""
    return f"{name_of(first)[:200]}: {first_line}"


def is_of_full_gpu(problem: BaseException) -> bool:
    """Say whether the memory of a GPU was full."""
    return any(is_gpu_full(error, text_of(error)) for error in chain_of(problem))


def first_of(problem: BaseException) -> BaseException:
    """Return the exception of a chain that names the failure.

    After an error of CUDA every call of it fails, also in clean-up code, so the earlier one counts.
    """
    chain = chain_of(problem)
    for later, _ in pairwise(chain):
        if _field(later, "__cause__") is not None or not is_of_cuda(later, text_of(later)):
            return later
    return chain[-1]


def chain_of(problem: BaseException) -> list[BaseException]:
    """Return an exception with its causes and contexts, the last one first."""
    chain = [problem]
    while len(chain) < _MOST:
        cause = _cause_of(chain[-1])
        if cause is None or any(cause is error for error in chain):
            break
        chain.append(cause)
    return chain


def text_of(problem: BaseException) -> str:
    """Return the message of an exception, even if its class raises another error."""
    try:
        return str.__str__(str(problem))  # the text may be of a subclass with its own code
    except BaseException as worse:  # also KeyboardInterrupt, which its class may raise
        return f"(its text cannot be read: {name_of(worse)})"


def exit_code_of(leaving: Any) -> int | None:
    """Return the exit code of SystemExit; None if it is no number, or cannot be read."""
    try:
        code = leaving.code
        if code is None:
            return 0
        return int.__int__(code) if isinstance(code, int) else None
    except BaseException:  # a subclass may run its own code here
        return None


def name_of(problem: BaseException) -> str:
    """Return the name of the class of an exception, without running code of a metaclass."""
    return str(type.__dict__["__name__"].__get__(type(problem)))


def _traceback(problem: BaseException, source: str) -> str:
    """Return the traceback of an exception; if Python cannot print it, only its frames and name."""
    try:
        return "".join(_without_our_frames(problem, source).format())
    except BaseException as worse:
        where = "".join(StackSummary.from_list(_frames(problem, source)).format())
        return (
            f"{where}{name_of(problem)}: {text_of(problem)}\n(the rest cannot be read:"
            f" {name_of(worse)})"
        )


def _without_our_frames(problem: BaseException, source: str) -> TracebackException:
    """Return the traceback of an exception and its causes without our frames and inner errors."""
    whole = formatted = TracebackException(type(problem), problem, _field(problem, "__traceback__"))
    while True:
        formatted.stack = StackSummary.from_list(_frames(problem, source))
        cause = _cause_of(problem)
        formatted_cause = _cause_of(formatted)
        has_cause = formatted_cause is not None and _field(problem, "__cause__") is not None
        if has_cause and _is_raised_by_us(problem):
            # Leave out the inner error from which we raised ours.
            cause = _cause_of(cause)
            formatted_cause = _cause_of(formatted_cause)
            formatted.__cause__ = None
            formatted.__context__ = formatted_cause
            formatted.__suppress_context__ = False
        if cause is None or formatted_cause is None:
            return whole
        problem = cause
        formatted = formatted_cause


def _cause_of(problem: Any) -> Any:
    """Return the cause of an exception, or else its context; also of a TracebackException."""
    cause = _field(problem, "__cause__")
    if cause is not None or _field(problem, "__suppress_context__"):
        return cause
    return _field(problem, "__context__")


def _field(problem: Any, name: str) -> Any:
    """Return a field of an exception, without running code of its class."""
    if issubclass(type(problem), BaseException):
        return BaseException.__dict__[name].__get__(problem)
    return getattr(problem, name)


def _frames(problem: BaseException, source: str) -> list[FrameSummary]:
    """Return the frames of a traceback from the scenario on, without ours unless the fault is ours.

    An error that we raise is about an argument of the scenario.
    """
    frames = list(extract_tb(_field(problem, "__traceback__")))
    for index, frame in enumerate(frames):
        if frame.filename == source:
            frames = frames[index:]
            break
    if not frames:
        return []
    is_our_fault = _is_ours(frames[-1]) and not _is_raised_by_us(problem)
    if is_our_fault:
        return frames
    return [frame for frame in frames if not _is_ours(frame)]


def _is_raised_by_us(problem: BaseException) -> bool:
    frames = extract_tb(_field(problem, "__traceback__"))
    if not frames:
        return False
    return _is_ours(frames[-1]) and (frames[-1].line or "").startswith("raise")


def _is_ours(frame: FrameSummary) -> bool:
    return frame.filename.startswith(_PACKAGE)
