"""Turns lines into dots: the least and the greatest value of each column of dots, joined to its neighbours."""

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
    """Return, for each of some lines whose points stand at the same places, the set of dots of each cell that it touches."""
    across, down = symbols.across, symbols.down
    spans = _spans(lines, x, y, width * across, height * down)
    cells = np.zeros((len(lines), height, width), np.uint8)
    if spans is None:
        return cells
    first_dots = np.arange(height)[:, None] * down
    uppermost = np.array(
        [(1 << count) - 1 for count in range(down + 1)], np.uint8
    )  # so many dots of a column of a cell
    above, down_to = (
        uppermost[np.clip(edge[:, None] - first_dots, 0, down)] for edge in (spans[0], spans[1] + 1)
    )
    dots = down_to & ~above
    for dx in range(across):
        cells |= dots[:, :, dx::across] << np.uint8(dx * down)
    return cells


def column_of(axis: Axis, places: NDArray[np.float64], columns: int) -> Ints:
    """Return the column of each x; those outside are outside of 0..columns-1."""
    found: Ints = np.floor(axis.shares(places) * (columns - 1) + 0.5).astype(np.int64)
    return found


def _spans(
    lines: Sequence[Line], x: Axis, y: Axis, columns: int, rows: int
) -> tuple[Ints, Ints] | None:
    """Return the top and the bottom dot of each line in each column of dots; where there is nothing the top is below."""
    xs = lines[0].xs
    first = max(int(np.searchsorted(xs, x.low)) - 1, 0)
    after = int(np.searchsorted(xs, x.high, "right")) + 1
    places = column_of(x, xs[first:after], columns)
    if not len(places):
        return None
    starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
    at = places[starts]
    highs, lows = (
        np.stack([line.highs[first:after] for line in lines]),
        np.stack([line.lows[first:after] for line in lines]),
    )
    top = _row_of(y, np.maximum.reduceat(highs, starts, axis=1), rows)
    bottom = _row_of(y, np.minimum.reduceat(lows, starts, axis=1), rows)
    is_joined = np.zeros(top.shape, np.bool_)
    is_joined[:, :-1] = ~np.stack([line.breaks[first:after] for line in lines])[:, starts[1:] - 1]
    return _joined(*_filled(at, top, bottom, is_joined, columns))


def _row_of(y: Axis, values: NDArray[np.float64], rows: int) -> Ints:
    found: Ints = np.floor((1 - y.shares(values)) * (rows - 1) + 0.5).astype(np.int64)
    return found


def _filled(
    at: Ints, top: Ints, bottom: Ints, is_joined: NDArray[np.bool_], columns: int
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Draw straight lines through the columns between points, and say which columns continue in the next one."""
    every = np.arange(columns)
    group = np.searchsorted(at, every, "right") - 1  # the last point at or before each column
    is_inside = (group >= 0) & (every <= at[-1])
    here = np.maximum(group, 0)
    has_point = is_inside & (at[here] == every)
    continues = is_joined[:, here] & is_inside
    middle = (top + bottom) / 2
    slopes = np.diff(middle, append=middle[:, -1:]) / np.diff(at, append=at[-1] + 1)
    between = np.floor(slopes[:, here] * (every - at[here]) + middle[:, here] + 0.5).astype(
        np.int64
    )
    drawn_top = np.where(has_point, top[:, here], np.where(continues, between, 1))
    drawn_bottom = np.where(has_point, bottom[:, here], np.where(continues, between, 0))
    return drawn_top, drawn_bottom, continues


def _joined(top: Ints, bottom: Ints, continues: Flags) -> tuple[Ints, Ints]:
    """Let neighbours that belong together touch: each comes half of the way."""
    goes_on = continues[:, :-1]
    down_by = np.where(
        goes_on, top[:, 1:] - bottom[:, :-1] - 1, 0
    )  # rows free between this column and a lower next one
    up_by = np.where(goes_on, top[:, :-1] - bottom[:, 1:] - 1, 0)
    top, bottom = top.copy(), bottom.copy()
    reach, back = np.maximum(down_by, 0), np.maximum(up_by, 0)
    bottom[:, :-1] += reach // 2
    top[:, :-1] -= back // 2
    top[:, 1:] -= reach - reach // 2
    bottom[:, 1:] += back - back // 2
    return top, bottom
