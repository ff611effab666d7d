"""The curves of compared runs over each other, one chart for each metric."""

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.reports.comparison_words import axes_of
from tuilab.text.display import show
from tuilab.text.words import unit_of
from tuilab.tui.state.view import View
from tuilab.tui.widgets.chart import Chart, Curves
from tuilab.tui.widgets.compare.compared import number

_MAX_CHARTS = 4
_CHART_ROWS = 12


class CurvesColumn(Vertical):
    """Shows one repeat of each run and arm: the first, or the one that the user chose."""

    DEFAULT_CSS = """
    CurvesColumn.is-empty { display: none; }
    CurvesColumn Chart {
        height: 1fr; display: none;
        border: round $border-blurred; border-subtitle-color: $foreground 70%;
        &:focus { border: round $primary; }
        &.is-shown { display: block; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="curves")
        self._summaries: Sequence[RunSummary] = ()
        self._names: Sequence[str] = ()
        self._are_over = False
        self._first = 0  # the place of the metric in the first chart
        self._repeat = 0  # counted from 1; 0: the first repeat with a curve
        self._views = [View()] * _MAX_CHARTS  # of each chart, whatever metric it shows

    def compose(self) -> ComposeResult:
        for place in range(_MAX_CHARTS):
            chart = Chart(name=str(place), id=f"chart{place}")
            chart.can_focus = True
            yield chart

    def show(
        self, summaries: Sequence[RunSummary], names: Sequence[str], *, are_over: bool
    ) -> None:
        """Show the curves of these metrics."""
        self._summaries = summaries
        self._names = names
        self._are_over = are_over
        self.refresh_charts()

    def refresh_charts(self) -> None:
        """Show as many charts as there is room for, the chosen metric in the first."""
        names = self._names
        count = min(max(self.size.height // _CHART_ROWS, 1), _MAX_CHARTS, len(names))
        for place, chart in enumerate(self.query(Chart)):
            is_shown = place < count
            chart.set_class(is_shown, "is-shown")
            if is_shown:
                self._show(chart, self._views[place], (self._first + place) % len(names))
        self.set_class(not names, "is-empty")

    def next_curve(self, step: int) -> None:
        """Begin with the next metric, or with the previous one."""
        if self._names:
            self._first = (self._first + step) % len(self._names)
            self.refresh_charts()

    def next_repeat(self) -> str:
        """Show the next repeat of each run; after the last, the first.

        Return a message if the runs have only one repeat. Otherwise the charts name the repeat.
        """
        repeats = self._repeats
        if len(repeats) < 2:
            return "each run has only one repeat"
        place = 1  # the first repeat is shown while none is chosen
        if self._repeat in repeats:
            place = repeats.index(self._repeat) + 1
        if place < len(repeats):
            self._repeat = repeats[place]
        else:
            self._repeat = 0
        self.refresh_charts()
        return ""

    def toggle_log(self) -> None:
        """Switch the y axis of each chart between logarithmic and linear."""
        for place, chart in enumerate(self.query(Chart)):
            view = self._views[place]
            # The view of a hidden chart may be newer than the chart.
            is_log = view.is_log
            if is_log is None:
                is_log = chart.is_log
            self._views[place] = replace(view, is_log=not is_log)
        self.refresh_charts()

    def on_resize(self) -> None:
        self.refresh_charts()

    def on_chart_clicked(self, message: Chart.Clicked) -> None:
        place = list(self.query(Chart)).index(message.chart)
        view = self._views[place]
        self._views[place] = view.with_cursor(message.chart.key, message.spot)
        self.refresh_charts()

    @property
    def _repeats(self) -> list[int]:
        """The numbers of the repeats in which any of the runs logged something."""
        repeats: set[int] = set()
        for summary in self._summaries:
            repeats.update(summary.repeats_with())
        return sorted(repeats)

    def _show(self, chart: Chart, view: View, place: int) -> None:
        """Show the metric at a place of the list in a chart."""
        name = self._names[place]
        series: list[Series] = []
        labels = []
        starts = []
        for run, summary in enumerate(self._summaries):
            for run_series in lines_of_repeat(summary, name, self._repeat):
                label = f"run {number(run)} {run_series.arm}".strip()
                series.append(run_series)
                labels.append(f"{label}:")
                starts.append(summary.first_t)
        axes = axes_of(self._summaries, name)
        curves = Curves(
            tuple(series),
            tuple(labels),
            title=show(axes.y or name, 60),
            unit=unit_of(name),
            axes=axes,
            starts=tuple(starts),
            is_over=self._are_over,
            empty="not logged in this repeat",
        )
        chart.show_curves(curves, view)
        chart.border_subtitle = Content("  ".join(self._subtitles(place)))

    def _subtitles(self, place: int) -> list[str]:
        """Return which metric and which repeat a chart shows, if there are several."""
        subtitles = []
        if len(self._names) > 1:
            subtitles.append(f"{place + 1} of {len(self._names)}")
        repeats = self._repeats
        if len(repeats) > 1:
            subtitles.append(f"repeat {self._repeat or repeats[0]} of {repeats[-1]}")
        return subtitles


def lines_of_repeat(summary: RunSummary, name: str, repeat: int) -> list[Series]:
    """Return the series of a metric in a repeat, one for each arm.

    For repeat 0, they are those of the first process that logged the metric.
    """
    by_arm: dict[str, Series] = {}
    for series in summary.series.values():
        if series.name != name:
            continue
        if not repeat or summary.repeat_of(series.writer) == repeat:
            by_arm.setdefault(series.arm, series)
    return list(by_arm.values())
