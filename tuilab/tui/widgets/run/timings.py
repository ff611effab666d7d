"""How long a step of each arm takes: the spread of its blocks, and the noise floor of this box as a band."""

from statistics import median, quantiles

from textual.content import Content

from tuilab.drawings.picture import Picture
from tuilab.drawings.spreads import Spread, draw_spreads
from tuilab.drawings.symbols import Symbols
from tuilab.record.blocks import measure_of, noise_floor, times_of
from tuilab.text import plural, show
from tuilab.tui.state.following import Shown
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import DrawingPane


class TimingsPane(DrawingPane):
    """A row for each arm: median, middle half, least and greatest block."""

    def __init__(self) -> None:
        super().__init__("Time of a step")

    def show(self, run: Shown, view: View) -> None:
        times = times_of(run.summary)
        noise, measure = noise_floor(run.summary), measure_of(run.summary)
        if measure.unit != "s" or measure.clock:
            self.entitle(Content(f"Time of a {measure.of}{measure.clock}" if measure.clock else show(measure.name, 40)))

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            spreads = [_spread(arm, times[arm], look) for look, arm in enumerate(run.arms) if arm in times]
            return draw_spreads(spreads, width, height, symbols, unit=measure.unit, noise=noise)

        counts = tuple((arm, len(found)) for arm, found in times.items())
        self.need(len(times) + 1 + (noise is not None))
        self.drawing.show(paint, (counts, noise))
        first = [one for found in run.summary.blocks.values() for one in found if not (one.is_warmup or one.is_rerun)]
        disturbed = sum(block.is_disturbed for block in first)
        words = f"{disturbed} of {plural(len(first), 'block')} disturbed" if disturbed else ""
        self.note(Content.styled(words, "$text-warning"))


def _spread(arm: str, found: list[float], look: int) -> Spread:
    times = sorted(found)
    low, _, high = quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
    return Spread(show(arm), median(times), max(low, times[0]), min(high, times[-1]), times[0], times[-1], look)
