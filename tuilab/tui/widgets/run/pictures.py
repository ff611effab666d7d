"""The pictures that a scenario showed: small arrays as coloured cells, in rows."""

import math

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.heat import draw_image
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.record.events import ImageShown
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.drawing import Drawing, Paint
from tuilab.tui.widgets.pane import Pane

_MAX_PICTURES = 48
_MIN_WIDTH = 16
_MIN_HEIGHT = 7


class PicturesPane(Pane):
    """Shows the last picture of each title and arm. It scrolls if there is no room for all."""

    DEFAULT_CSS = """
    PicturesPane { layout: grid; grid-gutter: 0 1; overflow-y: auto; }
    """

    def __init__(self) -> None:
        super().__init__("Pictures")
        self._drawings: dict[tuple[str, str], Drawing] = {}

    def compose(self) -> ComposeResult:
        yield from ()

    def show(self, run: RunSource, view: View) -> None:
        """Show the pictures; of very many, show the first ones and count the others."""
        images = list(run.summary.images.items())
        for key, image in images[:_MAX_PICTURES]:
            if key not in self._drawings:
                self._drawings[key] = Drawing()
                self.mount(self._drawings[key])
                self._share_room()
            version = (image.t, image.cells[:64], image.step)
            self._drawings[key].show(_painter(image), version)
        hidden = len(images) - _MAX_PICTURES
        note = f"{hidden} more in the report" if hidden > 0 else ""
        self.note(Content(note))

    def on_resize(self) -> None:
        self._share_room()

    def _share_room(self) -> None:
        """Put as many next to each other as can be made out, and share the height of the pane."""
        size = self.content_size
        count = len(self._drawings)
        if not count or not size:
            return
        columns = min(count, max(size.width // _MIN_WIDTH, 1))
        rows = math.ceil(count / columns)
        min_height = min(_MIN_HEIGHT, size.height)
        row_height = max(size.height // rows, min_height)
        self.styles.grid_size_columns = columns
        self.styles.grid_rows = str(row_height)


def _painter(image: ImageShown) -> Paint:
    def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
        return draw_image(image, width, height, symbols, has_colour=has_colour)

    return paint
