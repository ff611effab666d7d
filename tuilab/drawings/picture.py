"""A picture: rows of text, each piece with a role that the theme of the screen gives a look."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tuilab.arrays import NDArray, np

Run = tuple[str, str]  # a piece of a row, and its role

ARMS = tuple(f"arm{style}" for style in range(6))
TONES = tuple(f"tone{level}" for level in range(8))  # from the least value to the greatest
_PARTS = (
    "axis",
    "bad",
    "band",
    "cursor",
    "grid",
    "guide",
    "label",
    "muted",
    "other",
    "raw",
    "title",
    "value",
)
ROLES = (*ARMS, *TONES, *_PARTS)
"""All roles. A run may also be called `a on b`: role a, on the colour of role b."""

_SPACE = ord(" ")
_WIDE_HALF = 0  # in the cell after a wide character, which takes two
_MARKS = ("Mn", "Me")  # accents, and the vowels that Thai sets above and below


@dataclass(frozen=True)
class Picture:
    """Rows of runs, all of one width."""

    width: int
    rows: tuple[tuple[Run, ...], ...]

    @property
    def text(self) -> str:
        """The picture without its roles."""
        lines = []
        for row in self.rows:
            line = "".join([text for text, _ in row])
            lines.append(line.rstrip())
        return "\n".join(lines)


class Canvas:
    """Cells to draw on. Text that falls outside is cut off."""

    def __init__(self, width: int, height: int) -> None:
        """Make an empty canvas; a negative size counts as 0.

        `codes` has the code point of each cell, and `roles` the number of its role, where 0 is no
        role.
        """
        self.width = max(width, 0)
        self.height = max(height, 0)
        self.codes: NDArray[np.uint32] = np.full((self.height, self.width), _SPACE, np.uint32)
        self.roles: NDArray[np.uint8] = np.zeros((self.height, self.width), np.uint8)
        self._role_names = [""]
        # By row and column: accents and the like, which take no cell.
        self._marks: dict[tuple[int, int], str] = {}

    def role_number(self, role: str) -> int:
        """Return the number that stands for a role in `roles`."""
        if role not in self._role_names:
            self._role_names.append(role)
        return self._role_names.index(role)

    def put(self, x: int, y: int, text: str, role: str = "") -> int:
        """Write `text` from column `x` on, and return the column after it, which may be outside.

        What falls outside is left out. A wide character that is cut in half becomes a blank.
        """
        codes = cell_codes(text)
        after = x + len(codes)
        left = max(x, 0)
        right = min(after, self.width)
        if not 0 <= y < self.height or left >= right:
            return after
        row = self.codes[y]
        # No half of a wide character stays without its other half, neither of the text that is
        # written over nor of the new text at the edges of the canvas.
        if row[left] == _WIDE_HALF:
            row[left - 1] = _SPACE
        if right < self.width and row[right] == _WIDE_HALF:
            row[right] = _SPACE
        row[left:right] = codes[left - x : right - x]
        if row[left] == _WIDE_HALF:
            row[left] = _SPACE
        if right < after and codes[right - x] == _WIDE_HALF:
            row[right - 1] = _SPACE
        self.roles[y, left:right] = self.role_number(role)
        self._put_marks(x, y, left, right, text)
        return after

    def _put_marks(self, x: int, y: int, left: int, right: int, text: str) -> None:
        """Replace the marks from column `left` to `right` by those of `text`, which begins at x."""
        if self._marks:
            for row, column in list(self._marks):
                if row == y and left <= column < right:
                    del self._marks[row, column]
        for cell, mark in marks(text).items():
            if left <= x + cell < right:
                self._marks[y, x + cell] = mark

    def fill(
        self, rows: slice, columns: slice, mark: str, role: str, *, over: tuple[str, ...] = ()
    ) -> None:
        """Put a character into each cell of a block that is blank or whose role is in `over`."""
        codes = self.codes[rows, columns]
        roles = self.roles[rows, columns]
        is_free = codes == _SPACE
        for name in over:
            is_free |= roles == self.role_number(name)
        codes[is_free] = ord(mark)
        roles[is_free] = self.role_number(role)

    def picture(self) -> Picture:
        """Return the drawing as a picture.

        A blank has no role, so that it does not change when its neighbours do.
        """
        if not self.width:
            return Picture(0, ((),) * self.height)
        names = tuple(self._role_names)
        # By role: whether its colours show in a blank cell as well.
        has_ground = np.array([" on " in name or name == "cursor" for name in names])
        is_blank = (self.codes == _SPACE) & ~has_ground[self.roles]
        roles = np.where(is_blank, np.uint8(0), self.roles).tobytes()
        text = self.codes.tobytes().decode("utf-32-le")
        marks_by_row: dict[int, list[tuple[int, str]]] = {}
        for (y, x), mark in self._marks.items():
            marks_by_row.setdefault(y, []).append((x, mark))
        rows = []
        for y in range(self.height):
            row = slice(y * self.width, (y + 1) * self.width)
            row_marks = marks_by_row.get(y, [])
            rows.append(_make_runs(text[row], roles[row], names, *row_marks))
        return Picture(self.width, tuple(rows))


# Cached because few rows differ from one picture to the next.
@lru_cache(1024)
def _make_runs(
    line: str, roles: bytes, names: tuple[str, ...], *row_marks: tuple[int, str]
) -> tuple[Run, ...]:
    """Return the runs of a row: each stretch of cells that have one role."""
    characters = list(line)
    for column, mark in row_marks:
        if line[column] not in " \0":
            characters[column] += mark
    edges = [0]
    for column, (role, next_role) in enumerate(pairwise(roles), 1):
        if role != next_role:
            edges.append(column)
    edges.append(len(line))
    runs = []
    for start, end in pairwise(edges):
        text = "".join(characters[start:end]).replace("\0", "")
        runs.append((text, names[roles[start]]))
    return tuple(runs)


def centre(column: int, length: int, width: int) -> int:
    """Return where a text begins that is centred at a column, but lies within `width` columns."""
    return min(max(column - length // 2, 0), width - length)


def arm_role(style: int) -> str:
    """Return the role of the lines and bars of a style. Styles share the colours of few arms."""
    return ARMS[style % len(ARMS)]


# ---- the cells of a text


@lru_cache(4096)
def cell_codes(text: str) -> tuple[int, ...]:
    """Return the code point of each cell of `text`.

    A wide character is followed by 0. A character without a width is left out.
    """
    if text.isascii():
        return tuple(text.encode())
    codes: list[int] = []
    for character in text:
        width = _character_width(character)
        if width:
            codes.append(ord(character))
        if width > 1:
            codes.append(_WIDE_HALF)
    return tuple(codes)


def count_cells(text: str) -> int:
    """Return how many cells a text takes."""
    return len(cell_codes(text))


@lru_cache(4096)
def marks(text: str) -> dict[int, str]:
    """Return the accents and the like that take no cell, by the cell of their character."""
    if text.isascii():
        return {}
    marks_by_cell: dict[int, str] = {}
    cell = 0
    next_cell = 0
    for character in text:
        width = _character_width(character)
        if width:
            cell = next_cell
            next_cell += width
        elif next_cell and unicodedata.category(character) in _MARKS:
            marks_by_cell[cell] = marks_by_cell.get(cell, "") + character
    return marks_by_cell


def fit(text: str, width: int) -> str:
    """Return `text` cut to `width` cells, with an ellipsis where something is missing."""
    if count_cells(text) <= width:
        return text
    end = 0
    room = width - _character_width(text[0])
    while room > 0:
        end += 1
        room -= _character_width(text[end])
    return text[:end] + "…"[:width]


def _character_width(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    if unicodedata.category(character) in (*_MARKS, "Cf"):
        return 0
    return 1
