"""What a scenario shows besides curves and pictures: bars, tables and lanes, each drawn as high as it needs to be."""

from collections.abc import Sequence

from tuilab.drawings.bars import draw_bars
from tuilab.drawings.lanes import Lanes, draw_lanes, lanes_of
from tuilab.drawings.picture import Picture, Run
from tuilab.drawings.symbols import BRAILLE, Symbols
from tuilab.drawings.table import draw_table
from tuilab.record.events import BarsShown, TableShown
from tuilab.record.summary import RunSummary

Figure = BarsShown | TableShown | Lanes


def figures_of(summary: RunSummary) -> list[Figure]:
    """Return the figures of a run: bars and tables as they were first shown, the last of each title; then the lanes."""
    return [*summary.figures.values(), *lanes_of(summary)]


def draw_figure(figure: Figure, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw a figure, its title first."""
    if isinstance(figure, BarsShown):
        return draw_bars(figure, width, symbols)
    return (
        draw_table(figure, width, symbols)
        if isinstance(figure, TableShown)
        else draw_lanes(figure, width, symbols)
    )


def draw_figures(figures: Sequence[Figure], width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw figures below each other."""
    rows: list[tuple[Run, ...]] = []
    for figure in figures:
        rows += [((" " * width, ""),)] * bool(rows) + [*draw_figure(figure, width, symbols).rows]
    return Picture(width, tuple(rows))
