"""Where the panes of a run stand: which there are, in which order, how many columns each spans, and how high the rows are."""

from collections.abc import Collection, Sequence

from tuilab.drawings.gpu_strips import has_strips
from tuilab.record.blocks import has_times
from tuilab.record.summary import RunSummary
from tuilab.record.told import neighbour_notes
from tuilab.tui.widgets.run.series import names_of

_MOST_SERIES = 6
_MANY = 5  # panes, that need three rows
_HIGH = 36  # lines of a screen that shows two rows of panes and more below them
_LEAST_ROW = 9  # lines that a chart needs
_ROOMY_ROW = 8  # from so many lines on, rows share the height


def columns_of(width: int) -> int:
    """Return how many panes stand beside each other on a screen of that width."""
    return 1 if width < 70 else 2 if width < 170 else 3


def spans_of(summary: RunSummary, columns: int, height: int, *, has_notes: bool) -> dict[str, int]:
    """Return the names of the panes in their order, each with the columns that it spans; why the run failed comes first."""
    above = {"failure": columns} if summary.failure else {}
    return above | _spans_of_rest(summary, columns, height, has_notes=has_notes)


def _spans_of_rest(summary: RunSummary, columns: int, height: int, *, has_notes: bool) -> dict[str, int]:
    """Return the panes of any run.

    What the author chose to show stands before what every run has to show, and the claims, which are the answer, on top.
    """
    charts = [f"series {name}" for name in names_of(summary)[:_MOST_SERIES]]
    charts += ["timings"] if has_times(summary) else []
    charts += ["gpu"] if has_strips(summary) else []
    rest = ["pictures"] if summary.images else []
    rest += ["notes"] if summary.texts or has_notes or neighbour_notes(summary) else []
    figures = ["figures"] if summary.figures or summary.spans else []
    if columns == 1:
        return _filled([*charts[:1], "claims", *figures, "memory", *charts[1:], *rest], columns, height)
    if figures:
        beside = charts[1:2] or ["memory"]
        rest = [*charts[2:], *(["memory"] if charts[1:2] else []), *rest]
        return _filled([*charts[:1], *figures, *beside, "claims", *rest], columns, height)
    return _filled([*charts[:1], "memory", *charts[1:2], "claims", *charts[2:], *rest], columns, height)


def tall_of(panes: Collection[str], columns: int, height: int) -> set[str]:
    """Return which of the panes take two rows: the claims, which are what the run is made for, and on a high screen figures."""
    if columns == 1 or len(set(panes) - {"output", "failure"}) < _MANY:
        return set()
    return {"claims", "figures"} & set(panes) if height >= _HIGH else {"claims"}


def rows_of(spans: dict[str, int], columns: int, height: int) -> str:
    """Return the height of the rows as Textual wants it: they share what there is, each at least as high as a chart needs."""
    cells = sum(spans.values()) - spans["output"] + len(tall_of(spans, columns, height))
    rows = -(-cells // columns)
    output = 6 if height < 30 else 9
    room = (max(height - 2, 1) - output) // max(rows, 1)
    return " ".join([*["1fr" if room >= _ROOMY_ROW else str(_LEAST_ROW)] * rows, str(output)])


def _filled(order: Sequence[str], columns: int, height: int) -> dict[str, int]:
    """Return the columns that each pane spans, so that no place stays empty."""
    spans = dict.fromkeys(order, 1)
    if free := -(len(order) + len(tall_of(order, columns, height))) % columns:
        spans[order[-1]] += free
    return {**spans, "output": columns}
