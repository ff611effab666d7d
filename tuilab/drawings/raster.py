"""Turns lines into dots: from the least to the greatest value of each column of dots.

The columns of a line are joined to their neighbours.
"""

from collections.abc import Sequence

from tuilab.arrays import NDArray, np
from tuilab.drawings.axis import Axis
from tuilab.drawings.lines import Line
from tuilab.drawings.symbols import Symbols

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def raster(
    lines: Sequence[Line], x: Axis, y: Axis, width: int, height: int, symbols: Symbols
) -> NDArray[np.uint8]:
    """Return the set of dots of each cell, as an array of line x height x width.

    All lines have the same xs. A set of dots is the index of its glyph in `symbols.glyphs`.
    """
    across, down = symbols.across, symbols.down
    cells = np.zeros((len(lines), height, width), np.uint8)
    spans = _find_spans(lines, x, y, width * across, height * down)
    if spans is None:
        return cells
    top, bottom = spans
    # For each count, a column of a cell whose uppermost dots are set.
    uppermost = np.array([(1 << count) - 1 for count in range(down + 1)], np.uint8)
    first_dots = np.arange(height)[:, None] * down
    above = uppermost[np.clip(top[:, None] - first_dots, 0, down)]
    down_to = uppermost[np.clip(bottom[:, None] + 1 - first_dots, 0, down)]
    dots = down_to & ~above
    for column in range(across):
        cells |= dots[:, :, column::across] << np.uint8(column * down)
    return cells


def column_of(axis: Axis, xs: NDArray[np.float64], columns: int) -> Ints:
    """Return the column of each x. An x outside of the axis is outside of 0..columns-1."""
    column: Ints = np.floor(axis.shares(xs) * (columns - 1) + 0.5).astype(np.int64)
    return column


def _row_of(y: Axis, values: NDArray[np.float64], rows: int) -> Ints:
    row: Ints = np.floor((1 - y.shares(values)) * (rows - 1) + 0.5).astype(np.int64)
    return row


def _find_spans(
    lines: Sequence[Line], x: Axis, y: Axis, columns: int, rows: int
) -> tuple[Ints, Ints] | None:
    """Return the top and the bottom dot of each line in each column of dots.

    In a column without dots the top is below the bottom. None if no point is near the axis of x.
    """
    xs = lines[0].xs
    # One more point at each side, for the lines that cross the edges.
    first = max(int(np.searchsorted(xs, x.low)) - 1, 0)
    after = int(np.searchsorted(xs, x.high, "right")) + 1
    point_columns = column_of(x, xs[first:after], columns)
    if not len(point_columns):
        return None
    starts = np.flatnonzero(np.diff(point_columns, prepend=point_columns[0] - 1))
    highs = np.stack([line.highs[first:after] for line in lines])
    lows = np.stack([line.lows[first:after] for line in lines])
    breaks = np.stack([line.breaks[first:after] for line in lines])
    top = _row_of(y, np.maximum.reduceat(highs, starts, axis=1), rows)
    bottom = _row_of(y, np.minimum.reduceat(lows, starts, axis=1), rows)
    is_joined = np.zeros(top.shape, np.bool_)
    is_joined[:, :-1] = ~breaks[:, starts[1:] - 1]
    return _join_columns(*_fill_columns(point_columns[starts], top, bottom, is_joined, columns))


def _fill_columns(
    filled: Ints, top: Ints, bottom: Ints, is_joined: Flags, columns: int
) -> tuple[Ints, Ints, Flags]:
    """Draw straight lines through the columns between those that points have filled.

    Return the top and the bottom dot of every column, and whether it continues in the next one.
    """
    every = np.arange(columns)
    group = np.searchsorted(filled, every, "right") - 1  # the last filled column at or before each
    is_inside = (group >= 0) & (every <= filled[-1])
    group = np.maximum(group, 0)
    has_point = is_inside & (filled[group] == every)
    continues = is_joined[:, group] & is_inside
    middle = (top + bottom) / 2
    rises = np.diff(middle, append=middle[:, -1:])
    slopes = rises / np.diff(filled, append=filled[-1] + 1)
    between = slopes[:, group] * (every - filled[group]) + middle[:, group]
    between_rows = np.floor(between + 0.5).astype(np.int64)
    # 1 and 0: a column without dots.
    every_top = np.where(has_point, top[:, group], np.where(continues, between_rows, 1))
    every_bottom = np.where(has_point, bottom[:, group], np.where(continues, between_rows, 0))
    return every_top, every_bottom, continues


def _join_columns(top: Ints, bottom: Ints, continues: Flags) -> tuple[Ints, Ints]:
    """Let neighbours that belong together touch: each is extended half of the way."""
    is_continued = continues[:, :-1]
    # Free rows between a column and a lower next one, or a higher next one.
    down_by = np.where(is_continued, top[:, 1:] - bottom[:, :-1] - 1, 0)
    up_by = np.where(is_continued, top[:, :-1] - bottom[:, 1:] - 1, 0)
    down_by = np.maximum(down_by, 0)
    up_by = np.maximum(up_by, 0)
    top = top.copy()
    bottom = bottom.copy()
    bottom[:, :-1] += down_by // 2
    top[:, :-1] -= up_by // 2
    top[:, 1:] -= down_by - down_by // 2
    bottom[:, 1:] += up_by - up_by // 2
    return top, bottom
