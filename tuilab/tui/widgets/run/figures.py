"""Bars, tables and lanes that a scenario showed, below each other.

A lane is a line over time or steps, with what one process or stream did when.
"""

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
    """Shows the figures in one drawing that is as high as they are; the pane scrolls."""

    def __init__(self) -> None:
        super().__init__("Figures")
        self._drawing = Drawing()
        self._figures: tuple[Figure, ...] = ()
        self._drawing_key: object = None  # the figures, width and symbols that the drawing has
        self._count_key: object = None  # the figures and the width that `_line_count` is of
        self._line_count = 0

    def compose(self) -> ComposeResult:
        yield self._drawing

    def show(self, run: RunSource, view: View) -> None:
        """Show the figures of the run, and how many they are if there are several."""
        self._figures = tuple(figures_of(run.summary))
        count = len(self._figures)
        note = f"{count} figures" if count > 1 else ""
        self.note(Content(note))
        self._fit()

    def lines_at(self, width: int) -> int:
        """Return the number of lines of the figures at a width."""
        key = self._figures, width
        if key != self._count_key:
            self._count_key = key
            self._line_count = 0
            if width > 0:
                picture = draw_figures(self._figures, width)
                self._line_count = len(picture.rows)
        return self._line_count

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """Give the drawing the height of the figures, unless nothing changed since last time."""
        figures = self._figures
        width = self.scrollable_content_region.width
        symbols = self._drawing.symbols
        key = figures, width, symbols
        if not width or key == self._drawing_key:
            return
        self._drawing_key = key
        picture = draw_figures(figures, width, symbols)
        self._drawing.styles.height = len(picture.rows)

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            return draw_figures(figures, width, symbols)

        self._drawing.show(paint, figures)
