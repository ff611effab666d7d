"""The time of a step of each arm: the spread of its blocks, and the noise floor as a band."""

from statistics import median, quantiles

from textual.content import Content

from tuilab.drawings.picture import Picture
from tuilab.drawings.spreads import MeasuredSpread, draw_spreads
from tuilab.drawings.symbols import Symbols
from tuilab.record.blocks import measure_of, noise_floor
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clock_words import ChartRow, chart_rows, clock_title
from tuilab.record.timing.clocks import arm_times
from tuilab.text.display import plural, shorten, show
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import DrawingPane

_WIDE = 56  # columns of a pane in which both clocks fit into a row


class TimingsPane(DrawingPane):
    """A row for each arm: median, middle half, smallest and largest block."""

    def __init__(self) -> None:
        super().__init__("Time of a step")
        self._row_count = 0
        self._foot_rows = 1
        self._has_asides = False

    def show(self, run: RunSource, view: View) -> None:
        times = arm_times(run.summary)
        noise = noise_floor(run.summary)
        measure = measure_of(run.summary)
        is_named = any(arm.is_named for arm in times.values())
        if is_named:
            title = clock_title(times.values(), measure)
            self.entitle(Content(f"{title[:1].upper()}{title[1:]}"))
        elif measure.unit != "s":
            self.entitle(Content(shorten(clock_title(times.values(), measure), 40)))
        rows = chart_rows({arm: times[arm] for arm in run.arms if arm in times})

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            spreads = [_spread(row, run.arms.index(row.arm)) for row in rows]
            return draw_spreads(spreads, width, height, symbols, unit=measure.unit, noise=noise)

        counts = tuple((row.arm, row.clock, row.aside, len(row.times)) for row in rows)
        self._row_count = len(rows)
        self._foot_rows = 1 if noise is None else 2
        self._has_asides = any(row.aside for row in rows)
        self._need_rows()
        self.drawing.show(paint, (counts, noise))
        self.note(Content.styled(_describe_disturbed(run.summary), "$text-warning"))

    def on_resize(self) -> None:
        self._need_rows()

    def _need_rows(self) -> None:
        """Ask for two rows an arm if the times on both clocks do not fit next to each other."""
        if self._has_asides and self.outer_size.width < _WIDE:
            self.need(2 * self._row_count + 2)
        else:
            self.need(self._row_count + self._foot_rows)


def _describe_disturbed(summary: RunSummary) -> str:
    """Return how many blocks are disturbed, without warm-up blocks and blocks of a rerun."""
    blocks = []
    for arm_blocks in summary.blocks.values():
        blocks += [block for block in arm_blocks if not (block.is_warmup or block.is_rerun)]
    disturbed = sum(block.is_disturbed for block in blocks)
    if not disturbed:
        return ""
    return f"{disturbed} of {plural(len(blocks), 'block')} disturbed"


def _spread(row: ChartRow, style: int) -> MeasuredSpread:
    """Return the spread of an arm; `style` is the number of its line style."""
    times = sorted(row.times)
    if len(times) > 1:
        low, _, high = quantiles(times, n=4)
    else:
        low = high = times[0]
    # `quantiles` extrapolates: of a few times, its quartiles may lie outside of the range.
    low = max(low, times[0])
    high = min(high, times[-1])
    label = show(row.arm)
    if row.clock:
        label += f", {row.clock}"
    return MeasuredSpread(label, median(times), low, high, times[0], times[-1], style, row.aside)
