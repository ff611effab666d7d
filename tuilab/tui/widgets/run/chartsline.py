"""The line above the panes of a run: which of its charts are shown, where not all are, and the words that narrow them."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from tuilab.text import plural
from tuilab.tui.state.view import Selection
from tuilab.tui.widgets.filterline import FilterLine


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

    def tell(self, names: Sequence[str], selection: Selection, most: int) -> None:
        """Tell which of the charts of some names are shown."""
        is_open = self.filter.has_class("is-open")
        self.set_class(len(names) > most or bool(selection.words) or is_open, "is-needed")
        words = told(names, selection, most)
        if selection.words and selection.words == self._recalled:
            words += Content.assemble("  as last time;", ("  esc", "bold $text-accent"), (" shows all", "$text-muted"))
        if words != self._words:
            self._words = words
            self._told.update(words)


def told(names: Sequence[str], selection: Selection, most: int) -> Content:
    """Return which charts are shown, of how many, and the keys that lead to the others."""
    at, matching = selection.page_of(names, most), len(selection.matching(names))
    if not matching:
        return Content.styled(f"none of {plural(len(names), 'chart')} matches", "$text-warning")
    first = f"charts {at.start + 1}-{at.stop} of {matching}" if len(at) > 1 else f"chart {at.stop} of {matching}"
    more = f", {len(names)} in all" if matching < len(names) else ""
    keys = [("  < >", "bold $text-accent"), (" page", "$text-muted")] if matching > most else []
    if not selection.words:
        keys += [("  /", "bold $text-accent"), (" filter", "$text-muted")]
    return Content.assemble(first + more, *keys)
