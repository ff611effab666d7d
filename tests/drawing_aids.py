"""Series for the tests of drawings."""

from collections.abc import Iterable

from tuilab.drawings.picture import Picture
from tuilab.record.series import Series
from tuilab.tui.widgets.drawing import Drawing

SECOND = 1_000_000_000


def series(values: Iterable[float], arm: str = "", name: str = "loss") -> Series:
    """A point a step, one each second."""
    made = Series(name, arm)
    for step, value in enumerate(values):
        made.add(step, step * SECOND, value)
    return made


def drawn_text(drawing: Drawing) -> str:
    """What a drawing has on the screen, without its colours."""
    return "\n".join(
        drawing.render_line(y).text.rstrip() for y in range(drawing.content_size.height)
    )


def changed_cells(before: Picture, after: Picture) -> int:
    """How many cells differ in character or role."""
    return sum(was != cell for was, cell in zip(_cells(before), _cells(after), strict=True))


def _cells(picture: Picture) -> list[tuple[str, str]]:
    return [(character, role) for row in picture.rows for text, role in row for character in text]
