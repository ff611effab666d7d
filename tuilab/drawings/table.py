"""A small table of texts and numbers: numbers are aligned at the right, long texts are folded within their column."""

from collections.abc import Sequence

from tuilab.drawings.picture import Canvas, Picture, cell_codes, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import Cell, TableShown
from tuilab.text.display import show
from tuilab.text.words import format_number

_GAP = 2
_LEAST = 6  # columns that a text is folded to


def format_cell(cell: Cell) -> str:
    """Return what a cell says: whole numbers to the last digit, others in four."""
    return format_number(cell) if isinstance(cell, float) else show(cell, 400)


def is_number_column(table: TableShown, column: int) -> bool:
    """Say whether a column holds numbers alone, which are aligned at the right."""
    return bool(table.rows) and not any(
        isinstance(row[column], str) for row in table.rows if column < len(row)
    )


def draw_table(table: TableShown, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw the title, the head over a line, and the rows, in as many lines as they need."""
    rows = [[to_ascii(format_cell(cell), symbols) for cell in row] for row in table.rows]
    head = [to_ascii(show(name, 100), symbols) for name in table.head]
    count = max(map(len, [*rows, head]), default=0)
    widths = _widths([*rows, head], count, width)
    lines = [_folded(row, widths) for row in rows]
    heads = _folded(head, widths) if head else []
    canvas = Canvas(width, 1 + len(heads) + bool(heads) + sum(map(len, lines)))
    canvas.put(0, 0, to_ascii(fit(show(table.title, 100), width), symbols), "title")
    are_right = [is_number_column(table, column) for column in range(count)]
    y = 1
    for line in heads:
        _put_line(canvas, y, line, widths, are_right, "muted")
        y += 1
    if heads:
        canvas.put(0, y, symbols.horizontal * (sum(widths) + _GAP * (count - 1)), "axis")
        y += 1
    for row in lines:
        for line in row:
            _put_line(canvas, y, line, widths, are_right, "label")
            y += 1
    return canvas.picture()


def _widths(rows: Sequence[Sequence[str]], count: int, room: int) -> list[int]:
    """Return how wide each column is: as wide as its texts, and where there is no room the widest are narrowed first."""
    widths = [
        max((len(cell_codes(row[at])) for row in rows if at < len(row)), default=0)
        for at in range(count)
    ]
    spare = room - _GAP * (count - 1)
    while sum(widths) > spare and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _folded(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return a row as lines, each with a piece of every cell."""
    pieces = [wrap_cell(text, width) for text, width in zip(row, widths, strict=False)]
    height = max(map(len, pieces), default=1)
    return [
        [piece[line] if line < len(piece) else "" for piece in pieces] for line in range(height)
    ]


def wrap_cell(text: str, width: int) -> list[str]:
    """Return a text in lines of so many cells, broken between words, or within a word that is too long."""
    lines, line = list[str](), ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if len(cell_codes(longer)) <= width:
            line = longer
            continue
        lines += [line] if line else []
        line = word
        while len(cell_codes(line)) > max(width, 1):
            piece = _start(line, max(width, 1))
            lines.append(piece)
            line = line[len(piece) :]
    return [*lines, line]


def _start(text: str, width: int) -> str:
    """Return as much of a text as fits, and one character at least."""
    end = 1
    while end < len(text) and len(cell_codes(text[: end + 1])) <= width:
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
    x = 0
    for text, width, is_right in zip(line, widths, are_right, strict=False):
        canvas.put(x + (width - len(cell_codes(text)) if is_right else 0), y, text, role)
        x += width + _GAP
