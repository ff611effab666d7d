"""The history of a claim as text, with a chart of its estimates."""

from collections import Counter

from tuilab.drawings.glyphs import Style
from tuilab.drawings.text_chart import line_chart
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series
from tuilab.record.verdicts import NOT_JUDGED
from tuilab.reports.comparison_words import side_words
from tuilab.reports.result import with_key
from tuilab.runs.comparing.claim_history import ClaimHistory, HistoryEntry
from tuilab.runs.run_name import RunName
from tuilab.text.display import brief, show

_MOST_CHANGES = 4  # of one run
_VALUE_WIDTH = 40  # characters of a value that changed
_CHART_WIDTH = 100
_CHART_HEIGHT = 14


def render(history: ClaimHistory, style: Style, width: int) -> str:
    """Return the history for people: the claim, a chart of its estimates, and a line a run."""
    claim = show(with_key(history.key, history.text), 300)
    lines = [style.bold(style.dim_key(history.key, f"{show(history.scenario, 60)}  {claim}"))]
    chart = line_chart(
        _curves(history),
        min(width, _CHART_WIDTH),
        _CHART_HEIGHT,
        axes=AxesNamed(metric="estimate", x="run, the oldest first", y="estimate"),
        is_utf8=style.is_utf8,
    )
    if chart:
        lines += ["", chart, ""]
    for number, entry in enumerate(history.moments, 1):
        lines.append(_describe_run(number, entry, style))
        for line in _describe_changes(entry):
            lines.append(style.dim(f"     {line}"))
    return "\n".join(lines)


def _curves(history: ClaimHistory) -> list[Series]:
    """Return the estimates, the ends of their intervals, and the claimed bound, along the runs."""
    curves = [Series("estimate", arm=name) for name in ("estimate", "low", "high", "claimed")]
    for number, entry in enumerate(history.moments, 1):
        side = entry.side
        values = (side.estimate, side.low, side.high, history.bound)
        for curve, value in zip(curves, values, strict=True):
            if value is not None:
                curve.add(number, 0, value)
    return [curve for curve in curves if curve.count]


def _describe_run(number: int, entry: HistoryEntry, style: Style) -> str:
    """Return the line of a run: its number, id and start, and what it found for the claim."""
    name = RunName(entry.run_dir.name)
    verdict = f"{style.mark(entry.side.verdict)} {side_words(entry.side)}"
    return f"{number:>3}  {show(name.id, 20)}  {name.started:17}  {verdict}"


def _describe_changes(entry: HistoryEntry) -> list[str]:
    """Return what changed since the previous run, a line each."""
    lines = []
    for difference in entry.changes[:_MOST_CHANGES]:
        old, new = [show(value, _VALUE_WIDTH) for value in difference.values]
        lines.append(f"{difference.part} {show(difference.name, 60)}: {old} -> {new}")
    left_out = len(entry.changes) - _MOST_CHANGES
    if left_out > 0:
        lines.append(f"and {left_out} more")
    if lines:
        lines[0] = f"since the previous run: {lines[0]}"
    return lines


def summed_up(history: ClaimHistory) -> str:
    """Return how often the claim had each verdict, and the range of its estimates, in a line."""
    sides = [entry.side for entry in history.moments]
    counts = Counter(side.verdict for side in sides)
    words = []
    for verdict, count in counts.items():
        words.append(f"{count} {show(verdict or NOT_JUDGED, 40)}")
    line = ", ".join(words)
    estimates = [side.estimate for side in sides if side.estimate is not None]
    if estimates:
        line += f"; from {brief(min(estimates))} to {brief(max(estimates))}"
    return line
