"""The time of a step of each arm: the spread of its blocks, and the noise floor as a band.

An arm is a variant that is compared. A block is a batch of its calls, which is timed as a whole.
"""

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
        """Show the times of each arm, the noise floor, and how many blocks were disturbed."""
        times = arm_times(run.summary)
        noise = noise_floor(run.summary)
        measure = measure_of(run.summary)
        is_named = any(arm.is_named for arm in times.values())
        if is_named or measure.unit != "s":
            title = clock_title(times.values(), measure)
            if is_named:
                title = f"{title[:1].upper()}{title[1:]}"
            else:
                title = shorten(title, 40)
            self.entitle(Content(title))
        times_in_order = {arm: times[arm] for arm in run.arms if arm in times}
        rows = chart_rows(times_in_order)

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            spreads = [_spread(row, run.arms.index(row.arm)) for row in rows]
            return draw_spreads(spreads, width, height, symbols, unit=measure.unit, noise=noise)

        shown_rows = []
        for row in rows:
            shown_rows.append((row.arm, row.clock, row.aside, len(row.times)))
        self._row_count = len(rows)
        self._foot_rows = 1 if noise is None else 2
        self._has_asides = any(row.aside for row in rows)
        self._need_rows()
        self.drawing.show(paint, (tuple(shown_rows), noise))
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
    block_count = 0
    disturbed_count = 0
    for blocks in summary.blocks.values():
        for block in blocks:
            if block.is_warmup or block.is_rerun:
                continue
            block_count += 1
            if block.is_disturbed:
                disturbed_count += 1
    if not disturbed_count:
        return ""
    return f"{disturbed_count} of {plural(block_count, 'block')} disturbed"


def _spread(row: ChartRow, style: int) -> MeasuredSpread:
    """Return the spread of an arm; `style` is the number of its line style."""
    times = sorted(row.times)
    low = times[0]
    high = times[-1]
    if len(times) > 1:
        # `quantiles` extrapolates: of a few times, its quartiles may lie outside of the range.
        lower_quartile, _, upper_quartile = quantiles(times, n=4)
        low = max(lower_quartile, low)
        high = min(upper_quartile, high)
    label = show(row.arm)
    if row.clock:
        label += f", {row.clock}"
    return MeasuredSpread(label, median(times), low, high, times[0], times[-1], style, row.aside)
