"""The lines of a run: one pane for each name that was logged, and one for memory, the same chart in all of them."""

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.linechart import Guide
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.text import show
from tuilab.tui.state.following import Shown
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.pane import Pane, View
from tuilab.words import unit_of

_GUIDES = (Guide(65504.0, "fp16 max"), Guide(3.4028235e38, "fp32 max"))


class ChartPane(Pane):
    """A pane with a chart in it."""

    DEFAULT_CSS = """
    ChartPane { padding: 0; overflow: hidden; }
    """

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.chart = Chart()

    def compose(self) -> ComposeResult:
        yield self.chart

    def heed(self, view: View, *, is_timed: bool) -> None:
        """Look at the lines as the user wants to look at all of them."""
        if self.chart.view.is_timed != is_timed:
            self.chart.toggle_time_axis()
        self.chart.look(replace(self.chart.view, is_log=view.is_log, is_smooth=view.is_smooth))


class SeriesPane(ChartPane):
    """All series of one name: every arm, every repeat."""

    def __init__(self, name: str) -> None:
        super().__init__("")
        self.series_name = name

    def show(self, run: Shown, view: View) -> None:
        summary = run.summary
        found = [one for one in summary.series.values() if one.name == self.series_name]
        self.chart.show_series(
            found,
            [show(one.arm, 30) for one in found],
            order=[show(arm, 30) for arm in run.arms] if any(one.arm for one in found) else (),
            title=show(self.series_name, 40),
            start_t=summary.first_t,
            x_end=_last_step(summary, found),
            is_over=run.is_over,
            guides=() if unit_of(self.series_name) else _GUIDES,
        )
        self.heed(view, is_timed=view.is_timed)
        bad = sum(one.bad_count for one in found)
        self.border_subtitle = Content.styled(f"{bad} not finite", "$text-error") if bad else None


def _last_step(summary: RunSummary, found: Sequence[Series]) -> float | None:
    """Return the last step that will come, where the progress counts the steps of just these series."""
    progress = summary.progress
    if progress is None or not found or abs(progress.done - max(one.last_step for one in found)) > 1:
        return None
    return float(progress.total)


class MemoryPane(ChartPane):
    """Memory along time: of the processes of the run, and of each GPU."""

    def __init__(self) -> None:
        super().__init__("")

    def show(self, run: Shown, view: View) -> None:
        summary = run.summary
        found = memory_series(summary)
        self.chart.show_series(
            [series for _, series in found],
            [name for name, _ in found],
            title="memory",
            unit="bytes",
            start_t=summary.first_t,
            is_over=run.is_over,
            empty=summary.unavailable.get("sampler", "no sample yet"),
        )
        self.heed(replace(view, is_log=False, is_smooth=False), is_timed=True)
        reason = "" if summary.gpus else gpu_reason(summary)
        self.border_subtitle = Content.styled(show(reason, 60), "$text-muted") if reason else None


def memory_series(summary: RunSummary) -> Sequence[tuple[str, Series]]:
    """Return what is known of memory along time, named by whose it is."""
    found = [("processes", series) for name, series in summary.resources.items() if name == "rss_bytes"]
    for uuid, gpu in summary.gpus.items():
        for metric, words in (("memory_used_bytes", "device"), ("memory_tree_bytes", "this run")):
            if series := summary.resources.get(f"{uuid} {metric}"):
                found.append((f"GPU {gpu.index} {words}", series))
    return found


def gpu_reason(summary: RunSummary) -> str:
    """Return why no GPU is shown."""
    return summary.unavailable.get("gpu", "")


def names_of(summary: RunSummary) -> list[str]:
    """Return the names that were logged, losses first, the others in the order in which they came."""
    return sorted(dict.fromkeys(name for name, _, _ in summary.series), key=lambda name: "loss" not in name.lower())
