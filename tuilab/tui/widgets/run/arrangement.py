"""Arrange the panes of a run: which panes there are, their order, their spans and row heights."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tuilab.drawings.gpu_strips import has_strips
from tuilab.record.blocks import has_times
from tuilab.record.finding_words import neighbour_notes
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.stages import is_tuning

Cell = tuple[int, int]
"""A column and a row of the grid."""

# Panes of text are as high as their lines, but at most this many lines.
TEXTS = {"failure": 99, "tuning": 99, "claims": 99, "notes": 16, "output": 7}
# Panes that come first and span all columns, with the most that they take of the screen.
_TOPS = {"failure": 1 / 2, "tuning": 2 / 3}
_MIN_PANES_FOR_TALL = 5  # fewer panes do not fill three rows
_HIGH = 36  # lines of a screen that shows two rows of panes and more below them
_MIN_ROW = 9  # lines that a chart needs
_GOOD_ROW = 12  # lines that a chart has on a high screen
_TEXT_ROW = 12  # lines for texts if all panes fit on the screen
_FRAME = 2


@dataclass(frozen=True)
class GridSize:
    """The lines and columns of the screen."""

    width: int
    height: int

    @property
    def columns(self) -> int:
        """The number of panes next to each other."""
        if self.width < 70:
            return 1
        if self.width < 170:
            return 2
        return 3

    @property
    def most_charts(self) -> int:
        """The number of metrics that have a chart at a time."""
        is_large = self.columns == 3 and self.height >= _HIGH
        return 11 if is_large else 6

    @property
    def lines(self) -> int:
        """The lines between the heading and the keys."""
        return max(self.height - 2, 1)


@dataclass(frozen=True)
class Arrangement:
    """The panes in their order, each with the number of columns that it spans.

    `tall` panes are two rows high. `rows` are the heights of the rows as Textual wants them.
    """

    spans: Mapping[str, int]
    tall: frozenset[str]
    rows: str


def arrange(
    summary: RunSummary,
    names: Sequence[str],
    size: GridSize,
    needs: Mapping[str, int],
    *,
    has_notes: bool,
) -> Arrangement:
    """Return the arrangement of the panes, with a chart for each of the metrics `names`.

    `needs` are the lines that the texts need, as far as known. The reason of a failure, and the
    table of a tuning, come first and span all columns.
    """
    lines_of_tops: dict[str, int] = {}
    rest_size = size
    for name in _top_panes(summary):
        needed = needs.get(name, _MIN_ROW) + _FRAME
        lines = min(needed, max(int(rest_size.lines * _TOPS[name]), _MIN_ROW))
        lines_of_tops[name] = lines
        rest_size = replace(rest_size, height=max(rest_size.height - lines, 1))
    rest = _arrange(summary, names, rest_size, needs, has_notes=has_notes)
    if not lines_of_tops:
        return rest
    spans = {**dict.fromkeys(lines_of_tops, size.columns), **rest.spans}
    rows = " ".join(map(str, lines_of_tops.values()))
    return Arrangement(spans, rest.tall, f"{rows} {rest.rows}")


def _top_panes(summary: RunSummary) -> list[str]:
    """Return the panes that come first: why the run failed, and the table of a tuning."""
    tops = []
    if summary.failure:
        tops.append("failure")
    if is_tuning(summary):
        tops.append("tuning")
    return tops


def _arrange(
    summary: RunSummary,
    names: Sequence[str],
    size: GridSize,
    needs: Mapping[str, int],
    *,
    has_notes: bool,
) -> Arrangement:
    """Return the arrangement of all panes but those that come first."""
    drawn = _drawn_panes(summary, names)
    texts = _text_panes(summary, has_notes=has_notes)
    grid = make_grid(drawn, size.columns)
    room = size.lines - _TEXT_ROW  # lines for the drawings
    are_figures_first = "figures" in drawn[:2] and len(drawn) > 2
    figure_lines = room // grid.rows - _FRAME  # in a pane of one row
    if are_figures_first and needs.get("figures", 0) > figure_lines:
        grid = make_grid(drawn, size.columns, ["figures"])
    is_large = size.columns > 1 and size.height >= _HIGH
    if is_large and room // grid.rows >= _MIN_ROW:
        return _with_texts_below(grid, texts, size, needs)
    return _to_be_scrolled(drawn, texts, size, needs)


def _drawn_panes(summary: RunSummary, names: Sequence[str]) -> list[str]:
    """Return the panes with drawings: those that the author chose come before the usual ones."""
    charts = [f"series {name}" for name in names]
    if has_times(summary):
        charts.append("timings")
    if has_strips(summary):
        charts.append("gpu")
    if summary.figures or summary.spans:
        drawn = [*charts[:1], "figures", *charts[1:2], "memory", *charts[2:]]
    else:
        drawn = [*charts[:1], "memory", *charts[1:]]
    if summary.images:
        drawn.append("pictures")
    return drawn


def _text_panes(summary: RunSummary, *, has_notes: bool) -> list[str]:
    """Return the panes of text, the most important first.

    A user's command without claims has none of "claims". Its output comes first until it has
    notes. The claims of a tuning are in its table.
    """
    is_command = bool(summary.run and summary.run.command)
    has_notes = bool(has_notes or summary.texts or summary.alerts or neighbour_notes(summary))
    if is_command and (not summary.claims or is_tuning(summary)):
        return ["notes", "output"] if has_notes else ["output", "notes"]
    if has_notes or is_command:
        return ["claims", "notes", "output"]
    return ["claims", "output"]


# ---- all panes fit on the screen


def _with_texts_below(
    grid: "Grid", texts: Sequence[str], size: GridSize, needs: Mapping[str, int]
) -> Arrangement:
    """Return an arrangement in which the texts are below the drawings, as high as they need."""
    most = size.lines - grid.rows * _MIN_ROW
    spans = dict(grid.spans)
    for name in texts:
        spans[name] = 1
    tall = grid.tall
    if len(texts) > size.columns:
        tall = tall.union(texts[:1])
        heights = _heights_next_to_first(texts, needs, most)
    else:
        spans[texts[0]] = size.columns - len(texts) + 1
        needed = max(needs.get(name, 1) for name in texts) + _FRAME
        heights = [min(needed, most)]
    rows = ["1fr"] * grid.rows
    rows += [str(height) for height in heights]
    return Arrangement(spans, tall, " ".join(rows))


def _heights_next_to_first(texts: Sequence[str], needs: Mapping[str, int], most: int) -> list[int]:
    """Return the heights of the second and third text, which are below each other.

    The first text, which has the answer, is next to them and as high as both together.
    """
    first, upper, lower = [needs.get(name, 1) + _FRAME for name in texts]
    lines = min(max(first, upper + lower), most)
    upper = min(upper, lines - lower)
    return [upper, lines - upper]


# ---- the screen has to be scrolled


def _to_be_scrolled(
    drawn: Sequence[str], texts: Sequence[str], size: GridSize, needs: Mapping[str, int]
) -> Arrangement:
    """Return an arrangement that is higher than the screen.

    The first text has the answer: the claims, or the notes of a command. It comes early enough to
    be on the first screen. The last text comes last, in a row of its own.
    """
    place = 1 if size.columns == 1 else 3
    order = [*drawn[:place], *texts[:1], *drawn[place:], *texts[1:-1]]
    min_row = _GOOD_ROW if size.height >= _HIGH else _MIN_ROW
    tall = _tall_panes(order, size, needs, min_row)
    grid = make_grid(order, size.columns, tall)
    last_text = texts[-1]
    most = 6 if size.height < 30 else 99  # 99: as many lines as the text needs
    last_height = min(needs.get(last_text, 1) + _FRAME, most)
    share = (size.lines - last_height) // max(grid.rows, 1)
    height = "1fr" if share >= min_row - 1 else str(min_row)
    rows = [height] * grid.rows
    rows.append(str(last_height))
    spans = {**grid.spans, last_text: size.columns}
    return Arrangement(spans, grid.tall, " ".join(rows))


def _tall_panes(
    order: Sequence[str], size: GridSize, needs: Mapping[str, int], min_row: int
) -> frozenset[str]:
    """Return the panes of two rows: claims, on a high screen also figures, if they need them."""
    if size.columns == 1 or len(order) < _MIN_PANES_FOR_TALL:
        return frozenset()
    candidates = ["claims"]
    if size.height >= _HIGH:
        candidates.append("figures")
    tall = set()
    for name in candidates:
        if name in order and needs.get(name, 0) > min_row - _FRAME:
            tall.add(name)
    return frozenset(tall)


# ---- the grid


@dataclass(frozen=True)
class Grid:
    """The spans of panes that Textual places one after another, row by row."""

    spans: dict[str, int]
    tall: frozenset[str]  # the panes that are two rows high
    rows: int


def make_grid(order: Sequence[str], columns: int, tall: Collection[str] = ()) -> Grid:
    """Return a grid without empty cells.

    If it cannot be filled with these tall panes, or if its first two rows are all tall panes, no
    pane is tall.
    """
    cells = _place(order, columns, tall)
    last_row = max((row for _, row in cells), default=-1)
    rows = last_row + 1
    is_filled = _fill(cells, columns, rows)
    if tall and (not is_filled or _is_first_row_tall(cells, columns)):
        return make_grid(order, columns)
    columns_of: dict[str, set[int]] = {name: set() for name in order}
    rows_of: dict[str, set[int]] = {name: set() for name in order}
    for (column, row), name in cells.items():
        columns_of[name].add(column)
        rows_of[name].add(row)
    spans = {name: len(columns_of[name]) for name in order}
    tall_panes = [name for name in order if len(rows_of[name]) > 1]
    return Grid(spans, frozenset(tall_panes), rows)


def _columns_of(name: str, cells: Mapping[Cell, str]) -> set[int]:
    """Return the columns that a pane covers."""
    return {column for (column, _), pane in cells.items() if pane == name}


def _rows_of(name: str, cells: Mapping[Cell, str]) -> set[int]:
    """Return the rows that a pane covers."""
    return {row for (_, row), pane in cells.items() if pane == name}


def _is_first_row_tall(cells: Mapping[Cell, str], columns: int) -> bool:
    """Return whether each pane of the first row covers the second row as well."""
    for column in range(columns):
        upper = cells.get((column, 0))
        lower = cells.get((column, 1))
        if upper != lower:
            return False
    return True


def _place(order: Sequence[str], columns: int, tall: Collection[str]) -> dict[Cell, str]:
    """Return the panes by cell, each pane in the next free cell."""
    cells: dict[Cell, str] = {}
    place = 0
    for name in order:
        while (place % columns, place // columns) in cells:
            place += 1
        column, row = place % columns, place // columns
        cells[column, row] = name
        if name in tall:
            cells[column, row + 1] = name
    return cells


def _fill(cells: dict[Cell, str], columns: int, rows: int) -> bool:
    """Widen or heighten panes into empty cells. Return False at the first that stays empty."""
    for row in range(rows):
        for column in range(columns):
            if (column, row) not in cells and not _fill_cell(cells, column, row):
                return False
    return True


def _fill_cell(cells: dict[Cell, str], column: int, row: int) -> bool:
    """Extend the pane on the left of an empty cell, else the pane above it.

    Return False if neither can be extended and stay a rectangle of at most two rows.
    """
    left = cells.get((column - 1, row))
    if left:
        new_cells = [(column, left_row) for left_row in _rows_of(left, cells)]
        if _take_cells(cells, left, new_cells):
            return True
    above = cells.get((column, row - 1))
    if above and len(_rows_of(above, cells)) == 1:
        new_cells = [(above_column, row) for above_column in _columns_of(above, cells)]
        return _take_cells(cells, above, new_cells)
    return False


def _take_cells(cells: dict[Cell, str], name: str, new_cells: Sequence[Cell]) -> bool:
    """Extend a pane to these cells. Return False if one of them has a pane already."""
    if any(cell in cells for cell in new_cells):
        return False
    for cell in new_cells:
        cells[cell] = name
    return True
