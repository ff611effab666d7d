"""The curves of runs over each other: as many charts as there is room for, one name each."""

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

_CHARTS = 4  # that are shown at once, where there is room
_ROWS = 12  # of a chart


class CurvesColumn(Vertical):
    """Of each run and arm one repeat: the first, or the one that the user chose."""

    DEFAULT_CSS = """
    CurvesColumn.is-empty { display: none; }
    CurvesColumn Chart {
        height: 1fr; border: round $border-blurred; border-subtitle-color: $foreground 70%; display: none;
        &:focus { border: round $primary; }
        &.is-shown { display: block; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="curves")
        self._summaries: Sequence[RunSummary] = ()
        self._names: Sequence[str] = ()
        self._are_over = False
        self._first = 0  # of the names, the one of the first chart
        self._repeat = 0  # counted from 1; 0: the first that has a curve
        self._views = [View()] * _CHARTS  # of each chart, whatever curves it shows

    def compose(self) -> ComposeResult:
        for at in range(_CHARTS):
            chart = Chart(name=str(at), id=f"chart{at}")
            chart.can_focus = True
            yield chart

    def show(
        self, summaries: Sequence[RunSummary], names: Sequence[str], *, are_over: bool
    ) -> None:
        """Show the curves of these names."""
        self._summaries, self._names, self._are_over = summaries, names, are_over
        self.refresh_charts()

    def refresh_charts(self) -> None:
        """Show a chart for each of the first names, as many as there is room for."""
        names = self._names
        count = min(max(self.size.height // _ROWS, 1), _CHARTS, len(names))
        for at, chart in enumerate(self.query(Chart)):
            chart.set_class(at < count, "is-shown")
            if at < count:
                self._show(chart, self._views[at], (self._first + at) % len(names))
        self.set_class(not names, "is-empty")

    def next_curve(self, step: int) -> None:
        """Begin with the next name, or the one before."""
        if self._names:
            self._first = (self._first + step) % len(self._names)
            self.refresh_charts()

    def next_repeat(self) -> str:
        """Show the next repeat of each run, which the charts tell, and after the last the first; say so where there is one."""
        repeats = self._repeats
        if len(repeats) < 2:
            return "each run has only one repeat"
        at = repeats.index(self._repeat) + 1 if self._repeat in repeats else 1
        self._repeat = repeats[at] if at < len(repeats) else 0
        self.refresh_charts()
        return ""

    def toggle_log(self) -> None:
        """Change between logarithmic and linear axes."""
        for at, chart in enumerate(self.query(Chart)):
            view = self._views[at]
            self._views[at] = replace(
                view, is_log=not (chart.is_log if view.is_log is None else view.is_log)
            )
        self.refresh_charts()

    def on_resize(self) -> None:
        self.refresh_charts()

    def on_chart_clicked(self, message: Chart.Clicked) -> None:
        at = list(self.query(Chart)).index(message.chart)
        self._views[at] = self._views[at].with_cursor(message.chart.key, message.spot)
        self.refresh_charts()

    @property
    def _repeats(self) -> list[int]:
        return sorted({repeat for summary in self._summaries for repeat in summary.repeats_with()})

    def _show(self, chart: Chart, view: View, at: int) -> None:
        name = self._names[at]
        found = [
            (f"run {number(run)} {line.arm}".strip() + ":", line, summary.first_t)
            for run, summary in enumerate(self._summaries)
            for line in lines_of_repeat(summary, name, self._repeat)
        ]
        axes = axes_of(self._summaries, name)
        curves = Curves(
            tuple(line for _, line, _ in found),
            tuple(label for label, _, _ in found),
            title=show(axes.y or name, 60),
            unit=unit_of(name),
            axes=axes,
            starts=tuple(start_t for _, _, start_t in found),
            is_over=self._are_over,
            empty="not logged in this repeat",
        )
        chart.show_curves(curves, view)
        repeats, count = self._repeats, len(self._names)
        told = [f"{at + 1} of {count}"] if count > 1 else []
        told += (
            [f"repeat {self._repeat or repeats[0]} of {repeats[-1]}"] if len(repeats) > 1 else []
        )
        chart.border_subtitle = Content("  ".join(told))


def lines_of_repeat(summary: RunSummary, name: str, repeat: int) -> list[Series]:
    """Return the lines of a name in a repeat, one an arm; without a repeat, of the first process that logged it."""
    found: dict[str, Series] = {}
    for line in summary.series.values():
        if line.name == name and (not repeat or summary.repeat_of(line.writer) == repeat):
            found.setdefault(line.arm, line)
    return list(found.values())
