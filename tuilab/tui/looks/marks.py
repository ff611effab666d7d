"""How verdicts and states look on the screens: a mark and a colour, never the colour alone."""

from textual.content import Content

from tuilab.record.states import RunState
from tuilab.text import show

_VERDICTS = {
    "SUPPORTED": ("✓", "$text-success"),
    "WEAKER THAN CLAIMED": ("≈", "$text-warning"),
    "NO MEANINGFUL DIFFERENCE": ("≈", "$text-warning"),
    "REFUTED": ("✗", "$text-error"),
    "INCONCLUSIVE": ("?", "$text-warning"),
    "INVALID": ("!", "$text-error"),
    "NOT TESTABLE HERE": ("–", "dim"),
    "FAILED": ("!", "$text-error"),
    "running": ("●", "$text-primary"),
}
_STATES: dict[str, tuple[str, str]] = {
    RunState.STARTING: ("○", "$text-primary"),
    RunState.RUNNING: ("●", "$text-primary"),
    RunState.STOPPING: ("●", "$text-warning"),
    RunState.SUCCEEDED: ("✓", "$text-success"),
    RunState.STOPPED: ("■", "$text-warning"),
}


def mark(verdict: str) -> Content:
    """Return the mark of a verdict; of none, a space."""
    return Content.styled(*_VERDICTS.get(verdict, ("…" if verdict == "pending" else " ", "dim")))


def verdict_words(verdict: str) -> Content:
    """Return a verdict with its mark."""
    sign, style = _VERDICTS.get(verdict, (" ", "dim"))
    return Content.styled(f"{sign} {verdict.lower()}", style)


def state_words(state: str) -> Content:
    """Return the state of a run with its mark."""
    sign, style = _STATES.get(state, ("!", "$text-error"))
    return Content.styled(f"{sign} {show(state)}", style)


def plain(text: str, limit: int | None = None, style: str = "") -> Content:
    """Return a text from anywhere as something that can be shown: no markup, no control characters."""
    safe = show(text, limit) if limit else show(text)
    return Content.styled(safe, style) if style else Content(safe)
