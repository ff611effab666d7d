"""What every drawing becomes: rows of text in few styles, each style a role that the screen's theme gives a look."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tuilab.arrays import NDArray, np

Run = tuple[str, str]  # text, and the role that says how it looks

ARMS = tuple(f"arm{look}" for look in range(6))
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
_MARKS = ("Mn", "Me")  # accents, and the vowels that Thai sets above and below


@dataclass(frozen=True)
class Picture:
    """Rows of runs, all of one width."""

    width: int
    rows: tuple[tuple[Run, ...], ...]

    @property
    def text(self) -> str:
        """The picture without its styles."""
        return "\n".join("".join(text for text, _ in row).rstrip() for row in self.rows)


class Canvas:
    """Cells to draw on; what falls outside is cut off."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(width, 0), max(height, 0)
        self.codes: NDArray[np.uint32] = np.full((self.height, self.width), _SPACE, np.uint32)
        self.looks: NDArray[np.uint8] = np.zeros((self.height, self.width), np.uint8)
        self._names = [""]
        self._marks: dict[
            tuple[int, int], str
        ] = {}  # by row and column: accents and the like, which take no cell

    def look(self, role: str) -> int:
        """Return the number that stands for a role in `looks`."""
        if role not in self._names:
            self._names.append(role)
        return self._names.index(role)

    def put(self, x: int, y: int, text: str, role: str = "") -> int:
        """Write `text` and return the column after it."""
        codes = cell_codes(text)
        after = x + len(codes)
        left, right = max(x, 0), min(after, self.width)
        if not 0 <= y < self.height or left >= right:
            return after
        row = self.codes[y]
        if row[left] == 0:  # the right half of a wide character
            row[left - 1] = _SPACE
        if right < self.width and row[right] == 0:
            row[right] = _SPACE
        row[left:right] = codes[left - x : right - x]
        if row[left] == 0:
            row[left] = _SPACE
        if right < after and codes[right - x] == 0:
            row[right - 1] = _SPACE
        self.looks[y, left:right] = self.look(role)
        if self._marks:
            self._marks = {
                at: mark
                for at, mark in self._marks.items()
                if at[0] != y or not left <= at[1] < right
            }
        self._marks |= {
            (y, x + at): mark for at, mark in marks(text).items() if left <= x + at < right
        }
        return after

    def fill(
        self, rows: slice, columns: slice, mark: str, role: str, *, over: tuple[str, ...] = ()
    ) -> None:
        """Put one character into every cell of a block that is blank, or has one of the roles `over`."""
        codes, looks = self.codes[rows, columns], self.looks[rows, columns]
        is_free = codes == _SPACE
        for name in over:
            is_free |= looks == self.look(name)
        codes[is_free] = ord(mark)
        looks[is_free] = self.look(role)

    def picture(self) -> Picture:
        """Return what was drawn; a blank has no role, so that it does not change when its neighbours do."""
        if not self.width:
            return Picture(0, ((),) * self.height)
        has_ground = np.array([" on " in name or name == "cursor" for name in self._names])
        looks = np.where(
            (self.codes == _SPACE) & ~has_ground[self.looks], np.uint8(0), self.looks
        ).tobytes()
        text, names = self.codes.tobytes().decode("utf-32-le"), tuple(self._names)
        marks: list[dict[int, str]] = [{} for _ in range(self.height)]
        for (y, x), mark in self._marks.items():
            marks[y][x] = mark
        rows = (slice(y * self.width, (y + 1) * self.width) for y in range(self.height))
        return Picture(
            self.width,
            tuple(
                _runs(text[row], looks[row], names, *marks[y].items()) for y, row in enumerate(rows)
            ),
        )


@lru_cache(1024)
def _runs(
    line: str, looks: bytes, names: tuple[str, ...], *marks: tuple[int, str]
) -> tuple[Run, ...]:
    """Return the runs of a row, one for each look; from one picture to the next few rows are others."""
    text = list(line)
    for at, mark in marks:
        text[at] += mark * (line[at] not in " \0")
    edges = [
        0,
        *(at for at, (look, after) in enumerate(pairwise(looks), 1) if look != after),
        len(line),
    ]
    return tuple(
        ("".join(text[start:end]).replace("\0", ""), names[looks[start]])
        for start, end in pairwise(edges)
    )


@lru_cache(4096)
def cell_codes(text: str) -> tuple[int, ...]:
    """Return the characters of `text` by the cell: a wide one is followed by 0, one without width is left out."""
    if text.isascii():
        return tuple(text.encode())
    codes: list[int] = []
    for character in text:
        codes += (ord(character), 0)[: _width_of(character)]
    return tuple(codes)


@lru_cache(4096)
def marks(text: str) -> dict[int, str]:
    """Return what takes no cell, by the cell of the character that it belongs to."""
    found: dict[int, str] = {}
    at = after = 0
    for character in "" if text.isascii() else text:
        if width := _width_of(character):
            at, after = after, after + width
        elif after and unicodedata.category(character) in _MARKS:
            found[at] = found.get(at, "") + character
    return found


def fit(text: str, width: int) -> str:
    """Return `text` cut to `width` cells, with an ellipsis where something is missing."""
    if len(cell_codes(text)) <= width:
        return text
    room, end = width, 0
    while (room := room - _width_of(text[end])) > 0:
        end += 1
    return text[:end] + "…"[:width]


def _width_of(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 0 if unicodedata.category(character) in (*_MARKS, "Cf") else 1
