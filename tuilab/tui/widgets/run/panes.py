"""The panes of the Run screen side by side: which there are, in which order, and how they share the room."""

from collections.abc import Sequence

from textual.containers import Container
from textual.widget import Widget

from tuilab.record.blocks import has_times
from tuilab.record.summary import RunSummary
from tuilab.tui.state.following import Shown
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.pane import Pane, View
from tuilab.tui.widgets.run.claims import ClaimsPane
from tuilab.tui.widgets.run.notes import NotesPane, TryNext
from tuilab.tui.widgets.run.output import OutputPane
from tuilab.tui.widgets.run.pictures import PicturesPane
from tuilab.tui.widgets.run.series import ChartPane, MemoryPane, SeriesPane, names_of
from tuilab.tui.widgets.run.timings import TimingsPane

_MOST_SERIES = 6
_MANY = 5  # panes, that need three rows
_LEAST_ROW = 9  # lines that a chart needs
_ROOMY_ROW = 8  # from so many lines on, rows share the height


class Panes(Container):
    """As many panes as the run has something to show for; what does not fit is scrolled to."""

    DEFAULT_CSS = """
    Panes { layout: grid; grid-size: 2; height: 1fr; overflow-y: auto; scrollbar-size: 1 1; }
    """

    def __init__(self, prediction: str) -> None:
        super().__init__(id="panes")
        self._prediction = prediction
        self._panes: dict[str, Pane] = {}
        self._run: tuple[RunSummary, bool] | None = None  # what is shown, and whether there is something to try next

    def show(self, run: Shown, view: View, try_next: TryNext) -> None:
        """Show a run, in the panes that it needs now; when it is over, what to try next."""
        self._run = run.summary, bool(run.is_over and try_next.text)
        wanted = self._wanted(*self._run)
        if list(wanted) != list(self._panes):
            self._arrange(wanted)
        for pane in self._panes.values():
            if isinstance(pane, NotesPane):
                pane.try_next = try_next
            pane.show(run, view)

    def fit(self) -> None:
        """Share the room anew: there is more of it, or less."""
        if self._run is not None:
            self._arrange(self._wanted(*self._run))

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

    def _wanted(self, summary: RunSummary, has_notes: bool) -> dict[str, int]:
        """Return the names of the panes in their order, each with the columns that it spans."""
        charts = [f"series {name}" for name in names_of(summary)[:_MOST_SERIES]]
        charts += ["timings"] if has_times(summary) else []
        rest = ["pictures"] if summary.images else []
        rest += ["notes"] if summary.texts or has_notes else []
        if self._columns == 1:
            return self._spans([*charts[:1], "claims", "memory", *charts[1:], *rest])
        return self._spans([*charts[:1], "memory", *charts[1:2], "claims", *charts[2:], *rest])

    def _spans(self, order: Sequence[str]) -> dict[str, int]:
        """Return the columns that each pane spans, so that no place stays empty."""
        columns = self._columns
        spans = dict.fromkeys(order, 1)
        if free := -(len(order) + self._is_tall(len(order))) % columns:
            spans[order[-1]] += free
        return {**spans, "output": columns}

    def _is_tall(self, count: int) -> bool:
        """Whether the claims, which are what the run is made for, take two rows."""
        return self._columns > 1 and count >= _MANY

    @property
    def _columns(self) -> int:
        width = self.screen.size.width
        return 1 if width < 70 else 2 if width < 170 else 3

    def _arrange(self, wanted: dict[str, int]) -> None:
        """Put the panes in their places; those that there were keep what they show."""
        is_tall = self._is_tall(len(wanted) - 1)
        for name in self._panes.keys() - wanted.keys():
            self._panes.pop(name).remove()
        for name, span in wanted.items():
            pane = self._panes.get(name) or self._make(name)
            pane.styles.column_span = span
            pane.styles.row_span = 2 if name == "claims" and is_tall else 1
            if pane.parent is None:
                self.mount(pane)
            self._panes[name] = pane
        self._panes = {name: self._panes[name] for name in wanted}
        order: dict[Widget, int] = {pane: place for place, pane in enumerate(self._panes.values())}
        self.sort_children(key=lambda child: order.get(child, len(order)))
        self._fit_rows(sum(wanted.values()) - wanted["output"] + is_tall)

    def _make(self, name: str) -> Pane:
        kind, _, rest = name.partition(" ")
        if kind == "series":
            return SeriesPane(rest)
        if kind == "claims":
            return ClaimsPane(self._prediction)
        kinds = {
            "memory": MemoryPane,
            "timings": TimingsPane,
            "pictures": PicturesPane,
            "notes": NotesPane,
            "output": OutputPane,
        }
        return kinds[kind]()

    def _fit_rows(self, cells: int) -> None:
        """Share the height among the rows, each at least as high as a chart needs."""
        columns = self._columns
        rows = -(-cells // columns)
        height = max(self.screen.size.height - 2, 1)
        output = 6 if height < 30 else 9
        room = (height - output) // max(rows, 1)
        self.styles.grid_size_columns = columns
        self.styles.grid_rows = " ".join([*["1fr" if room >= _ROOMY_ROW else str(_LEAST_ROW)] * rows, str(output)])
