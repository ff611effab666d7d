"""The panes of the Run screen side by side: as many as there is something to show for, each told the run and the view."""

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tuilab.text.display import plural
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


class Panes(Container):
    """As many panes as the run has something to show for; what does not fit is scrolled to."""

    DEFAULT_CSS = """
    Panes { layout: grid; grid-size: 2; height: 1fr; overflow-y: auto; scrollbar-size: 1 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="panes")
        self._panes: dict[str, Pane] = {}
        self._shown: tuple[RunSource, View] | None = None
        self._has_next_steps = False
        self._needs: dict[
            str, int
        ] = {}  # the lines of texts and figures: of a run that goes on the most so far
        self._arranged: tuple[Arrangement, list[str], int] | None = None
        self.behind = Overlays()  # the runs whose curves lie behind those of this one

    def show(
        self, run: RunSource, view: View, next_steps: NextSteps, before: Mapping[str, str]
    ) -> None:
        """Show a run, in the panes that it needs now; when it is over, what to try next, and how often it was judged before."""
        self._shown = run, view
        self._has_next_steps = bool(run.is_over and next_steps.text)
        self._arrange()
        for pane in self._panes.values():
            if isinstance(pane, NotesPane):
                pane.next_steps = next_steps
            if isinstance(pane, ClaimsPane):
                pane.before = before
            if isinstance(pane, SeriesPane):
                pane.behind = self.behind
            pane.show(run, view)
        if self._has_grown():
            self._arrange()

    def show_behind(self) -> None:
        """Show what lies behind the curves, which has changed."""
        for pane in self._panes.values():
            if self._shown and isinstance(pane, SeriesPane):
                pane.show(*self._shown)

    def fit(self) -> None:
        """Share the room anew: there is more of it, or less."""
        self._needs.clear()
        self._has_grown()
        self._arrange()

    @property
    def room(self) -> GridSize:
        """The room that there is."""
        return GridSize(*self.screen.size)

    @property
    def names(self) -> list[str]:
        """The names that were logged so far, whether they have a chart or not."""
        return names_of(self._shown[0].summary) if self._shown else []

    @property
    def bad_names(self) -> list[str]:
        """The names of which a value is no number, whether they have a chart or not."""
        if self._shown is None:
            return []
        bad = bad_names(self._shown[0].summary)
        return [name for name in self.names if name in bad]

    @property
    def repeats(self) -> list[int]:
        """The numbers of the repeats that logged anything."""
        return self._shown[0].summary.repeats_with() if self._shown else []

    def named(self, name: str) -> Pane | None:
        """Return the pane of a name, if there is one."""
        return self._panes.get(name)

    def name_of(self, pane: Pane) -> str:
        """Return the name of a pane."""
        return next((name for name, one in self._panes.items() if one is pane), "")

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
        """The pane that has the focus, else the first."""
        focused = self.screen.focused
        return focused if isinstance(focused, Pane) else next(iter(self._panes.values()), None)

    @property
    def focused_chart(self) -> Chart | None:
        """The chart that has the focus, else the first."""
        focused = self.screen.focused
        return focused.chart if isinstance(focused, ChartPane) else next(iter(self.charts), None)

    def _has_grown(self) -> bool:
        """Say whether a text needs more lines than before: it is not told of fewer, so that the panes do not jump."""
        before = dict(self._needs)
        if self._arranged is not None:
            spans, room = self._arranged[0].spans, self.room
            for name, most in TEXTS.items():
                if isinstance(pane := self._panes.get(name), TextPane):
                    lines = pane.lines_at(room.width * spans[name] // room.columns - 4)
                    self._needs[name] = max(self._needs.get(name, 1), min(lines, most))
            if isinstance(pane := self._panes.get("figures"), FiguresPane):
                self._needs["figures"] = pane.lines_at(
                    room.width * spans["figures"] // room.columns - 4
                )
        return self._needs != before

    def _arrange(self) -> None:
        """Put the panes in their places; those that there were keep what they show."""
        if self._shown is None:
            return
        (run, view), room = self._shown, self.room
        names = view.charts(names_of(run.summary), room.most_charts)
        wanted = arrange(run.summary, names, room, self._needs, has_notes=self._has_next_steps)
        arranged = wanted, [*wanted.spans], room.columns  # spans are the same in another order
        if arranged == self._arranged:
            return
        self._arranged = arranged
        for name in self._panes.keys() - wanted.spans.keys():
            self._panes.pop(name).remove()
        for name, span in wanted.spans.items():
            pane = self._panes.get(name) or self._make(name)
            pane.styles.column_span = span
            pane.styles.row_span = 2 if name in wanted.tall else 1
            if pane.parent is None:
                self.mount(pane)
            self._panes[name] = pane
        self._panes = {name: self._panes[name] for name in wanted.spans}
        order: dict[Widget, int] = {pane: place for place, pane in enumerate(self._panes.values())}
        self.sort_children(key=lambda child: order.get(child, len(order)))
        self.styles.grid_size_columns = room.columns
        self.styles.grid_rows = wanted.rows

    def _make(self, name: str) -> Pane:
        kind, _, rest = name.partition(" ")
        if kind == "series":
            return SeriesPane(rest)
        kinds = {
            "failure": FailurePane,
            "claims": ClaimsPane,
            "memory": MemoryPane,
            "gpu": GpuPane,
            "timings": TimingsPane,
            "figures": FiguresPane,
            "pictures": PicturesPane,
            "notes": NotesPane,
            "output": OutputPane,
        }
        return kinds[kind]()


class ChartsLine(Horizontal):
    """Hidden while every chart is shown and nothing is typed."""

    DEFAULT_CSS = """
    ChartsLine { height: 1; display: none; background: $surface; }
    ChartsLine.is-needed, ChartsLine:focus-within { display: block; }
    ChartsLine > Static { width: auto; padding: 0 1; }
    ChartsLine > FilterLine { width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.filter = FilterLine("words in chart names")
        self._recalled = ""  # words of another time
        self._words = Content("")
        self._told = Static(self._words)

    def compose(self) -> ComposeResult:
        yield self._told
        yield self.filter

    def open(self) -> None:
        """Type words."""
        self.add_class("is-needed")
        self.filter.open()

    def recall(self, words: str) -> None:
        """Show the words that charts of this scenario were narrowed by last time."""
        self._recalled = words
        self.filter.put(words)

    def tell(self, names: Sequence[str], view: View, most: int) -> None:
        """Tell which of the charts of some names are shown."""
        is_open = self.filter.has_class("is-open")
        self.set_class(len(names) > most or bool(view.words) or is_open, "is-needed")
        words = charts_words(names, view, most)
        if view.words and view.words == self._recalled:
            words += Content.assemble(
                "  as last time;", ("  esc", "bold $text-accent"), (" shows all", "$text-muted")
            )
        if words != self._words:
            self._words = words
            self._told.update(words)


def charts_words(names: Sequence[str], view: View, most: int) -> Content:
    """Return which charts are shown, of how many, and the keys that lead to the others."""
    at, matching = view.page_of(names, most), len(view.matching(names))
    if not matching:
        return Content.styled(f"none of {plural(len(names), 'chart')} matches", "$text-warning")
    first = (
        f"charts {at.start + 1}-{at.stop} of {matching}"
        if len(at) > 1
        else f"chart {at.stop} of {matching}"
    )
    more = f", {len(names)} in all" if matching < len(names) else ""
    keys = [("  < >", "bold $text-accent"), (" page", "$text-muted")] if matching > most else []
    if not view.words:
        keys += [("  /", "bold $text-accent"), (" filter", "$text-muted")]
    return Content.assemble(first + more, *keys)
