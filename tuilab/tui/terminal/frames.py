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
# Attributes that are visible on a blank.
_ON_BLANKS = {
    "4",
    "7",
    "9",
    "21",
    "51",
    "52",
    "53",
}
# The light backgrounds among 16 colours. Yellow and white text is not visible on them. Brown (43)
# is not a light background.
_WHITE = (
    "47",
    "107",
)
_ON_WHITE = {"33": "30", "93": "30", "37": "90", "97": "90"}
_PLAIN = {
    **dict.fromkeys(range(0x2500, 0x2580), "+"),
    **{ord(sign): "-" for sign in "─━┄┅┈┉╌╍╴╶╸╺—–▔▁▂═"},
    **{ord(sign): "|" for sign in "│┃┆┇┊┋╎╏╵╷╹╻▏▎▍▌▐▕║"},
    **{ord(sign): "#" for sign in "█▓▒▇▆▅▄▃▀▊▉▋▖▗▘▝▙▚▛▜▞▟"},
    **{
        ord(sign): plain
        for sign, plain in zip(
            "●·•■▸▾▲▼◂▶‹›✓✗⚠○≈…░×µ±²°“”‘’→←↑↓⏎", "*.*#>v^v<><>+x!o~~:xu~2 \"\"''><^v<", strict=True
        )
    },
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
Run = tuple[int, int, str]  # row, column, and the text of adjacent cells with the same pen


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
        out: list[str] = []
        pen: Pen | None = None
        runs: dict[Pen, list[Run]] = {}
        for x, y, segments in parts:
            old = self._rows.get(y)
            if old is not None and old.segments == segments:
                continue
            part = self._expand(segments)
            row = self._rows[y] = _put(old, x, part)
            for span in _changes(old, row, x, x + len(part.cells)):
                if row.is_simple:
                    _gather(runs, row, y, span)
                else:
                    pen = _draw(out, row, y, span, pen)
        _draw_runs(out, runs, pen)
        return "".join([*out, "\x1b[0m"]) if out else ""

    def _expand(self, segments: Sequence[Segment]) -> FrameRow:
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
                cells += _graphemes(text)
                is_simple = False
            pens += [_pen(style, self._colours)] * (len(cells) - count_before)
        return FrameRow(
            segments,
            cells if self._is_utf8 else [to_ascii(cell) for cell in cells],
            pens,
            is_simple,
        )


def _put(old: FrameRow | None, x: int, part: FrameRow) -> FrameRow:
    """Return a line in which one part is replaced."""
    end = x + len(part.cells)
    if old is None or (x == 0 and end >= len(old.cells)):
        return part
    cells, pens = (
        [*old.cells[:x], *part.cells, *old.cells[end:]],
        [*old.pens[:x], *part.pens, *old.pens[end:]],
    )
    return FrameRow((), cells, pens, old.is_simple and part.is_simple)


def _changes(old: FrameRow | None, new: FrameRow, start: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges of cells from `start` to `end` that differ; nearby ranges are joined."""
    if old is None or len(old.cells) != len(new.cells):
        return [(0, len(new.cells))] if new.cells else []
    changes: list[tuple[int, int]] = []
    part = slice(start, end)
    pairs = zip(old.cells[part], new.cells[part], old.pens[part], new.pens[part], strict=True)
    for x, (was, cell, pen_was, pen) in enumerate(pairs, start):
        if was == cell and (pen_was == pen or (cell == " " and _is_as_blank(pen_was, pen))):
            continue
        first = x - 1 if cell == "" and x else x  # the left half of a character draws both halves
        if changes and first - changes[-1][1] <= _GAP:
            changes[-1] = (changes[-1][0], x + 1)
        else:
            changes.append((first, x + 1))
    return changes


def _gather(runs: dict[Pen, list[Run]], row: FrameRow, y: int, span: tuple[int, int]) -> None:
    """Add the cells of a span to the runs of their pens.

    A blank joins a neighbour if it looks the same in the pen of that neighbour.
    """
    start, end = span
    pen = row.pens[start]
    for x in range(start + 1, end):
        if row.pens[x] == pen or (row.cells[x] == " " and _is_as_blank(pen, row.pens[x])):
            continue
        text = "".join(row.cells[start:x])
        if text.strip(" ") or not _is_as_blank(pen, row.pens[x]):
            runs.setdefault(pen, []).append((y, start, text))
            start = x
        pen = row.pens[x]
    runs.setdefault(pen, []).append((y, start, "".join(row.cells[start:end])))


def _draw_runs(out: list[str], runs: dict[Pen, list[Run]], pen: Pen | None) -> None:
    """Append the text that draws all runs, pen after pen.

    This order is short, because a cursor move takes fewer bytes than a change of the colour.
    """
    row = column = -1  # where the cursor is
    for pen_of_runs, found in runs.items():
        for y, x, text in found:
            if y != row or x < column:
                out.append(f"\x1b[{y + 1};{x + 1}H")
            elif x > column:
                out.append(f"\x1b[{x - column}C")
            if pen_of_runs != pen:
                out.append(_change_of_pen(pen, pen_of_runs))
                pen = pen_of_runs
            out.append(text)
            row, column = y, x + len(text)


def _draw(
    out: list[str], row: FrameRow, y: int, span: tuple[int, int], pen: Pen | None
) -> Pen | None:
    """Append the text that draws the cells of a span; return the pen that the terminal then has."""
    is_placed = False
    for x in range(*span):
        cell = row.cells[x]
        if cell == "":
            continue
        if not is_placed:
            out.append(f"\x1b[{y + 1};{x + 1}H")
        if row.pens[x] != pen and not (
            cell == " " and pen is not None and _is_as_blank(pen, row.pens[x])
        ):
            out.append(_change_of_pen(pen, row.pens[x]))
            pen = row.pens[x]
        out.append(cell)
        # Terminals disagree on the width of other characters, so the cursor is moved after them.
        is_placed = len(cell) == 1 and bool(_IS_SIMPLE(cell))
    return pen


@lru_cache(maxsize=4096)
def _change_of_pen(old: Pen | None, new: Pen) -> str:
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
        codes = [
            *_change_of_attributes(old.attributes.split(";"), new.attributes.split(";")),
            new.colour * (old.colour != new.colour),
            new.background * (old.background != new.background),
        ]
    return f"\x1b[{';'.join(code for code in codes if code)}m"


def _change_of_attributes(old: list[str], new: list[str]) -> list[str]:
    """Return the codes that end old attributes and begin new ones.

    One code may end several attributes. Those of them that should stay are begun again.
    """
    ended = {_OFF[code] for code in old if code and code not in new}
    return [
        *sorted(ended),
        *(code for code in new if code and (code not in old or _OFF[code] in ended)),
    ]


@lru_cache(maxsize=4096)
def _is_as_blank(pen: Pen, other_pen: Pen) -> bool:
    """Return whether a blank looks the same in two pens."""
    shown = _ON_BLANKS.intersection(f"{pen.attributes};{other_pen.attributes}".split(";"))
    return pen.background == other_pen.background and not shown


@lru_cache(maxsize=4096)
def _pen(style: Style | None, colours: ColorSystem | None) -> Pen:
    if style is None:
        return Pen("", "39", "49")
    attributes = ";".join(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    if colours is None:
        return Pen(attributes, "39", "49")
    colour = ";".join(style.color.downgrade(colours).get_ansi_codes()) if style.color else "39"
    background = (
        ";".join(style.bgcolor.downgrade(colours).get_ansi_codes(False)) if style.bgcolor else "49"
    )
    return Pen(
        attributes, _ON_WHITE.get(colour, colour) if background in _WHITE else colour, background
    )


def _graphemes(text: str) -> list[str]:
    """Return the cells of a text.

    A wide character takes two cells, and the second is empty. A character without width joins the
    cell before it.
    """
    cells: list[str] = []
    text = _CONTROLS.sub("\ufffd", text)
    for start, end, width in split_graphemes(text)[0]:
        if width:
            cells += [text[start:end], *[""] * (width - 1)]
        elif cells and cells[-1]:
            cells[-1] += text[start:end]
    return cells


@lru_cache(maxsize=4096)
def to_ascii(cell: str) -> str:
    """Return a cell for a terminal without UTF-8; both halves of a wide character are drawn."""
    if cell == "":
        return "?"
    return cell.translate(_PLAIN).encode("ascii", "replace").decode()[:1]
