"""Make series for tests of drawings, and read and compare what is drawn."""

from collections.abc import Iterable

from tuilab.drawings.picture import Picture
from tuilab.record.series import Series
from tuilab.tui.widgets.drawing import Drawing

SECOND = 1_000_000_000


def series(values: Iterable[float], arm: str = "", name: str = "loss") -> Series:
    """Return a series of one point a step, and one step a second."""
    points = Series(name, arm)
    for step, value in enumerate(values):
        points.add(step, step * SECOND, value)
    return points


def drawn_text(drawing: Drawing) -> str:
    """Return the text of a drawing on the screen."""
    rows = range(drawing.content_size.height)
    return "\n".join(drawing.render_line(row).text.rstrip() for row in rows)


def changed_cells(before: Picture, after: Picture) -> int:
    """Return how many cells differ in character or role."""
    pairs = zip(_cells(before), _cells(after), strict=True)
    return sum(old != new for old, new in pairs)


def _cells(picture: Picture) -> list[tuple[str, str]]:
    """Return character and role of each cell."""
    cells = []
    for row in picture.rows:
        for text, role in row:
            cells += [(character, role) for character in text]
    return cells
