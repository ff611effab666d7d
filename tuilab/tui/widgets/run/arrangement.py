"""Where the panes of a run stand: which there are, in which order, how many columns each spans, and how high the rows are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tuilab.drawings.gpu_strips import has_strips
from tuilab.record.blocks import has_times
from tuilab.record.finding_words import neighbour_notes
from tuilab.record.summary import RunSummary

Cells = dict[tuple[int, int], str]  # column and row: the pane that stands there
# Panes that want as many lines as they have, but no more than so many.
TEXTS = {"failure": 99, "claims": 99, "notes": 16, "output": 7}
_MANY = 5  # panes, that need three rows
_HIGH = 36  # lines of a screen that shows two rows of panes and more below them
_LEAST_ROW, _GOOD_ROW = 9, 12  # lines that a chart needs, and has on a high screen
_TEXT_ROW = 12  # lines that are kept for texts where all panes are on the screen at once
_FRAME = 2


@dataclass(frozen=True)
class GridSize:
    """The lines and columns of the screen."""

    width: int
    height: int

    @property
    def columns(self) -> int:
        """How many panes stand beside each other."""
        return 1 if self.width < 70 else 2 if self.width < 170 else 3

    @property
    def most_charts(self) -> int:
        """How many names have a chart at a time."""
        return 11 if self.columns == 3 and self.height >= _HIGH else 6

    @property
    def lines(self) -> int:
        """The lines between the heading and the keys."""
        return max(self.height - 2, 1)


@dataclass(frozen=True)
class Arrangement:
    """The panes in their order with the columns that each spans, those of two rows, and the heights as Textual wants them."""

    spans: Mapping[str, int]
    tall: frozenset[str]
    rows: str


def arrange(
    summary: RunSummary,
    names: Sequence[str],
    room: GridSize,
    needs: Mapping[str, int],
    *,
    has_notes: bool,
) -> Arrangement:
    """Return where the panes stand; why the run failed comes first, across the screen and over not more than half of it."""
    if not summary.failure:
        return _arrange(summary, names, room, needs, has_notes=has_notes)
    lines = min(needs.get("failure", _LEAST_ROW) + _FRAME, max(room.lines // 2, _LEAST_ROW))
    rest = _arrange(
        summary,
        names,
        replace(room, height=max(room.height - lines, 1)),
        needs,
        has_notes=has_notes,
    )
    return Arrangement({"failure": room.columns, **rest.spans}, rest.tall, f"{lines} {rest.rows}")


def _arrange(
    summary: RunSummary,
    names: Sequence[str],
    room: GridSize,
    needs: Mapping[str, int],
    *,
    has_notes: bool,
) -> Arrangement:
    """Return where the panes stand, with a chart for each of some names; `needs` are the lines of the texts, as far as known.

    Where all fit on the screen, the texts stand below what is drawn, in a row as high as they need.
    """
    drawn, texts = _kinds(summary, names, has_notes=has_notes)
    upper = grid(drawn, room.columns)
    row = (room.lines - _TEXT_ROW) // upper.rows
    if "figures" in drawn[:2] and len(drawn) > 2 and needs.get("figures", 0) > row - _FRAME:
        upper = grid(drawn, room.columns, ["figures"])
    if (
        room.columns > 1
        and room.height >= _HIGH
        and (room.lines - _TEXT_ROW) // upper.rows >= _LEAST_ROW
    ):
        most = room.lines - upper.rows * _LEAST_ROW
        if len(texts) > room.columns:
            first, heights = texts[:1], _rows_beside(texts, needs, most)
            spans = {**upper.spans, **dict.fromkeys(texts, 1)}
        else:
            first, heights = [], [min(max(needs.get(name, 1) for name in texts) + _FRAME, most)]
            spans = {
                **upper.spans,
                **dict.fromkeys(texts, 1),
                texts[0]: room.columns - len(texts) + 1,
            }
        return Arrangement(
            spans, upper.tall.union(first), " ".join(["1fr"] * upper.rows + [*map(str, heights)])
        )
    return _below_each_other(drawn, texts, room, needs)


def _kinds(
    summary: RunSummary, names: Sequence[str], *, has_notes: bool
) -> tuple[list[str], list[str]]:
    """Return the panes that are drawn, and those of text; what the author chose to show stands before what every run has."""
    charts = [f"series {name}" for name in names]
    figures = ["figures"] if summary.figures or summary.spans else []
    charts += ["timings"] if has_times(summary) else []
    charts += ["gpu"] if has_strips(summary) else []
    pictures = ["pictures"] if summary.images else []
    has_notes = has_notes or bool(summary.texts or summary.alerts or neighbour_notes(summary))
    before = charts[:1] + figures + (charts[1:2] if figures else [])
    drawn = [*before, "memory", *(chart for chart in charts if chart not in before), *pictures]
    if (
        summary.run and summary.run.command and not summary.claims
    ):  # what it prints, until there is something to tell of it
        return drawn, ["notes", "output"] if has_notes else ["output", "notes"]
    return drawn, [
        "claims",
        *(["notes"] if has_notes or (summary.run and summary.run.command) else []),
        "output",
    ]


def _rows_beside(texts: Sequence[str], needs: Mapping[str, int], most: int) -> list[int]:
    """Return the heights of two texts below each other, beside the first, which is the answer and as high as both."""
    first, upper, lower = (needs.get(name, 1) + _FRAME for name in texts)
    lines = min(max(first, upper + lower), most)
    upper = min(upper, lines - lower)
    return [upper, lines - upper]


def _below_each_other(
    drawn: Sequence[str], texts: Sequence[str], room: GridSize, needs: Mapping[str, int]
) -> Arrangement:
    """Put the claims, which are the answer, on the first screen, of a command its notes; what does not fit is scrolled to."""
    at = 1 if room.columns == 1 else 3
    order = [*drawn[:at], *texts[:1], *drawn[at:], *texts[1:-1]]
    least = _GOOD_ROW if room.height >= _HIGH else _LEAST_ROW
    upper = grid(order, room.columns, _tall(order, room, needs, least))
    last = min(needs.get(texts[-1], 1) + _FRAME, 6 if room.height < 30 else 99)
    share = (room.lines - last) // max(upper.rows, 1)
    heights = ["1fr" if share >= least - 1 else str(least)] * upper.rows + [str(last)]
    return Arrangement({**upper.spans, texts[-1]: room.columns}, upper.tall, " ".join(heights))


def _tall(
    order: Sequence[str], room: GridSize, needs: Mapping[str, int], least: int
) -> frozenset[str]:
    """Return which panes take two rows: claims that need them, and on a high screen figures that do."""
    if room.columns == 1 or len(order) < _MANY:
        return frozenset()
    high = ["claims", *(["figures"] if room.height >= _HIGH else [])]
    return frozenset(name for name in high if name in order and needs.get(name, 0) > least - _FRAME)


@dataclass(frozen=True)
class Grid:
    """Where panes stand, one after another in rows, as Textual places them."""

    spans: dict[str, int]
    tall: frozenset[str]  # that are two rows high
    rows: int


def grid(order: Sequence[str], columns: int, tall: Collection[str] = ()) -> Grid:
    """Return where panes stand; where some being two rows high comes to nothing, none is."""
    cells = _placed(order, columns, tall)
    rows = max((row for _, row in cells), default=-1) + 1
    every = [(column, row) for row in range(rows) for column in range(columns)]
    is_whole = all(place in cells or _fill(cells, place) for place in every)
    if tall and (
        not is_whole
        or all(cells.get((column, 0)) == cells.get((column, 1)) for column in range(columns))
    ):
        return grid(order, columns)
    wide = {
        name: len({column for (column, _), one in cells.items() if one == name}) for name in order
    }
    high = {name: len({row for (_, row), one in cells.items() if one == name}) for name in order}
    return Grid(wide, frozenset(name for name in order if high[name] > 1), rows)


def _placed(order: Sequence[str], columns: int, tall: Collection[str]) -> Cells:
    cells: Cells = {}
    at = 0
    for name in order:
        while (at % columns, at // columns) in cells:
            at += 1
        column, row = at % columns, at // columns
        cells[column, row] = name
        if name in tall:
            cells[column, row + 1] = name
    return cells


def _fill(cells: Cells, place: tuple[int, int]) -> bool:
    """Have the pane beside an empty place take it, too, else the one above; say whether one can."""
    column, row = place
    beside, above = cells.get((column - 1, row)), cells.get((column, row - 1))
    wider = [(column, y) for (_, y), name in cells.items() if name == beside]
    higher = [(x, row) for (x, _), name in cells.items() if name == above]
    if beside and not cells.keys() & wider:
        cells.update(dict.fromkeys(wider, beside))
    elif (
        above
        and not cells.keys() & higher
        and len({y for (_, y), name in cells.items() if name == above}) == 1
    ):
        cells.update(dict.fromkeys(higher, above))
    else:
        return False
    return True
