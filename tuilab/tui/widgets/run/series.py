"""The lines of a run: one pane for each name that was logged, and one for memory, the same chart in all of them."""

from dataclasses import replace

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.linechart import Guide
from tuilab.record.gpus.own_gpus import memory_lines, memory_title, other_gpus
from tuilab.record.planned_end import planned_end
from tuilab.record.summary import RunSummary
from tuilab.record.usage import IDLE
from tuilab.text.display import plural, show
from tuilab.text.words import size, unit_of
from tuilab.tui.state.other_runs.overlays import OverlaidCurve, Overlays
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.chart import Chart, Curves
from tuilab.tui.widgets.pane import Pane

_LEARNED = "backward root"  # what a command of the user's learns from
MEMORY = "memory"  # the chart of it: its seconds are those of the other things that have no steps
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
    """All series of one name: every arm, every repeat."""

    def __init__(self, name: str) -> None:
        super().__init__(f"series {name}")
        self.series_name = name
        self.behind = Overlays()
        self._end: float | None = None  # the last step that is expected

    def show(self, run: RunSource, view: View) -> None:
        summary = run.summary
        every = [one for one in summary.series.values() if one.name == self.series_name]
        repeats = summary.repeats_with(self.series_name)
        repeat = view.repeat if view.repeat in repeats else 0
        found = [one for one in every if not repeat or summary.repeat_of(one.writer) == repeat]
        others = [
            OverlaidCurve("", one, summary.first_t)
            for one in every
            if repeat and summary.repeat_of(one.writer) != repeat
        ]
        axes = summary.axes_of(self.series_name)
        self._end = planned_end(summary, found, self._end)
        curves = Curves(
            tuple(found),
            tuple(one.arm for one in found),
            owners=tuple(summary.owners_of([one.writer for one in found])),
            order=tuple(run.arms) if any(one.arm for one in found) else (),
            title=show(axes.y or self.series_name, 200),
            unit=unit_of(self.series_name) if found else "",
            axes=axes,
            starts=(summary.first_t,) * len(found),
            x_end=self._end,
            is_over=run.is_over,
            guides=() if unit_of(self.series_name) else _GUIDES,
            others=(*others, *(self.behind.curves(self.series_name) if view.has_others else [])),
        )
        self.chart.show_curves(curves, view)
        bad = sum(one.bad_count for one in found)
        told = [(f"{bad} NaN or Inf", "$text-error")] if bad else []
        told += [(f"repeat {repeat} of {repeats[-1]}", "")] if repeat else []
        self.note(Content("  ").join(Content.styled(*one) for one in told))


class MemoryPane(ChartPane):
    """Memory along time: of the processes of the run, and of its GPUs."""

    def __init__(self) -> None:
        super().__init__(MEMORY)

    def show(self, run: RunSource, view: View) -> None:
        summary = run.summary
        found = memory_lines(summary, has_others=view.has_other_gpus)
        title, has_gpus = memory_title(summary, has_others=view.has_other_gpus), len(found) > 1
        self.entitle(Content(title) if has_gpus else None)  # the names of its lines need the room
        curves = Curves(
            tuple(series for _, series in found),
            tuple(name for name, _ in found),
            owners=tuple(summary.owners_of([series.writer for _, series in found])),
            title="" if has_gpus else title,
            unit="bytes",
            starts=(summary.first_t,) * len(found),
            has_steps=False,
            is_over=run.is_over,
            empty=summary.unavailable.get(
                "sampler", "no sample was taken" if run.is_over else "no sample yet"
            ),
            untold=IDLE,
        )
        self.chart.show_curves(
            curves, replace(view, is_log=False, is_smooth=False, is_smoother=False)
        )
        note = memory_note(summary, has_others=view.has_other_gpus)
        if (
            run.is_over and found and found[0][1].highs
        ):  # the last value is that of processes that were about to end
            of = "" if len(found) == 1 else f" of {found[0][0]}"
            brief = note.partition(" (")[
                0
            ]  # what was looked for has been told while it went on, and is in the result
            note = "  ".join(filter(None, [f"peak{of} {size(max(found[0][1].highs))}", brief]))
        self.note(Content.styled(show(note, 200), "$text-muted"))


def memory_note(summary: RunSummary, *, has_others: bool) -> str:
    """Return what the chart of memory leaves out, or why no GPU is in it."""
    if not summary.gpus:
        return gpu_reason(summary)
    others = len(other_gpus(summary))
    return f"{plural(others, 'other GPU')}: d" if others and not has_others else ""


def gpu_reason(summary: RunSummary) -> str:
    """Return why no GPU is shown."""
    return summary.unavailable.get("gpu", "")


def bad_names(summary: RunSummary) -> set[str]:
    """Return the names of which a value is no number."""
    return {one.name for one in summary.series.values() if one.bad_count}


def names_of(summary: RunSummary) -> list[str]:
    """Return the names that were logged, losses first, the others in the order in which they came.

    Of a command of the user's, what it learns comes before what its steps take.
    """
    is_command = bool(summary.run and summary.run.command)

    def place(name: str) -> tuple[bool, bool]:
        return not (
            name.startswith(_LEARNED) or "loss" in name.lower()
        ), is_command and name.endswith("_ms")

    return sorted(dict.fromkeys(name for name, _, _ in summary.series), key=place)
