"""The pictures that a scenario showed: small arrays as coloured cells, beside each other."""

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.heat import draw_image
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.record.events import ImageShown
from tuilab.tui.state.following import Shown
from tuilab.tui.state.view import View
from tuilab.tui.widgets.drawing import Drawing, Paint
from tuilab.tui.widgets.pane import Pane

_MOST = 6


class PicturesPane(Pane):
    """The last picture of each title and arm."""

    DEFAULT_CSS = """
    PicturesPane { layout: horizontal; overflow: hidden; }
    PicturesPane Drawing { margin-right: 1; }
    """

    def __init__(self) -> None:
        super().__init__("Pictures")
        self._drawings: dict[tuple[str, str], Drawing] = {}

    def compose(self) -> ComposeResult:
        yield from ()

    def show(self, run: Shown, view: View) -> None:
        images = dict(list(run.summary.images.items())[:_MOST])
        for key, image in images.items():
            if key not in self._drawings:
                self._drawings[key] = Drawing()
                self.mount(self._drawings[key])
            self._drawings[key].show(_painter(image), (image.t, image.cells[:64], image.step))
        hidden = len(run.summary.images) - len(images)
        self.border_subtitle = Content(f"{hidden} more in the report") if hidden else None


def _painter(image: ImageShown) -> Paint:
    def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
        return draw_image(image, width, height, symbols, has_colour=has_colour)

    return paint
