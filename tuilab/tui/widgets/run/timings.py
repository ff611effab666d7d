"""How long a step of each arm takes: the spread of its blocks, and the noise floor of this box as a band."""

from statistics import median, quantiles

from textual.content import Content

from tuilab.drawings.picture import Picture
from tuilab.drawings.spreads import MeasuredSpread, draw_spreads
from tuilab.drawings.symbols import Symbols
from tuilab.record.blocks import measure_of, noise_floor
from tuilab.record.timing.clock_words import ChartRow, chart_rows, clock_title
from tuilab.record.timing.clocks import arm_times
from tuilab.text.display import plural, shorten, show
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import DrawingPane

_WIDE = 56  # columns of a pane in which both clocks fit into a row


class TimingsPane(DrawingPane):
    """A row for each arm: median, middle half, least and greatest block."""

    def __init__(self) -> None:
        super().__init__("Time of a step")
        self._row_count = 0
        self._foot_rows = 1
        self._has_asides = False

    def show(self, run: RunSource, view: View) -> None:
        times = arm_times(run.summary)
        noise, measure = noise_floor(run.summary), measure_of(run.summary)
        is_named = any(one.is_named for one in times.values())
        if measure.unit != "s" or is_named:
            title = clock_title(times.values(), measure)
            self.entitle(
                Content(f"{title[:1].upper()}{title[1:]}" if is_named else shorten(title, 40))
            )
        rows = chart_rows({arm: times[arm] for arm in run.arms if arm in times})

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            spreads = [_spread(row, run.arms.index(row.arm)) for row in rows]
            return draw_spreads(spreads, width, height, symbols, unit=measure.unit, noise=noise)

        counts = tuple((row.arm, row.clock, row.aside, len(row.times)) for row in rows)
        self._row_count = len(rows)
        self._foot_rows = 1 + (noise is not None)
        self._has_asides = any(row.aside for row in rows)
        self._need_rows()
        self.drawing.show(paint, (counts, noise))
        first = [
            one
            for found in run.summary.blocks.values()
            for one in found
            if not (one.is_warmup or one.is_rerun)
        ]
        disturbed = sum(block.is_disturbed for block in first)
        words = f"{disturbed} of {plural(len(first), 'block')} disturbed" if disturbed else ""
        self.note(Content.styled(words, "$text-warning"))

    def on_resize(self) -> None:
        self._need_rows()

    def _need_rows(self) -> None:
        """Need two rows an arm if the time on the other clock has no room behind the one on the judged clock."""
        if self._has_asides and self.outer_size.width < _WIDE:
            self.need(2 * self._row_count + 2)
        else:
            self.need(self._row_count + self._foot_rows)


def _spread(row: ChartRow, look: int) -> MeasuredSpread:
    times = sorted(row.times)
    low, _, high = quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
    label = f"{show(row.arm)}, {row.clock}" if row.clock else show(row.arm)
    return MeasuredSpread(
        label,
        median(times),
        max(low, times[0]),
        min(high, times[-1]),
        times[0],
        times[-1],
        look,
        row.aside,
    )
