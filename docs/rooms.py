"""Draws the rooms of tuilab in their order, with a dot wherever one imports another, as its imports are at this moment.

python docs/rooms.py     writes docs/rooms.svg
"""

import ast
import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.rooms import HOUSE, ROOMS, arrows_of_rooms

PICTURE = Path(__file__).with_name("rooms.svg")
GROUND = "What stands beside the rooms: errors, text, words, files, config"
CELL, LEFT, TOP = 28, 110, 92  # pixels: of a room in the grid, and what stands beside and above it
WORDS = LEFT + CELL * len(ROOMS) + 14
WIDTH, HEIGHT = WORDS + 440, TOP + CELL * len(ROOMS) + 36


def draw() -> str:
    """Return the picture."""
    arrows = arrows_of_rooms()
    parts = [part for at, room in enumerate(ROOMS) for part in row(at, room, arrows)]
    legend = text(
        LEFT, HEIGHT - 12, "A dot: the room of the row imports the room of the column. None stands right of the steps."
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            *parts,
            legend,
            "</svg>\n",
        ]
    )


def row(at: int, room: str, arrows: set[tuple[str, str]]) -> Iterator[str]:
    """Yield a room: its names at the side and on top, its step, what it imports, and what lives in it."""
    middle = TOP + CELL * at + CELL // 2
    yield text(LEFT - 10, middle + 4, room, 'text-anchor="end" font-weight="bold"')
    x = LEFT + CELL * at + CELL // 2
    yield text(x, TOP - 8, room, f'transform="rotate(-50 {x} {TOP - 8})"')
    yield f'<rect x="{LEFT}" y="{middle - 13}" width="{CELL * at}" height="26" fill="#f2f0ea"/>'
    yield f'<rect x="{LEFT + CELL * at + 1}" y="{middle - 13}" width="26" height="26" rx="5" fill="#2f6f8f"/>'
    for column, other in enumerate(ROOMS):
        if (room, other) in arrows:
            yield f'<circle cx="{LEFT + CELL * column + CELL // 2}" cy="{middle}" r="6" fill="#c8553d"/>'
    yield text(WORDS, middle + 4, what_lives_in(room))


def what_lives_in(room: str) -> str:
    """Return the beginning of what a room says about itself."""
    if room == "ground":
        return GROUND
    said = ast.get_docstring(ast.parse((HOUSE / room / "__init__.py").read_text())) or ""
    return re.split(r"[:;.](?:\s|$)", said)[0].replace("`", "")


def text(x: int, y: int, words: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="#222222"{" " if more else ""}{more}>{html.escape(words)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw())
