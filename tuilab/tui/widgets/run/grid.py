"""A grid of panes without an empty place: how many columns each spans, which are two rows high, and how many rows there are."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

Cells = dict[tuple[int, int], str]  # column and row: the pane that stands there


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
    if tall and (not is_whole or all(cells.get((column, 0)) == cells.get((column, 1)) for column in range(columns))):
        return grid(order, columns)
    wide = {name: len({column for (column, _), one in cells.items() if one == name}) for name in order}
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
    elif above and not cells.keys() & higher and len({y for (_, y), name in cells.items() if name == above}) == 1:
        cells.update(dict.fromkeys(higher, above))
    else:
        return False
    return True
