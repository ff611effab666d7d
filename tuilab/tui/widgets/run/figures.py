"""Bars, tables and lanes that a scenario showed, below each other; what does not fit is scrolled to."""

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.figures import Figure, draw_figures, figures_of
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.drawing import Drawing
from tuilab.tui.widgets.pane import Pane


class FiguresPane(Pane):
    """The figures in one drawing, as high as they are."""

    def __init__(self) -> None:
        super().__init__("Figures")
        self._drawing = Drawing()
        self._figures: list[Figure] = []
        self._fitted: object = None
        self._counted: tuple[object, int] = (
            None,
            0,
        )  # of which figures and width, and how many lines

    def compose(self) -> ComposeResult:
        yield self._drawing

    def show(self, run: RunSource, view: View) -> None:
        self._figures = figures_of(run.summary)
        count = len(self._figures)
        self.note(Content(f"{count} figures" if count > 1 else ""))
        self._fit()

    def lines_at(self, width: int) -> int:
        """Return how many lines the figures have at a width."""
        key = tuple(self._figures), width
        if key != self._counted[0]:
            self._counted = key, len(draw_figures(self._figures, width).rows) if width > 0 else 0
        return self._counted[1]

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """Give the drawing the height that the figures have at this width, if these are others than before."""
        figures, width = tuple(self._figures), self.scrollable_content_region.width
        wanted = figures, width, self._drawing.symbols
        if not width or wanted == self._fitted:
            return
        self._fitted = wanted
        self._drawing.styles.height = len(draw_figures(figures, width, self._drawing.symbols).rows)

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            return draw_figures(figures, width, symbols)

        self._drawing.show(paint, figures)
