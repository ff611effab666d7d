"""Send the cells that changed since the last frame, in as few bytes as possible.

If one cell changes, Textual sends its whole region again. Textual also passes control characters
on. Here every frame is compared with the last frame cell by cell. Only printable text, attributes,
colours and cursor moves are sent.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import split_graphemes
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

_GAP = 5  # up to 5 unchanged cells between changed cells are cheaper to send than a cursor move
_IS_SIMPLE = re.compile("[ -~\u00a0-\u00ac\u00ae-\u02ff\u2500-\u25fc\u2800-\u28ff]*").fullmatch
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_ATTRIBUTES = {
    "bold": "1", "dim": "2", "italic": "3", "underline": "4", "blink": "5", "blink2": "6",
    "reverse": "7", "conceal": "8", "strike": "9",
    "underline2": "21", "frame": "51", "encircle": "52", "overline": "53",
}  # fmt: skip
_OFF = {  # the code that ends each attribute
    "1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25",
    "7": "27", "8": "28", "9": "29",
    "21": "24", "51": "54", "52": "54", "53": "55",
}  # fmt: skip
_VISIBLE_ON_BLANKS = {"4", "7", "9", "21", "51", "52", "53"}  # codes of attributes
# The light backgrounds among 16 colours. Yellow and white text is not visible on them. Brown (43)
# is not a light background.
_LIGHT_BACKGROUNDS = ("47", "107")
_ON_LIGHT = {"33": "30", "93": "30", "37": "90", "97": "90"}  # the colours to use on them instead
_ASCII_SIGNS = {
    "●": "*", "·": ".", "•": "*", "■": "#", "▸": ">", "▾": "v", "▲": "^", "▼": "v",
    "◂": "<", "▶": ">", "‹": "<", "›": ">", "✓": "+", "✗": "x", "⚠": "!", "○": "o",
    "≈": "~", "…": "~", "░": ":", "×": "x", "µ": "u", "±": "~", "²": "2", "°": " ",
    "“": '"', "”": '"', "‘": "'", "’": "'", "→": ">", "←": "<", "↑": "^", "↓": "v",
    "⏎": "<",
}  # fmt: skip
_TO_ASCII = {  # a table for `str.translate`; later rows override earlier ones
    **dict.fromkeys(range(0x2500, 0x2580), "+"),  # all other parts of boxes
    **str.maketrans(dict.fromkeys("─━┄┅┈┉╌╍╴╶╸╺—–▔▁▂═", "-")),
    **str.maketrans(dict.fromkeys("│┃┆┇┊┋╎╏╵╷╹╻▏▎▍▌▐▕║", "|")),
    **str.maketrans(dict.fromkeys("█▓▒▇▆▅▄▃▀▊▉▋▖▗▘▝▙▚▛▜▞▟", "#")),
    **str.maketrans(_ASCII_SIGNS),
}


class Pen(NamedTuple):
    """How a cell is drawn, as the parameters of the escape sequence."""

    attributes: str
    colour: str
    background: str


class FrameRow(NamedTuple):
    """One line of a frame: the text and the pen of each cell.

    The right half of a wide character is a cell with an empty text.
    """

    # The segments that drew the whole line at once; empty if the line was put together from parts.
    segments: Sequence[Segment]
    cells: list[str]
    pens: list[Pen]
    is_simple: bool  # all terminals agree on the width of its cells


Part = tuple[int, int, Sequence[Segment]]  # column, row, and the segments from there on
Stretch = tuple[int, int, str]  # row, column, and the text of adjacent cells with the same pen


class Frames:
    """The frames of one terminal; `difference` returns the text that turns one into the next."""

    def __init__(self, colours: ColorSystem | None, *, is_utf8: bool = True) -> None:
        self._colours = colours
        self._is_utf8 = is_utf8
        self._rows: dict[int, FrameRow] = {}

    def difference(self, lines: Iterable[Sequence[Segment]]) -> str:
        """Return what to send so that the terminal shows `lines`; empty if it already does."""
        return self.change((0, y, segments) for y, segments in enumerate(lines))

    def change(self, parts: Iterable[Part]) -> str:
        """Return what to send so that the terminal shows these parts of lines.

        The cells next to the parts stay as they are. The result is empty if the terminal already
        shows the parts.
        """
        output: list[str] = []
        pen: Pen | None = None  # the pen that the terminal has
        stretches: dict[Pen, list[Stretch]] = {}
        for x, y, segments in parts:
            old = self._rows.get(y)
            if old is not None and old.segments == segments:
                continue
            part = self._expand(segments)
            row = _replace_part(old, x, part)
            self._rows[y] = row
            for span in _find_changes(old, row, x, x + len(part.cells)):
                if row.is_simple:
                    _gather_stretches(stretches, row, y, span)
                else:
                    pen = _draw_span(output, row, y, span, pen)
        _draw_stretches(output, stretches, pen)
        if not output:
            return ""
        output.append("\x1b[0m")
        return "".join(output)

    def _expand(self, segments: Sequence[Segment]) -> FrameRow:
        """Return the cells that the segments draw, as a row that begins with them."""
        cells: list[str] = []
        pens: list[Pen] = []
        is_simple = True
        for text, style, control in segments:
            if control:
                continue
            count_before = len(cells)
            if _IS_SIMPLE(text):
                cells += text
            else:
                cells += _split_cells(text)
                is_simple = False
            pens += [_pen(style, self._colours)] * (len(cells) - count_before)
        if not self._is_utf8:
            cells = [to_ascii(cell) for cell in cells]
        return FrameRow(segments, cells, pens, is_simple)


def _replace_part(old: FrameRow | None, x: int, part: FrameRow) -> FrameRow:
    """Return a line in which the cells from column `x` on are those of the part."""
    end = x + len(part.cells)
    if old is None or (x == 0 and end >= len(old.cells)):
        return part
    cells = [*old.cells[:x], *part.cells, *old.cells[end:]]
    pens = [*old.pens[:x], *part.pens, *old.pens[end:]]
    return FrameRow((), cells, pens, old.is_simple and part.is_simple)


def _find_changes(
    old: FrameRow | None, new: FrameRow, start: int, end: int
) -> list[tuple[int, int]]:
    """Return the ranges of cells from `start` to `end` that differ; nearby ranges are joined."""
    if old is None or len(old.cells) != len(new.cells):
        if not new.cells:
            return []
        return [(0, len(new.cells))]
    changes: list[tuple[int, int]] = []
    part = slice(start, end)
    pairs = zip(old.cells[part], new.cells[part], old.pens[part], new.pens[part], strict=True)
    for x, (old_cell, cell, old_pen, pen) in enumerate(pairs, start):
        if old_cell == cell:
            if old_pen == pen:
                continue
            if cell == " " and _is_as_blank(old_pen, pen):
                continue
        first = x
        if cell == "" and x:
            first = x - 1  # the left half of a wide character draws both halves
        if changes and first - changes[-1][1] <= _GAP:
            changes[-1] = (changes[-1][0], x + 1)
        else:
            changes.append((first, x + 1))
    return changes


def _gather_stretches(
    stretches: dict[Pen, list[Stretch]], row: FrameRow, y: int, span: tuple[int, int]
) -> None:
    """Add the cells of a span to the stretches of their pens.

    A blank joins a neighbour if it looks the same in the pen of that neighbour.
    """
    start, end = span
    pen = row.pens[start]
    for x in range(start + 1, end):
        next_pen = row.pens[x]
        if next_pen == pen:
            continue
        if row.cells[x] == " " and _is_as_blank(pen, next_pen):
            continue
        text = "".join(row.cells[start:x])
        if text.strip(" ") or not _is_as_blank(pen, next_pen):
            stretches.setdefault(pen, []).append((y, start, text))
            start = x
        pen = next_pen
    text = "".join(row.cells[start:end])
    stretches.setdefault(pen, []).append((y, start, text))


def _draw_stretches(
    output: list[str], stretches: dict[Pen, list[Stretch]], pen: Pen | None
) -> None:
    """Append the text that draws all stretches, pen after pen.

    This order is short, because a cursor move takes fewer bytes than a change of the colour.
    """
    cursor_y = cursor_x = -1
    for next_pen, stretches_of_pen in stretches.items():
        for y, x, text in stretches_of_pen:
            if y != cursor_y or x < cursor_x:
                output.append(f"\x1b[{y + 1};{x + 1}H")
            elif x > cursor_x:
                output.append(f"\x1b[{x - cursor_x}C")
            if next_pen != pen:
                output.append(_change_of_pen(pen, next_pen))
                pen = next_pen
            output.append(text)
            cursor_y = y
            cursor_x = x + len(text)


def _draw_span(
    output: list[str], row: FrameRow, y: int, span: tuple[int, int], pen: Pen | None
) -> Pen | None:
    """Append the text that draws the cells of a span; return the pen that the terminal then has."""
    is_placed = False
    for x in range(*span):
        cell = row.cells[x]
        if cell == "":
            continue
        if not is_placed:
            output.append(f"\x1b[{y + 1};{x + 1}H")
        next_pen = row.pens[x]
        can_keep_pen = next_pen == pen
        if cell == " " and pen is not None:
            can_keep_pen = can_keep_pen or _is_as_blank(pen, next_pen)
        if not can_keep_pen:
            output.append(_change_of_pen(pen, next_pen))
            pen = next_pen
        output.append(cell)
        # Terminals disagree on the width of other characters, so the cursor is moved after them.
        is_placed = len(cell) == 1 and bool(_IS_SIMPLE(cell))
    return pen


@lru_cache(maxsize=4096)
def _change_of_pen(old: Pen | None, new: Pen) -> str:
    """Return the sequence that changes the pen of the terminal; `old` None: it may be any pen."""
    is_plain = new.colour == "39" and new.background == "49"
    # A reset is shorter than ending single attributes, and is all that a vt100 knows.
    if old is None or (is_plain and old.attributes != new.attributes):
        codes = [
            "0",
            new.attributes,
            new.colour.removeprefix("39"),
            new.background.removeprefix("49"),
        ]
    else:
        codes = _change_of_attributes(old.attributes.split(";"), new.attributes.split(";"))
        if old.colour != new.colour:
            codes.append(new.colour)
        if old.background != new.background:
            codes.append(new.background)
    parameters = ";".join(code for code in codes if code)
    return f"\x1b[{parameters}m"


def _change_of_attributes(old: list[str], new: list[str]) -> list[str]:
    """Return the codes that end old attributes and begin new ones.

    One code may end several attributes. Those of them that should stay are begun again.
    """
    ended = {_OFF[code] for code in old if code and code not in new}
    codes = sorted(ended)
    for code in new:
        if code and (code not in old or _OFF[code] in ended):
            codes.append(code)
    return codes


@lru_cache(maxsize=4096)
def _is_as_blank(pen: Pen, other_pen: Pen) -> bool:
    """Return whether a blank looks the same in two pens."""
    if pen.background != other_pen.background:
        return False
    attributes = f"{pen.attributes};{other_pen.attributes}".split(";")
    return _VISIBLE_ON_BLANKS.isdisjoint(attributes)


@lru_cache(maxsize=4096)
def _pen(style: Style | None, colours: ColorSystem | None) -> Pen:
    """Return the pen of a style on a terminal with so many colours; None means no colours."""
    if style is None:
        return Pen("", "39", "49")
    attributes = ";".join(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    if colours is None:
        return Pen(attributes, "39", "49")
    colour = "39"
    background = "49"
    if style.color:
        colour = ";".join(style.color.downgrade(colours).get_ansi_codes())
    if style.bgcolor:
        background = ";".join(style.bgcolor.downgrade(colours).get_ansi_codes(foreground=False))
    if background in _LIGHT_BACKGROUNDS:
        colour = _ON_LIGHT.get(colour, colour)
    return Pen(attributes, colour, background)


def _split_cells(text: str) -> list[str]:
    """Return the cells of a text.

    A wide character takes two cells, and the second is empty. A character without width joins the
    cell before it.
    """
    cells: list[str] = []
    text = _CONTROLS.sub("\ufffd", text)
    for start, end, width in split_graphemes(text)[0]:
        if width:
            cells.append(text[start:end])
            cells += [""] * (width - 1)
        elif cells and cells[-1]:
            cells[-1] += text[start:end]
    return cells


@lru_cache(maxsize=4096)
def to_ascii(cell: str) -> str:
    """Return a cell for a terminal without UTF-8; both halves of a wide character are drawn."""
    if cell == "":
        return "?"
    plain = cell.translate(_TO_ASCII)
    return plain.encode("ascii", "replace").decode()[:1]
