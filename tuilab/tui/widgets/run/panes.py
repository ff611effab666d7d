"""The panes of the Run screen: one for each thing that there is something to show of."""

from collections.abc import Callable, Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tuilab.text.display import plural
from tuilab.tui.state.lesson_card import LessonCard
from tuilab.tui.state.next_steps import NextSteps
from tuilab.tui.state.other_runs.overlays import Overlays
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.filterline import FilterLine
from tuilab.tui.widgets.pane import Pane, TextPane
from tuilab.tui.widgets.run.arrangement import TEXTS, Arrangement, GridSize, arrange
from tuilab.tui.widgets.run.claims import ClaimsPane
from tuilab.tui.widgets.run.failure import FailurePane
from tuilab.tui.widgets.run.figures import FiguresPane
from tuilab.tui.widgets.run.gpu import GpuPane
from tuilab.tui.widgets.run.notes import NotesPane
from tuilab.tui.widgets.run.output import OutputPane
from tuilab.tui.widgets.run.pictures import PicturesPane
from tuilab.tui.widgets.run.series import ChartPane, MemoryPane, SeriesPane, bad_names, names_of
from tuilab.tui.widgets.run.timings import TimingsPane
from tuilab.tui.widgets.run.tuning import TuningPane

_PADDING = 4  # columns of a pane for its frame and its padding
_KINDS: dict[str, Callable[[], Pane]] = {
    "failure": FailurePane,
    "claims": ClaimsPane,
    "tuning": TuningPane,
    "memory": MemoryPane,
    "gpu": GpuPane,
    "timings": TimingsPane,
    "figures": FiguresPane,
    "pictures": PicturesPane,
    "notes": NotesPane,
    "output": OutputPane,
}


class Panes(Container):
    """A grid of panes. It scrolls if it is higher than the screen."""

    DEFAULT_CSS = """
    Panes { layout: grid; grid-size: 2; height: 1fr; overflow-y: auto; scrollbar-size: 1 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="panes")
        self._panes: dict[str, Pane] = {}
        self._shown: tuple[RunSource, View] | None = None
        self._has_next_steps = False
        # The lines that texts and figures need. They never shrink, so that the panes do not jump.
        self._needs: dict[str, int] = {}
        # The arrangement that was applied last, its order of panes, and its number of columns.
        self._applied: tuple[Arrangement, list[str], int] | None = None
        self.overlays = Overlays()

    def show(
        self,
        run: RunSource,
        view: View,
        next_steps: NextSteps,
        earlier: Mapping[str, str],
        card: LessonCard | None,
    ) -> None:
        """Show a run in the panes that it needs now.

        For a finished run, `next_steps` are what to try next, `earlier` says by claim how often
        it was judged before, and `card` is that of a lesson for a user who learns.
        """
        self._shown = run, view
        self._has_next_steps = bool(run.is_over and next_steps.text)
        self._arrange()
        for pane in self._panes.values():
            if isinstance(pane, NotesPane):
                pane.next_steps = next_steps
            if isinstance(pane, ClaimsPane):
                pane.earlier = earlier
                pane.card = card
            if isinstance(pane, SeriesPane):
                pane.overlays = self.overlays
            pane.show(run, view)
        if self._update_needs():
            self._arrange()

    def show_overlays(self) -> None:
        """Draw the charts again: other runs are overlaid now."""
        for pane in self._panes.values():
            if self._shown and isinstance(pane, SeriesPane):
                pane.show(*self._shown)

    def fit(self) -> None:
        """Arrange the panes for a new size of the screen."""
        self._needs.clear()
        self._update_needs()
        self._arrange()

    # ---- what is shown

    @property
    def grid_size(self) -> GridSize:
        """The size of the screen."""
        return GridSize(*self.screen.size)

    @property
    def names(self) -> list[str]:
        """The metrics that were logged so far, with or without a chart now."""
        if self._shown is None:
            return []
        run, _ = self._shown
        return names_of(run.summary)

    @property
    def bad_names(self) -> list[str]:
        """The metrics with a NaN or an Inf, with or without a chart now."""
        if self._shown is None:
            return []
        run, _ = self._shown
        bad = bad_names(run.summary)
        return [name for name in self.names if name in bad]

    @property
    def repeats(self) -> list[int]:
        """The numbers of the repeats that logged anything."""
        if self._shown is None:
            return []
        run, _ = self._shown
        return run.summary.repeats_with()

    def named(self, name: str) -> Pane | None:
        """Return the pane of a name; None if there is none."""
        return self._panes.get(name)

    def name_of(self, pane: Pane) -> str:
        """Return the name of a pane; nothing if the pane is gone."""
        for name, shown_pane in self._panes.items():
            if shown_pane is pane:
                return name
        return ""

    @property
    def every(self) -> Sequence[Pane]:
        """The panes in their order."""
        return list(self._panes.values())

    @property
    def charts(self) -> list[Chart]:
        """The charts in their order."""
        return [pane.chart for pane in self._panes.values() if isinstance(pane, ChartPane)]

    @property
    def focused(self) -> Pane | None:
        """The focused pane; if no pane has the focus, the first pane."""
        focused = self.screen.focused
        if isinstance(focused, Pane):
            return focused
        return next(iter(self._panes.values()), None)

    @property
    def focused_chart(self) -> Chart | None:
        """The focused chart; if no chart has the focus, the first chart."""
        focused = self.screen.focused
        if isinstance(focused, ChartPane):
            return focused.chart
        return next(iter(self.charts), None)

    # ---- where the panes are

    def _update_needs(self) -> bool:
        """Measure the lines that texts and figures need. Return whether a need has changed."""
        if self._applied is None:
            return False
        old_needs = dict(self._needs)
        for name, most in TEXTS.items():
            pane = self._panes.get(name)
            if isinstance(pane, TextPane):
                lines = min(pane.lines_at(self._width_of(name)), most)
                self._needs[name] = max(self._needs.get(name, 1), lines)
        figures = self._panes.get("figures")
        if isinstance(figures, FiguresPane):
            self._needs["figures"] = figures.lines_at(self._width_of("figures"))
        return self._needs != old_needs

    def _width_of(self, name: str) -> int:
        """Return the columns within a pane as it was arranged last."""
        assert self._applied is not None
        arrangement, _, _ = self._applied
        size = self.grid_size
        return size.width * arrangement.spans[name] // size.columns - _PADDING

    def _arrange(self) -> None:
        """Put the panes in their places. Panes that stay keep their content."""
        if self._shown is None:
            return
        run, view = self._shown
        size = self.grid_size
        names = view.charts(names_of(run.summary), size.most_charts)
        arrangement = arrange(run.summary, names, size, self._needs, has_notes=self._has_next_steps)
        # The order is compared as well: dicts with another order are equal.
        applied = arrangement, list(arrangement.spans), size.columns
        if applied == self._applied:
            return
        self._applied = applied
        for name in self._panes.keys() - arrangement.spans.keys():
            self._panes.pop(name).remove()
        panes = {}
        for name, span in arrangement.spans.items():
            pane = self._panes.get(name) or _make_pane(name)
            pane.styles.column_span = span
            pane.styles.row_span = 2 if name in arrangement.tall else 1
            if pane.parent is None:
                self.mount(pane)
            panes[name] = pane
        self._panes = panes
        places: dict[Widget, int] = {pane: place for place, pane in enumerate(panes.values())}
        self.sort_children(key=lambda child: places.get(child, len(places)))
        self.styles.grid_size_columns = size.columns
        self.styles.grid_rows = arrangement.rows


def _make_pane(name: str) -> Pane:
    """Return a new pane; the name of a chart is `series`, a space and its metric."""
    kind, _, metric = name.partition(" ")
    if kind == "series":
        return SeriesPane(metric)
    return _KINDS[kind]()


class ChartsLine(Horizontal):
    """Counts and filters the charts. Hidden while there is no filter and all charts fit."""

    DEFAULT_CSS = """
    ChartsLine { height: 1; display: none; background: $surface; }
    ChartsLine.is-needed, ChartsLine:focus-within { display: block; }
    ChartsLine > Static { width: auto; padding: 0 1; }
    ChartsLine > FilterLine { width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.filter = FilterLine("words in chart names")
        self._recalled_words = ""  # of the filter when this scenario was open last time
        self._shown_text = Content("")
        self._text = Static(self._shown_text)

    def compose(self) -> ComposeResult:
        yield self._text
        yield self.filter

    def open(self) -> None:
        """Focus the filter."""
        self.add_class("is-needed")
        self.filter.open()

    def recall(self, words: str) -> None:
        """Show the filter that charts of this scenario had last time."""
        self._recalled_words = words
        self.filter.put(words)

    def show(self, names: Sequence[str], view: View, most: int) -> None:
        """Show which of the charts of these metrics are shown, `most` at a time."""
        is_open = self.filter.has_class("is-open")
        is_needed = len(names) > most or bool(view.words) or is_open
        self.set_class(is_needed, "is-needed")
        text = charts_words(names, view, most)
        if view.words and view.words == self._recalled_words:
            text += Content.assemble(
                "  as last time;", ("  esc", "bold $text-accent"), (" shows all", "$text-muted")
            )
        if text != self._shown_text:
            self._shown_text = text
            self._text.update(text)


def charts_words(names: Sequence[str], view: View, most: int) -> Content:
    """Return which charts are shown, of how many, and the keys that lead to the others."""
    shown = view.page_of(names, most)
    matching = len(view.matching(names))
    if not matching:
        return Content.styled(f"none of {plural(len(names), 'chart')} matches", "$text-warning")
    count = f"chart {shown.stop} of {matching}"
    if len(shown) > 1:
        count = f"charts {shown.start + 1}-{shown.stop} of {matching}"
    if matching < len(names):
        count += f", {len(names)} in all"
    keys = []
    if matching > most:
        keys += [("  < >", "bold $text-accent"), (" page", "$text-muted")]
    if not view.words:
        keys += [("  /", "bold $text-accent"), (" filter", "$text-muted")]
    return Content.assemble(count, *keys)
