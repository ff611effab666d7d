"""How verdicts and states look on the screens: a mark and a colour, never the colour alone."""

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
    """Return the mark of a verdict; of none, a space."""
    return Content.styled("…", "dim") if verdict == "pending" else Content.styled(*_mark(verdict))


def verdict_words(verdict: str) -> Content:
    """Return a verdict with its mark."""
    sign, style = _mark(verdict)
    return Content.styled(f"{sign} {verdict.lower()}", style)


def tally(verdicts: Iterable[str], between: str = " ") -> Content:
    """Return how many verdicts there are of each mark: `3 ✓ 1 ✗`."""
    counts = count_marks(verdicts)
    return Content(" ").join(
        Content.assemble(f"{count}{between}", mark(verdict)) for verdict, count in counts
    )


def state_words(state: str) -> Content:
    """Return the state of a run with its mark."""
    sign, style = _STATES.get(state, ("!", "$text-error"))
    return Content.styled(f"{sign} {show(state)}", style)


def to_content(text: str, limit: int | None = None, style: str = "") -> Content:
    """Return a text from anywhere as something that can be shown: no markup, no control characters."""
    safe = show(text, limit) if limit else show(text)
    return Content.styled(safe, style) if style else Content(safe)


def _mark(verdict: str) -> tuple[str, str]:
    """Return the mark of a verdict and its colour; a space for a word that is none."""
    if verdict in (RUNNING, QUEUED):
        return _STATES[verdict]
    sign, _, kind = VERDICT_MARKS.get(verdict, (" ", "", "none"))
    return sign, _COLOURS[kind]
