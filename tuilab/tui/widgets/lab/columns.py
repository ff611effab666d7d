"""The two columns of the Lab, the catalogue and the workbench, and how one goes from one to the other."""

from collections.abc import Sequence
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input

from tuilab.catalogue.scenario import Scenario
from tuilab.runs.past_runs import PastRun
from tuilab.tui.navigator import Navigator
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.own import own_commands
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.state.session import Session
from tuilab.tui.widgets.lab.catalogue import Catalogue
from tuilab.tui.widgets.lab.workbench import Workbench


class FilterInput(Input):
    """Where the words are typed that a scenario must have."""

    PLACE: ClassVar[str] = "filter"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("down,up", "app.focus_next", show=False)]


class CataloguePane(Vertical):
    """Its title says how many scenarios there are, and how many the filter leaves."""

    DEFAULT_CSS = """
    CataloguePane { border: round $border-blurred; border-title-color: $text-muted; }
    CataloguePane:ansi { border: round ansi_bright_black; }
    CataloguePane:focus-within, CataloguePane:ansi:focus-within { border: round $primary; }
    CataloguePane FilterInput, CataloguePane FilterInput:focus { height: 1; border: none; padding: 0 1; background: $panel; }
    """

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        super().__init__(id="left")
        self._count = _count(scenarios)
        self.catalogue = Catalogue(scenarios)
        self._filter: FilterInput | None = None

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
            from tuilab.tui.widgets.filterline import (
                Completion,
                complete_last_word,
            )  # the first picture has no filter

            completion = Completion(lambda typed: complete_last_word(typed, self.catalogue.names))
            # no id: the last one may be leaving yet
            self._filter = FilterInput(
                placeholder="words to filter by", compact=True, suggester=completion
            )
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
        self.border_title = Content(
            f"Scenarios {self._count if shown == self._count else f'{shown} of {self._count}'}"
        )


def _count(scenarios: Sequence[Scenario]) -> int:
    """Return how many there are, without commands of the user's."""
    return sum(not isinstance(one, OwnCommand) for one in scenarios)


class Columns(Horizontal):
    """On a narrow screen one of them is shown. The action `go('show_part', 'form')` is `show_part('form')` here."""

    def __init__(self, desk: Session) -> None:
        super().__init__(id="columns")
        self._desk = desk
        self._left = CataloguePane(desk.listed)
        self.bench = Workbench(desk.settings.part)

    def compose(self) -> ComposeResult:
        yield self._left
        yield self.bench

    @property
    def catalogue(self) -> Catalogue:
        return self._left.catalogue

    @property
    def scenario(self) -> Scenario | None:
        """The scenario under the cursor; None on a topic."""
        row = self.catalogue.row
        return row.scenario if row else None

    def show(self, draft: Draft | None, past: Sequence[PastRun]) -> None:
        """Show what is under the cursor: a scenario with its form and its past runs, or a topic; or that nothing is left."""
        if draft:
            self.bench.show_draft(draft, past)
        elif row := self.catalogue.row:
            about = self._desk.topics.get(
                row.topic, own_commands.ABOUT if row.topic == own_commands.TOPIC else ""
            )
            shown, is_whole = self.catalogue.of_topic(row.topic), self.catalogue.is_whole(row.topic)
            self.bench.show_topic(
                row.topic, about, shown, self.catalogue.statuses, is_whole=is_whole
            )
        elif words := self.catalogue.words:
            self.bench.show_none(words, self.catalogue.topics)

    def take(self, scenarios: Sequence[Scenario]) -> None:
        """Show these scenarios, which are others than before; the cursor stays."""
        self._left.take(scenarios)

    def filter(self) -> None:
        """Have words typed that narrow the catalogue."""
        self.screen.remove_class("-reading")
        self._left.open_filter()

    def show_part(self, part: str, field: str = "") -> None:
        """Open a part of the workbench and go there; of the form, to a certain field."""
        if self.catalogue.row is None:
            return
        if self.scenario is None and part != "lesson":
            cast(Navigator, self.app).tell(
                f"a topic has no {part}; choose one of its scenarios", is_problem=False
            )
            return
        if self.scenario:
            self._desk.settings.part = part
        self.screen.add_class("-reading")
        self.bench.open(part, field)

    def next_claim(self) -> None:
        """Show the code, and in it the next claim."""
        from tuilab.tui.widgets.lab.source import Source

        if isinstance(self.screen.focused, Source):
            self.screen.focused.go_to_next_claim()
        else:
            self.show_part("code")

    def step_in(self) -> None:
        """Open the topic; of a scenario, go to what is open on the right."""
        row = self.catalogue.row
        if row and row.scenario is None and not self.catalogue.is_open(row.topic):
            self.catalogue.set_open(row.topic, True)
        elif self.catalogue.has_focus:
            self.show_part(self.bench.part)

    def step_aside(self) -> None:
        """Back to the list; in the list, to the topic, and close it."""
        row = self.catalogue.row
        if not self.catalogue.has_focus:
            self._back_to_list()
        elif row and row.scenario:
            self.catalogue.go_to_topic(row.topic)
        elif row:
            self.catalogue.set_open(row.topic, False)

    def step_out(self) -> None:
        """Clear the filter, or back to the list."""
        if self._left.has_focus_within and self._left.is_filtered:
            self.show_all()
        else:
            self._back_to_list()

    def show_all(self) -> None:
        """Take the filter away."""
        self._left.close_filter()

    def _back_to_list(self) -> None:
        self.screen.remove_class("-reading")
        self.catalogue.focus()
