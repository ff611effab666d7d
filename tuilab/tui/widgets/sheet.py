"""Sections of rows in columns, laid out for whatever width there is: facts of the box, keys, what differs between runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tuilab.tui.looks.lesson_layout import wrap_lines

_GAP = 2
_INDENT = 2
_LEAST = 11  # cells of a column; where there is less, the cells of a row stand below each other


@dataclass(frozen=True)
class Section:
    """A title and its rows; `heads` stand above the columns, and before a cell where there is no room for columns."""

    title: Content
    rows: Sequence[tuple[Content, ...]]
    heads: tuple[Content, ...] = ()


class Sheet(Widget):
    """Shows sections; it is as high as they are, and stands in something that scrolls."""

    DEFAULT_CSS = """
    Sheet { width: 100%; height: auto; text-wrap: nowrap; }
    """

    def __init__(self, sections: Sequence[Section] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sections = tuple(sections)
        self._lines: list[Content] = []
        self._width = -1

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
        if width != self._width:
            self._lines, self._width = lay_out(self._sections, width), width
        return self._lines


def lay_out(sections: Sequence[Section], width: int) -> list[Content]:
    """Return the lines of sections in so many cells."""
    lines: list[Content] = []
    for section in sections:
        if lines:
            lines.append(Content(" "))  # an empty Content would be left out when lines are joined
        if section.title:
            lines += wrap_lines(section.title, width) if width > 0 else []
        lines += _lay_out_rows(section, max(width - _INDENT, 1))
    return lines


def _lay_out_rows(section: Section, width: int) -> list[Content]:
    rows = [section.heads, *section.rows] if any(section.heads) else list(section.rows)
    wanted = [
        max(row[at].cell_length for row in rows if at < len(row))
        for at in range(max(map(len, rows), default=0))
    ]
    widths = _fit(wanted, width)
    if len(widths) > 2 and any(
        given < min(_LEAST, want) for given, want in zip(widths[1:], wanted[1:], strict=True)
    ):
        return [line for row in section.rows for line in _stacked(row, section.heads, width)]
    return [line for row in rows for line in _beside(row, widths)]


def _fit(wanted: list[int], width: int) -> list[int]:
    """Return column widths that fit: the widest columns give way, all to the same width."""
    room = width - _GAP * (len(wanted) - 1)
    if sum(wanted) <= room:
        return wanted
    cap = next(
        (cap for cap in range(max(wanted), 3, -1) if sum(min(one, cap) for one in wanted) <= room),
        3,
    )
    widths = [min(one, cap) for one in wanted]
    spare = room - sum(widths)
    return [
        one + spare if one == cap and at == widths.index(cap) and spare > 0 else one
        for at, one in enumerate(widths)
    ]


def _beside(row: tuple[Content, ...], widths: list[int]) -> list[Content]:
    """Return the lines of a row whose cells stand beside each other, each wrapped in its column."""
    columns = [
        wrap_lines(cell, max(width, 1)) or [Content("")]
        for cell, width in zip(row, widths, strict=False)
    ]
    lines = []
    for at in range(max(map(len, columns), default=0)):
        parts = [Content(" " * _INDENT)]
        for column, width in zip(columns, widths, strict=False):
            part = column[at] if at < len(column) else Content("")
            parts += [part, Content(" " * (width + _GAP - part.cell_length))]
        lines.append(Content("").join(parts).rstrip())
    return lines


def _stacked(row: tuple[Content, ...], heads: tuple[Content, ...], width: int) -> list[Content]:
    """Return the lines of a row whose cells stand below each other, each after its column's head."""
    lines = [Content("").join([Content(" " * _INDENT), line]) for line in wrap_lines(row[0], width)]
    for at, cell in enumerate(row[1:], 1):
        if not cell:
            continue
        head = heads[at] if at < len(heads) else Content("")
        lead = head.cell_length + 1 if head else 0
        for number, line in enumerate(wrap_lines(cell, max(width - _INDENT - lead, 4))):
            before = head if number == 0 else Content(" " * head.cell_length)
            lines.append(
                Content("").join(
                    [Content(" " * 2 * _INDENT), before, Content(" " if head else ""), line]
                )
            )
    return lines
