"""The bars, tables and lanes that a scenario shows, each drawn as high as it needs to be.

A lane is a row of spans along time, for example all that one process did.
"""

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
    """Return the figures of a run: first its bars and tables, then its lanes.

    Bars and tables are in the order in which their titles first appeared. Of those with the same
    title the last one counts.
    """
    return [*summary.figures.values(), *lanes_of(summary)]


def draw_figure(figure: Figure, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw a figure, its title first."""
    if isinstance(figure, BarsShown):
        return draw_bars(figure, width, symbols)
    if isinstance(figure, TableShown):
        return draw_table(figure, width, symbols)
    return draw_lanes(figure, width, symbols)


def draw_figures(figures: Sequence[Figure], width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw figures below each other, with a blank row between two of them."""
    rows: list[tuple[Run, ...]] = []
    for figure in figures:
        if rows:
            rows.append(((" " * width, ""),))
        rows += draw_figure(figure, width, symbols).rows
    return Picture(width, tuple(rows))
