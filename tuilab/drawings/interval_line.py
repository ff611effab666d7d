"""A line of text with the interval of a ratio, a ratio of 1 and the claimed bound.

The axis is logarithmic: `1          |1.3    [--*--]` shows a ratio that is above its bound of 1.3.
"""

import math

from tuilab.drawings.symbols import Symbols

_MARGIN = 0.05  # of the axis, on both sides
_MIN_WIDTH = 16  # columns; a shorter line shows nothing


def draw_interval(
    low: float, estimate: float, high: float, bound: float, width: int, symbols: Symbols
) -> str:
    """Return the line; empty if there is no room, or if a number is not finite and positive.

    Signs that share a column cover each other: the estimate covers the bound, which covers the 1
    and the ends of the interval. The bound has its number where a place is free.
    """
    values = [low, estimate, high, bound, 1.0]
    if width < _MIN_WIDTH or not all(math.isfinite(value) and value > 0 for value in values):
        return ""
    logs = [math.log(value) for value in values]
    span = (max(logs) - min(logs)) or 1.0
    start = min(logs) - _MARGIN * span
    columns_per_unit = (width - 1) / (span * (1 + 2 * _MARGIN))
    low_column, column, high_column, bound_column, one_column = [
        round((log - start) * columns_per_unit) for log in logs
    ]
    # In ASCII, the ends of other drawings look like the sign of the bound.
    left, right = (symbols.left, symbols.right) if symbols.is_utf8 else ("[", "]")
    cells = [" "] * width
    cells[low_column : high_column + 1] = symbols.horizontal * (high_column + 1 - low_column)
    cells[low_column] = left
    cells[high_column] = right
    cells[one_column] = "1"
    cells[bound_column] = symbols.vertical
    cells[column] = symbols.point
    _add_label(cells, f"{bound:.4g}", bound_column)
    return "".join(cells).rstrip()


def _add_label(cells: list[str], label: str, bound_column: int) -> None:
    """Write the number of the bound on the right of its sign, else on the left, if it is free."""
    end = bound_column + 1 + len(label)
    if end <= len(cells) and not "".join(cells[bound_column + 1 : end + 1]).strip():
        cells[bound_column + 1 : end] = label
        return
    start = bound_column - len(label)
    if start >= 0 and not "".join(cells[max(start - 1, 0) : bound_column]).strip():
        cells[start:bound_column] = label
