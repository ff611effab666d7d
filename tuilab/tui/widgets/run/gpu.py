"""What the GPUs of a run do along time, in strips below each other; of the others of the box on a key."""

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.gpu_strips import held_down, held_words, known_metrics, span_of, strips_of
from tuilab.drawings.picture import Picture
from tuilab.drawings.strips import Words, draw_strips
from tuilab.drawings.symbols import Symbols
from tuilab.record.own_gpus import other_gpus, own_gpus
from tuilab.text import show
from tuilab.tui.state.following import Shown
from tuilab.tui.state.view import View
from tuilab.tui.widgets.drawing import Drawing
from tuilab.tui.widgets.pane import Pane
from tuilab.tui.widgets.run.series import MEMORY


class GpuPane(Pane):
    """Strips along the same seconds as the memory."""

    DEFAULT_CSS = """
    GpuPane { overflow: hidden; }
    """

    def __init__(self) -> None:
        super().__init__("GPU")
        self._drawing = Drawing()

    def compose(self) -> ComposeResult:
        yield self._drawing

    def show(self, run: Shown, view: View) -> None:
        summary = run.summary
        own = [gpu.found for gpu in own_gpus(summary) if gpu.found]
        shown = own + (other_gpus(summary) if view.has_other_gpus else [])
        held = held_down(summary, shown)
        rows = strips_of(summary, shown, held)
        cursor = None if view.cursor_t is None else (view.cursor_t - summary.first_t) / 1e9
        span = view.windows.get(MEMORY) or span_of(rows, is_over=run.is_over)

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            return draw_strips(rows, width, height, symbols, span=span, cursor=cursor)

        counts = tuple(
            summary.resources[f"{gpu.uuid} {metric}"].count for gpu in shown for metric in known_metrics(summary, gpu)
        )
        texts = tuple(row.text for row in rows if isinstance(row, Words))
        self._drawing.show(paint, (counts, texts, span, cursor))
        self.border_title = Content(f"{show(shown[0].label)} {show(shown[0].name, 60)}" if len(shown) == 1 else "GPUs")
        words = held_words({gpu.uuid: held[gpu.uuid] for gpu in own})
        self.border_subtitle = Content.styled(words, "$text-warning") if words else None
