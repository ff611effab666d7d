"""The history of a claim as text, with a chart of its estimates."""

from tuilab.drawings.glyphs import Style
from tuilab.drawings.text_chart import line_chart
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series
from tuilab.record.verdicts import NOT_JUDGED
from tuilab.reports.comparison_words import side_words
from tuilab.reports.result import with_key
from tuilab.runs.comparing.claim_history import ClaimHistory, HistoryEntry
from tuilab.runs.comparing.differences import Difference
from tuilab.runs.run_name import RunName
from tuilab.text.display import brief, show

_CHANGES = 4  # that are told of one run
_VALUE = 40  # characters of what changed
_HEIGHT = 14


def render(history: ClaimHistory, style: Style, width: int) -> str:
    """Return the history for people: the claim, its estimates along the runs, and a line about each run."""
    name = f"{show(history.scenario, 60)}  {show(with_key(history.key, history.text), 300)}"
    lines = [style.bold(style.dim_key(history.key, name))]
    if chart := line_chart(
        _lines(history), min(width, 100), _HEIGHT, axes=_axes(history), is_utf8=style.is_utf8
    ):
        lines += ["", chart, ""]
    for at, moment in enumerate(history.moments, 1):
        lines += _moment(at, moment, style)
    return "\n".join(lines)


def _moment(at: int, moment: HistoryEntry, style: Style) -> list[str]:
    name = RunName(moment.run_dir.name)
    line = f"{at:>3}  {show(name.id, 20)}  {name.started:17}  {style.mark(moment.side.verdict)} {side_words(moment.side)}"
    left = len(moment.changes) - _CHANGES
    changes = [_change(row) for row in moment.changes[:_CHANGES]] + (
        [f"and {left} more"] if left > 0 else []
    )
    return [
        line,
        *(
            style.dim(f"     {'since the previous run: ' if not at else ''}{words}")
            for at, words in enumerate(changes)
        ),
    ]


def _change(row: Difference) -> str:
    before, after = (show(value, _VALUE) for value in row.values)
    return f"{row.part} {show(row.name, 60)}: {before} -> {after}"


def _axes(history: ClaimHistory) -> AxesNamed:
    return AxesNamed(metric="estimate", x="run, the oldest first", y="estimate")


def _lines(history: ClaimHistory) -> list[Series]:
    """Return the estimates, the ends of their intervals, and what is claimed, along the runs."""
    names = ("estimate", "low", "high", "claimed")
    found = {name: Series("estimate", arm=name) for name in names}
    for at, moment in enumerate(history.moments, 1):
        side = moment.side
        for name, value in zip(
            names, (side.estimate, side.low, side.high, history.bound), strict=True
        ):
            if value is not None:
                found[name].add(at, 0, value)
    return [line for line in found.values() if line.count]


def summed_up(history: ClaimHistory) -> str:
    """Return how often it was judged, and the range of its estimates, in a line."""
    estimates = [one.side.estimate for one in history.moments if one.side.estimate is not None]
    verdicts = [one.side.verdict for one in history.moments]
    told = ", ".join(
        f"{verdicts.count(one)} {show(one or NOT_JUDGED, 40)}" for one in dict.fromkeys(verdicts)
    )
    reach = f"; from {brief(min(estimates))} to {brief(max(estimates))}" if estimates else ""
    return f"{told}{reach}"
