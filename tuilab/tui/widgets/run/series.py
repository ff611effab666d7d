"""Charts of a run: one pane for each metric that was logged, and one for memory."""

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.linechart import Guide
from tuilab.record.gpus.own_gpus import memory_lines, memory_title, other_gpus
from tuilab.record.planned_end import planned_end
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.record.usage import IDLE
from tuilab.text.display import plural, show
from tuilab.text.words import size, unit_of
from tuilab.tui.state.other_runs.overlays import OverlaidCurve, Overlays
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.chart import Chart, Curves
from tuilab.tui.widgets.pane import Pane

_LEARNED = "backward root"  # the metric that a user's command minimises
MEMORY = "memory"  # the chart whose window of seconds holds for panes without steps as well
_GUIDES = (Guide(65504.0, "fp16 max"), Guide(3.4028235e38, "fp32 max"))


class ChartPane(Pane):
    """A pane with a chart in it."""

    DEFAULT_CSS = """
    ChartPane { padding: 0; overflow: hidden; }
    """

    def __init__(self, name: str) -> None:
        super().__init__("")
        self.chart = Chart(name=name)

    def compose(self) -> ComposeResult:
        yield self.chart


class SeriesPane(ChartPane):
    """Shows all series of one metric: every arm, every repeat."""

    def __init__(self, name: str) -> None:
        super().__init__(f"series {name}")
        self.series_name = name
        self.overlays = Overlays()
        self._planned_end: float | None = None  # the last step that is expected

    def show(self, run: RunSource, view: View) -> None:
        """Show the curves of the metric, with other repeats and other runs dimmed behind them."""
        summary = run.summary
        repeats = summary.repeats_with(self.series_name)
        repeat = 0  # all repeats
        if view.repeat in repeats:
            repeat = view.repeat
        in_front, behind = self._split_by_repeat(summary, repeat)
        if view.has_others:
            behind += self.overlays.curves(self.series_name)
        self._planned_end = planned_end(summary, in_front, self._planned_end)
        axes = summary.axes_of(self.series_name)
        unit = unit_of(self.series_name)
        arms = [series.arm for series in in_front]
        writers = [series.writer for series in in_front]
        curves = Curves(
            tuple(in_front),
            tuple(arms),
            owners=tuple(summary.owners_of(writers)),
            order=tuple(run.arms) if any(arms) else (),
            title=show(axes.y or self.series_name, 200),
            unit=unit if in_front else "",
            axes=axes,
            starts=(summary.first_t,) * len(in_front),
            x_end=self._planned_end,
            is_over=run.is_over,
            guides=() if unit else _GUIDES,
            overlays=tuple(behind),
        )
        self.chart.show_curves(curves, view)
        self._show_note(in_front, repeat, repeats)

    def _split_by_repeat(
        self, summary: RunSummary, repeat: int
    ) -> tuple[list[Series], list[OverlaidCurve]]:
        """Return the series of a repeat, and those of other repeats, which are dimmed behind them.

        For repeat 0, all series are in front.
        """
        in_front = []
        behind = []
        for series in summary.series.values():
            if series.name != self.series_name:
                continue
            if not repeat or summary.repeat_of(series.writer) == repeat:
                in_front.append(series)
            else:
                behind.append(OverlaidCurve("", series, summary.first_t))
        return in_front, behind

    def _show_note(self, in_front: Sequence[Series], repeat: int, repeats: Sequence[int]) -> None:
        """Show the number of NaN and Inf, and which repeat is in front."""
        notes = []
        bad_count = sum(series.bad_count for series in in_front)
        if bad_count:
            notes.append(Content.styled(f"{bad_count} NaN or Inf", "$text-error"))
        if repeat:
            notes.append(Content(f"repeat {repeat} of {repeats[-1]}"))
        self.note(Content("  ").join(notes))


class MemoryPane(ChartPane):
    """Shows memory over time: of the processes of the run, and of its GPUs."""

    def __init__(self) -> None:
        super().__init__(MEMORY)

    def show(self, run: RunSource, view: View) -> None:
        """Show the memory of the processes and GPUs, always linear and without smoothing."""
        summary = run.summary
        has_others = view.has_other_gpus
        lines = memory_lines(summary, has_others=has_others)
        names = [name for name, _ in lines]
        series = [line_series for _, line_series in lines]
        writers = [line_series.writer for line_series in series]
        title = memory_title(summary, has_others=has_others)
        has_gpus = len(lines) > 1
        # With several lines, the legend takes the room of the title within the chart.
        self.entitle(Content(title) if has_gpus else None)
        no_sample = "no sample was taken" if run.is_over else "no sample yet"
        curves = Curves(
            tuple(series),
            tuple(names),
            owners=tuple(summary.owners_of(writers)),
            title="" if has_gpus else title,
            unit="bytes",
            starts=(summary.first_t,) * len(lines),
            has_steps=False,
            is_over=run.is_over,
            empty=summary.unavailable.get("sampler", no_sample),
            gap_reason=IDLE,
        )
        linear_view = replace(view, is_log=False, is_smooth=False, is_smoother=False)
        self.chart.show_curves(curves, linear_view)
        note = memory_note(summary, has_others=has_others)
        if run.is_over and series and series[0].highs:
            note = _with_peak(lines, note)
        self.note(Content.styled(show(note, 200), "$text-muted"))


def _with_peak(lines: Sequence[tuple[str, Series]], note: str) -> str:
    """Return a note about a finished run that begins with the peak of the first line.

    The last value would be that of processes that were about to end. The reason in brackets why no
    GPU is shown is left out, because it was shown while the run was running and is in the result.
    """
    name, series = lines[0]
    owner = ""
    if len(lines) > 1:
        owner = f" of {name}"
    peak = f"peak{owner} {size(max(series.highs))}"
    short_note = note.partition(" (")[0]
    if not short_note:
        return peak
    return f"{peak}  {short_note}"


def memory_note(summary: RunSummary, *, has_others: bool) -> str:
    """Return which GPUs the chart of memory leaves out, or why no GPU is in it."""
    if not summary.gpus:
        return summary.unavailable.get("gpu", "")
    hidden = len(other_gpus(summary))
    if not hidden or has_others:
        return ""
    return f"{plural(hidden, 'other GPU')}: d"  # `d` is the key that shows them


def bad_names(summary: RunSummary) -> set[str]:
    """Return the metrics with a NaN or an Inf."""
    return {series.name for series in summary.series.values() if series.bad_count}


def names_of(summary: RunSummary) -> list[str]:
    """Return the metrics: losses first, the others in the order in which they were first logged.

    For a user's command, the times of its steps come last.
    """
    is_command = bool(summary.run and summary.run.command)

    def sort_key(name: str) -> tuple[bool, bool]:
        is_loss = name.startswith(_LEARNED) or "loss" in name.lower()
        is_step_time = is_command and name.endswith("_ms")
        return not is_loss, is_step_time

    names = dict.fromkeys(name for name, _, _ in summary.series)
    return sorted(names, key=sort_key)
