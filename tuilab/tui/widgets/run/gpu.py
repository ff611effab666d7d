"""What the GPUs of a run do along time, in strips below each other; of the others of the box on a key."""

from collections.abc import Hashable, Sequence

from textual.content import Content

from tuilab.drawings.gpu_strips import (
    describe_throttling,
    find_throttling,
    span_of,
    strips_of,
    version_of,
)
from tuilab.drawings.picture import Picture
from tuilab.drawings.strips import Row, draw_strips
from tuilab.drawings.symbols import Symbols
from tuilab.record.events import GpuFound
from tuilab.record.gpus.own_gpus import Throttling, other_gpus, own_gpus
from tuilab.record.summary import RunSummary
from tuilab.text.display import show
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import DrawingPane
from tuilab.tui.widgets.run.series import MEMORY


class GpuPane(DrawingPane):
    """Strips along the same seconds as the memory."""

    def __init__(self) -> None:
        super().__init__("GPU")
        self._throttling = Throttling()
        self._rows: Sequence[Row] = ()
        self._version: Hashable = None  # of the rows

    def show(self, run: RunSource, view: View) -> None:
        summary = run.summary
        own = [gpu.found for gpu in own_gpus(summary) if gpu.found]
        shown = own + (other_gpus(summary) if view.has_other_gpus else [])
        version = version_of(summary, shown)
        if version != self._version:
            self._version = version
            self._make_rows(summary, own, shown)
        rows = self._rows
        cursor = None if view.cursor_t is None else (view.cursor_t - summary.first_t) / 1e9
        span = view.windows.get(MEMORY) or span_of(rows, is_over=run.is_over)

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            return draw_strips(rows, width, height, symbols, span=span, cursor=cursor)

        self.need(len(rows) + 1)
        self.drawing.show(paint, (version, span, cursor))

    def _make_rows(
        self, summary: RunSummary, own: Sequence[GpuFound], shown: Sequence[GpuFound]
    ) -> None:
        held = find_throttling(summary, shown, self._throttling)
        self._rows = strips_of(summary, shown, held)
        self.entitle(
            Content(
                f"{show(shown[0].label)} {show(shown[0].name, 60)}" if len(shown) == 1 else "GPUs"
            )
        )
        words = describe_throttling({gpu.uuid: held[gpu.uuid] for gpu in own})
        self.note(Content.styled(words, "$text-warning"))
