"""Sections of rows in columns, for any width: facts of the machine, keys, differences of runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import RenderResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tuilab.tui.looks.lesson_layout import wrap_lines

_GAP = 2
_INDENT = 2
_MIN_COLUMN = 11  # cells; if a column has fewer, the cells of a row are below each other
_MIN_CAP = 3  # cells to which a column is narrowed at most


@dataclass(frozen=True)
class Section:
    """A title and its rows.

    `heads` are above the columns, or before each cell if there is no room for columns.
    """

    title: Content
    rows: Sequence[tuple[Content, ...]]
    heads: tuple[Content, ...] = ()


class Sheet(Widget):
    """Shows sections. It is as high as they are, so its container has to scroll."""

    DEFAULT_CSS = """
    Sheet { width: 100%; height: auto; text-wrap: nowrap; }
    """

    def __init__(self, sections: Sequence[Section] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sections = tuple(sections)
        self._lines: list[Content] = []
        self._width = -1  # of the lines; -1: they have to be laid out again

    def show(self, sections: Sequence[Section]) -> None:
        """Show other sections."""
        if tuple(sections) != self._sections:
            self._sections = tuple(sections)
            self._width = -1
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._laid_out(width))

    def render(self) -> RenderResult:
        return Content("\n").join(self._laid_out(self.content_size.width))

    def _laid_out(self, width: int) -> list[Content]:
        """Return the lines at a width; they are laid out again only at another width."""
        if width != self._width:
            self._lines = lay_out(self._sections, width)
            self._width = width
        return self._lines


class SheetPane(Vertical, can_focus=True):
    """A sheet in a frame with a title. It scrolls with its container, and can be zoomed."""

    DEFAULT_CSS = """
    SheetPane {
        height: auto; border: round $border-blurred; padding: 0 1;
        border-title-color: $foreground; border-title-style: bold;
        &:focus { border: round $primary; border-title-color: $text-primary; }
    }
    """

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(Sheet(), id=id)
        self.border_title = Content(title)

    @property
    def sheet(self) -> Sheet:
        return self.query_one(Sheet)


def lay_out(sections: Sequence[Section], width: int) -> list[Content]:
    """Return the lines of sections in so many cells."""
    lines: list[Content] = []
    for section in sections:
        if lines:
            lines.append(Content(" "))  # an empty Content would be left out when lines are joined
        if section.title and width > 0:
            lines += wrap_lines(section.title, width)
        lines += _lay_out_rows(section, max(width - _INDENT, 1))
    return lines


def _lay_out_rows(section: Section, width: int) -> list[Content]:
    """Return the lines of the rows in columns; of too narrow ones, with cells below each other."""
    rows = list(section.rows)
    if any(section.heads):
        rows.insert(0, section.heads)
    natural_widths = _natural_widths(rows)
    widths = _fit(natural_widths, width)
    lines = []
    if _are_too_narrow(widths, natural_widths):
        for row in section.rows:
            lines += _stacked(row, section.heads, width)
    else:
        for row in rows:
            lines += _side_by_side(row, widths)
    return lines


def _natural_widths(rows: Sequence[tuple[Content, ...]]) -> list[int]:
    """Return for each column the width of its widest cell. Rows may have fewer cells."""
    widths: list[int] = []
    for row in rows:
        for column, cell in enumerate(row):
            if column == len(widths):
                widths.append(0)
            widths[column] = max(widths[column], cell.cell_length)
    return widths


def _are_too_narrow(widths: Sequence[int], natural_widths: Sequence[int]) -> bool:
    """Return whether a column but the first is too narrow to read, if there are more than two."""
    if len(widths) <= 2:
        return False
    for width, natural_width in zip(widths[1:], natural_widths[1:], strict=True):
        if width < min(_MIN_COLUMN, natural_width):
            return True
    return False


def _fit(natural_widths: list[int], width: int) -> list[int]:
    """Return column widths that fit. The widest columns are narrowed, all to the same width."""
    room = width - _GAP * (len(natural_widths) - 1)
    if sum(natural_widths) <= room:
        return natural_widths
    cap = max(max(natural_widths), _MIN_CAP)
    widths = list(natural_widths)
    while cap > _MIN_CAP and sum(widths) > room:
        cap -= 1
        widths = [min(natural_width, cap) for natural_width in natural_widths]
    spare = room - sum(widths)
    if spare > 0 and cap in widths:
        widths[widths.index(cap)] += spare
    return widths


def _side_by_side(row: tuple[Content, ...], widths: list[int]) -> list[Content]:
    """Return the lines of a row, with each cell wrapped in its column."""
    columns = []
    line_count = 0
    for cell, width in zip(row, widths, strict=False):  # a row may have fewer cells
        column = wrap_lines(cell, max(width, 1)) or [Content("")]
        columns.append(column)
        line_count = max(line_count, len(column))
    lines = []
    for number in range(line_count):
        parts = [Content(" " * _INDENT)]
        for column, width in zip(columns, widths, strict=False):
            part = column[number] if number < len(column) else Content("")
            padding = Content(" " * (width + _GAP - part.cell_length))
            parts += [part, padding]
        line = Content("").join(parts)
        lines.append(line.rstrip())
    return lines


def _stacked(row: tuple[Content, ...], heads: tuple[Content, ...], width: int) -> list[Content]:
    """Return the lines of a row with its cells below each other, each behind its column's head."""
    indent = Content(" " * _INDENT)
    lines = [indent + line for line in wrap_lines(row[0], width)]
    for column, cell in enumerate(row[1:], 1):
        if not cell:
            continue
        head = heads[column] if column < len(heads) else Content("")
        space = Content(" " if head else "")
        room = width - _INDENT - head.cell_length - space.cell_length
        lead = head
        for line in wrap_lines(cell, max(room, 4)):
            lines.append(Content("").join([indent, indent, lead, space, line]))
            lead = Content(" " * head.cell_length)
    return lines
