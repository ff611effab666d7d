"""The pictures that a scenario showed: small arrays as coloured cells, beside each other and in rows below."""

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

_MOST = 48
_LEAST_WIDTH, _LEAST_HEIGHT = 16, 7


class PicturesPane(Pane):
    """The last picture of each title and arm; what has no room is scrolled to."""

    DEFAULT_CSS = """
    PicturesPane { layout: grid; grid-gutter: 0 1; overflow-y: auto; }
    """

    def __init__(self) -> None:
        super().__init__("Pictures")
        self._drawings: dict[tuple[str, str], Drawing] = {}

    def compose(self) -> ComposeResult:
        yield from ()

    def show(self, run: RunSource, view: View) -> None:
        images = dict(list(run.summary.images.items())[:_MOST])
        for key, image in images.items():
            if key not in self._drawings:
                self._drawings[key] = Drawing()
                self.mount(self._drawings[key])
                self._share_room()
            self._drawings[key].show(_painter(image), (image.t, image.cells[:64], image.step))
        hidden = len(run.summary.images) - len(images)
        self.note(Content(f"{hidden} more in the report" if hidden else ""))

    def on_resize(self) -> None:
        self._share_room()

    def _share_room(self) -> None:
        """Put as many beside each other as can be made out, and give the rows the height that there is."""
        room, count = self.content_size, len(self._drawings)
        if not count or not room:
            return
        columns = min(count, max(room.width // _LEAST_WIDTH, 1))
        rows = -(-count // columns)
        self.styles.grid_size_columns = columns
        self.styles.grid_rows = str(max(room.height // rows, min(_LEAST_HEIGHT, room.height)))


def _painter(image: ImageShown) -> Paint:
    def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
        return draw_image(image, width, height, symbols, has_colour=has_colour)

    return paint
