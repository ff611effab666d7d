"""The left side of the Lab: the catalogue, and above it the filter while there is one."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from tuilab.catalogue.scenario import Scenario
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.widgets.filterline import Completion, last_word_completed
from tuilab.tui.widgets.lab.catalogue import Catalogue


class Filter(Input):
    """Where the words are typed that a scenario must have."""

    PLACE: ClassVar[str] = "filter"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("down,up", "app.focus_next", show=False)]


class CataloguePane(Vertical):
    """Its title says how many scenarios there are, and how many the filter leaves."""

    DEFAULT_CSS = """
    CataloguePane { border: round $border-blurred; border-title-color: $text-muted; }
    CataloguePane:ansi { border: round ansi_bright_black; }
    CataloguePane:focus-within, CataloguePane:ansi:focus-within { border: round $primary; }
    CataloguePane Filter, CataloguePane Filter:focus { height: 1; border: none; padding: 0 1; background: $panel; }
    """

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        super().__init__(id="left")
        self._count = _count(scenarios)
        self.catalogue = Catalogue(scenarios)
        self._filter: Filter | None = None

    def compose(self) -> ComposeResult:
        yield self.catalogue

    def on_mount(self) -> None:
        self._name_itself()

    def take(self, scenarios: Sequence[Scenario]) -> None:
        """Show these scenarios."""
        self._count = _count(scenarios)
        self.catalogue.take(scenarios)
        self._name_itself()

    @property
    def is_filtered(self) -> bool:
        """Whether there is a filter, though it may be empty yet."""
        return self._filter is not None

    def open_filter(self) -> None:
        """Have words typed that narrow the catalogue."""
        if self._filter is None:
            completion = Completion(lambda typed: last_word_completed(typed, self.catalogue.names))
            # no id: the last one may be leaving yet
            self._filter = Filter(placeholder="words to filter by", compact=True, suggester=completion)
            self._filter.cursor_blink = False
            self.mount(self._filter, before=self.catalogue)
        self._filter.focus()

    def close_filter(self) -> None:
        """Show all scenarios again."""
        if self._filter is not None:
            self._filter.remove()
            self._filter = None
            self.catalogue.filter("")
            self._name_itself()
        self.catalogue.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.input is self._filter:
            # by the catalogue itself: what a child says while its parent acts goes no further than the parent
            self.catalogue.call_next(self._narrow, event.input.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.catalogue.focus()

    def _narrow(self, text: str) -> None:
        self.catalogue.filter(text)
        self._name_itself()

    def _name_itself(self) -> None:
        shown = _count(self.catalogue.matching)
        self.border_title = Content(f"Scenarios {self._count if shown == self._count else f'{shown} of {self._count}'}")


def _count(scenarios: Sequence[Scenario]) -> int:
    """Return how many there are, without commands of the user's."""
    return sum(not isinstance(one, OwnCommand) for one in scenarios)
