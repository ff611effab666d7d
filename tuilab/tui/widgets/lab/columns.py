"""The two columns of the Lab: the catalogue with its filter, and the workbench."""

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
    """The line for the words that a scenario must contain."""

    PLACE: ClassVar[str] = "filter"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("down,up", "app.focus_next", show=False)]


class CataloguePane(Vertical):
    """The catalogue in a frame. Its title counts the scenarios that match the filter."""

    DEFAULT_CSS = """
    CataloguePane { border: round $border-blurred; border-title-color: $text-muted; }
    CataloguePane:ansi { border: round ansi_bright_black; }
    CataloguePane:focus-within, CataloguePane:ansi:focus-within { border: round $primary; }
    CataloguePane FilterInput, CataloguePane FilterInput:focus {
        height: 1; border: none; padding: 0 1; background: $panel;
    }
    """

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        super().__init__(id="left")
        self._count = _count(scenarios)
        self.catalogue = Catalogue(scenarios)
        self._filter: FilterInput | None = None

    def compose(self) -> ComposeResult:
        yield self.catalogue

    def on_mount(self) -> None:
        self._show_title()

    def replace_scenarios(self, scenarios: Sequence[Scenario]) -> None:
        """Show these scenarios."""
        self._count = _count(scenarios)
        self.catalogue.replace_scenarios(scenarios)
        self._show_title()

    @property
    def is_filtered(self) -> bool:
        """Whether the filter is open. It may still be empty."""
        return self._filter is not None

    def open_filter(self) -> None:
        """Focus the filter."""
        if self._filter is None:
            # imported here: the first picture has no filter
            from tuilab.tui.widgets.filterline import Completion, complete_last_word

            completion = Completion(lambda text: complete_last_word(text, self.catalogue.names))
            # no id: the previous filter may still be there, about to be removed
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
            self._show_title()
        self.catalogue.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.input is self._filter:
            # The catalogue has to act itself: while this widget handles a message, messages of
            # its children do not get further than to this widget.
            self.catalogue.call_next(self._apply_filter, event.input.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.catalogue.focus()

    def _apply_filter(self, text: str) -> None:
        self.catalogue.filter(text)
        self._show_title()

    def _show_title(self) -> None:
        """Show the number of scenarios in the title, and how many match if not all do."""
        matching = _count(self.catalogue.matching)
        count = str(self._count)
        if matching != self._count:
            count = f"{matching} of {count}"
        self.border_title = Content(f"Scenarios {count}")


def _count(scenarios: Sequence[Scenario]) -> int:
    """Return the number of scenarios, without the user's commands."""
    return sum(not isinstance(scenario, OwnCommand) for scenario in scenarios)


class Columns(Horizontal):
    """Shows both columns, on a narrow screen only one of them.

    The action `go('show_part', 'form')` calls `show_part('form')`.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(id="columns")
        self._session = session
        self._left = CataloguePane(session.listed)
        self.bench = Workbench(session.settings.part)

    def compose(self) -> ComposeResult:
        yield self._left
        yield self.bench

    @property
    def catalogue(self) -> Catalogue:
        return self._left.catalogue

    @property
    def scenario(self) -> Scenario | None:
        """The scenario at the cursor; None on a topic."""
        row = self.catalogue.row
        return row.scenario if row else None

    def show(self, draft: Draft | None, past: Sequence[PastRun]) -> None:
        """Show the scenario of a draft with its past runs.

        Without a draft, show the topic at the cursor, or that no scenario matches the filter.
        """
        row = self.catalogue.row
        if draft:
            self.bench.show_draft(draft, past)
        elif row:
            self._show_topic(row.topic)
        elif self.catalogue.filter_words:
            self.bench.show_none(self.catalogue.filter_words, self.catalogue.topics)

    def _show_topic(self, topic: str) -> None:
        """Show a topic: the sentence about it, if there is one, and its scenarios that match."""
        default = own_commands.ABOUT if topic == own_commands.TOPIC else ""
        self.bench.show_topic(
            topic,
            self._session.topics.get(topic, default),
            self.catalogue.of_topic(topic),
            self.catalogue.statuses,
            is_whole=self.catalogue.is_whole(topic),
        )

    def replace_scenarios(self, scenarios: Sequence[Scenario]) -> None:
        """Show these scenarios. The cursor stays."""
        self._left.replace_scenarios(scenarios)

    def filter(self) -> None:
        """Focus the filter of the catalogue."""
        self.screen.remove_class("-reading")
        self._left.open_filter()

    def show_part(self, part: str, field: str = "") -> None:
        """Open a part of the workbench and focus it, in the form a certain field.

        On a topic, which has only a lesson, show a message for the other parts.
        """
        if self.catalogue.row is None:
            return
        if self.scenario is None and part != "lesson":
            navigator = cast(Navigator, self.app)
            navigator.tell(f"a topic has no {part}; choose one of its scenarios", is_problem=False)
            return
        if self.scenario:
            self._session.settings.part = part
        self.screen.add_class("-reading")
        self.bench.open(part, field)

    def next_claim(self) -> None:
        """Show the code. If it has the focus already, go to the next claim."""
        from tuilab.tui.widgets.lab.source import Source

        if isinstance(self.screen.focused, Source):
            self.screen.focused.go_to_next_claim()
        else:
            self.show_part("code")

    def step_in(self) -> None:
        """Open the topic at the cursor; on a scenario, focus the workbench."""
        row = self.catalogue.row
        if row and row.scenario is None and not self.catalogue.is_open(row.topic):
            self.catalogue.open_topic(row.topic)
        elif self.catalogue.has_focus:
            self.show_part(self.bench.part)

    def step_aside(self) -> None:
        """Return to the list. In the list, go to the topic; on a topic, close it."""
        row = self.catalogue.row
        if not self.catalogue.has_focus:
            self._back_to_list()
        elif row and row.scenario:
            self.catalogue.go_to_topic(row.topic)
        elif row:
            self.catalogue.close_topic(row.topic)

    def step_out(self) -> None:
        """Close the filter, or return to the list."""
        if self._left.has_focus_within and self._left.is_filtered:
            self.show_all()
        else:
            self._back_to_list()

    def show_all(self) -> None:
        """Close the filter."""
        self._left.close_filter()

    def _back_to_list(self) -> None:
        self.screen.remove_class("-reading")
        self.catalogue.focus()
