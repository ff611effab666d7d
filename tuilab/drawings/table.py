"""A small table of texts and numbers.

Numbers are aligned at the right. Long texts are folded within their column.
"""

from collections.abc import Sequence
from itertools import zip_longest

from tuilab.drawings.picture import Canvas, Picture, count_cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import Cell, TableShown
from tuilab.text.display import show
from tuilab.text.words import format_number

_GAP = 2  # columns between two columns of the table
_LEAST_WIDTH = 6  # columns that a text is folded to at the narrowest


def format_cell(cell: Cell) -> str:
    """Return the text of a cell: whole numbers to the last digit, other numbers with four."""
    if isinstance(cell, float):
        return format_number(cell)
    return show(cell, 400)


def is_number_column(table: TableShown, column: int) -> bool:
    """Say whether a column contains only numbers, which are aligned at the right."""
    for row in table.rows:
        if column < len(row) and isinstance(row[column], str):
            return False
    return bool(table.rows)


def draw_table(table: TableShown, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw the title, the head over a line, and the rows, in as many lines as they need.

    Cells are folded if the table is too wide. If even narrow columns have no room, it is cut off at
    the right.
    """
    head = [to_ascii(show(name, 100), symbols) for name in table.head]
    rows = []
    for row in table.rows:
        rows.append([to_ascii(format_cell(cell), symbols) for cell in row])
    count = max(map(len, [*rows, head]), default=0)
    widths = _choose_widths([*rows, head], count, width)
    head_lines = []
    if head:
        head_lines = _fold_row(head, widths)
    lines = []
    for texts in rows:
        lines += _fold_row(texts, widths)
    height = 1 + len(head_lines) + len(lines)
    if head_lines:
        height += 1  # for the line below the head
    canvas = Canvas(width, height)
    title = fit(show(table.title, 100), width)
    canvas.put(0, 0, to_ascii(title, symbols), "title")
    are_right = [is_number_column(table, column) for column in range(count)]
    y = 1
    for line in head_lines:
        _put_line(canvas, y, line, widths, are_right, "muted")
        y += 1
    if head_lines:
        columns = sum(widths) + _GAP * (count - 1)
        canvas.put(0, y, symbols.horizontal * columns, "axis")
        y += 1
    for line in lines:
        _put_line(canvas, y, line, widths, are_right, "label")
        y += 1
    return canvas.picture()


def _choose_widths(rows: Sequence[Sequence[str]], count: int, room: int) -> list[int]:
    """Return the width of each column: that of its widest text, or less where there is no room.

    The widest columns are narrowed first.
    """
    widths = [0] * count
    for row in rows:
        for column, text in enumerate(row):
            widths[column] = max(widths[column], count_cells(text))
    spare = room - _GAP * (count - 1)
    while sum(widths) > spare and max(widths) > _LEAST_WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths


def _fold_row(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return a row as lines, each with a piece of every cell."""
    cells = []
    for text, width in zip(row, widths, strict=False):
        cells.append(wrap_cell(text, width))
    if not cells:
        return [[]]
    lines = zip_longest(*cells, fillvalue="")
    return [list(line) for line in lines]


def wrap_cell(text: str, width: int) -> list[str]:
    """Return a text in lines of `width` cells, broken between words.

    A word that is too long is broken within.
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if count_cells(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while count_cells(line) > max(width, 1):
            piece = _take_start(line, max(width, 1))
            lines.append(piece)
            line = line[len(piece) :]
    return [*lines, line]


def _take_start(text: str, width: int) -> str:
    """Return as much of a text as fits, but at least one character."""
    end = 1
    while end < len(text) and count_cells(text[: end + 1]) <= width:
        end += 1
    return text[:end]


def _put_line(
    canvas: Canvas,
    y: int,
    line: Sequence[str],
    widths: Sequence[int],
    are_right: Sequence[bool],
    role: str,
) -> None:
    """Put the pieces of one line of a row into their columns, those of numbers at the right."""
    x = 0
    for text, width, is_right in zip(line, widths, are_right, strict=False):
        indent = 0
        if is_right:
            indent = width - count_cells(text)
        canvas.put(x + indent, y, text, role)
        x += width + _GAP
