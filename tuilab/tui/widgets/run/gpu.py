"""The load of GPUs over time, as strips: of those of the run, or of all of the machine."""

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
    """Strips along the same seconds as the chart of memory."""

    def __init__(self) -> None:
        super().__init__("GPU")
        self._throttling = Throttling()
        self._rows: Sequence[Row] = ()
        self._rows_version: Hashable = None

    def show(self, run: RunSource, view: View) -> None:
        """Show the GPUs of the run, or all of the machine, over the seconds that memory shows.

        The strips are made again only when there is new data.
        """
        summary = run.summary
        own = [gpu.nvml for gpu in own_gpus(summary) if gpu.nvml]
        shown = list(own)
        if view.has_other_gpus:
            shown += other_gpus(summary)
        version = version_of(summary, shown)
        if version != self._rows_version:
            self._rows_version = version
            self._make_rows(summary, own, shown)
        rows = self._rows
        cursor = None
        if view.cursor_t is not None:
            cursor = (view.cursor_t - summary.first_t) / 1e9
        span = view.windows.get(MEMORY) or span_of(rows, is_over=run.is_over)

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            return draw_strips(rows, width, height, symbols, span=span, cursor=cursor)

        self.need(len(rows) + 1)
        self.drawing.show(paint, (version, span, cursor))

    def _make_rows(
        self, summary: RunSummary, own: Sequence[GpuFound], shown: Sequence[GpuFound]
    ) -> None:
        """Make the strips, and show in the frame when the own GPUs were throttled."""
        throttled = find_throttling(summary, shown, self._throttling)
        self._rows = strips_of(summary, shown, throttled)
        title = "GPUs"
        if len(shown) == 1:
            title = f"{show(shown[0].label)} {show(shown[0].name, 60)}"
        self.entitle(Content(title))
        own_throttled = {gpu.uuid: throttled[gpu.uuid] for gpu in own}
        self.note(Content.styled(describe_throttling(own_throttled), "$text-warning"))
