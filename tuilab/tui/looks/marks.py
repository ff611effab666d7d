"""Marks and colours of verdicts and states on the screens; never a colour alone.

A mark is a single sign, such as `✓` for a supported claim.
"""

from collections.abc import Iterable

from textual.content import Content

from tuilab.drawings.glyphs import VERDICT_MARKS, Kind, count_marks
from tuilab.record.states import RunState
from tuilab.record.verdicts import QUEUED, RUNNING
from tuilab.text.display import show

_COLOURS: dict[Kind, str] = {
    "good": "$text-success",
    "fair": "$text-warning",
    "bad": "$text-error",
    "open": "$text-warning",
    "none": "dim",
}
_STATES: dict[str, tuple[str, str]] = {
    RunState.QUEUED: ("○", "$text-muted"),
    RunState.STARTING: ("○", "$text-primary"),
    RunState.RUNNING: ("●", "$text-primary"),
    RunState.STOPPING: ("●", "$text-warning"),
    RunState.SUCCEEDED: ("✓", "$text-success"),
    RunState.STOPPED: ("■", "$text-warning"),
}


def mark(verdict: str) -> Content:
    """Return the mark of a verdict: an ellipsis for "pending", a space for an unknown word."""
    if verdict == "pending":
        return Content.styled("…", "dim")
    sign, style = _mark(verdict)
    return Content.styled(sign, style)


def verdict_words(verdict: str) -> Content:
    """Return a verdict with its mark."""
    sign, style = _mark(verdict)
    return Content.styled(f"{sign} {verdict.lower()}", style)


def tally(verdicts: Iterable[str], separator: str = " ") -> Content:
    """Return how often each mark occurs: `3 ✓ 1 ✗`; the separator is before each mark."""
    parts = []
    for verdict, count in count_marks(verdicts):
        parts.append(Content.assemble(f"{count}{separator}", mark(verdict)))
    return Content(" ").join(parts)


def state_words(state: str) -> Content:
    """Return the state of a run with its mark."""
    sign, style = _STATES.get(state, ("!", "$text-error"))
    return Content.styled(f"{sign} {show(state)}", style)


def to_content(text: str, limit: int | None = None, style: str = "") -> Content:
    """Return a text from anywhere, safe to show: without markup and control characters."""
    safe_text = show(text, limit) if limit else show(text)
    if not style:
        return Content(safe_text)
    return Content.styled(safe_text, style)


def _mark(verdict: str) -> tuple[str, str]:
    """Return the mark of a verdict and its colour; a space for an unknown word."""
    if verdict in (RUNNING, QUEUED):
        return _STATES[verdict]
    sign, _, kind = VERDICT_MARKS.get(verdict, (" ", "", "none"))
    return sign, _COLOURS[kind]
