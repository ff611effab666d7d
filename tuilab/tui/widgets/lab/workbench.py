"""The right side of the Lab: what belongs to the chosen scenario, in four parts of which one is open."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.translation import translated
from tuilab.runs.past_runs import PastRun
from tuilab.runs.representative import ScenarioStatus
from tuilab.text.display import plural, show
from tuilab.tui.looks.marks import to_content
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.widgets.lab.lesson import Lesson
from tuilab.tui.widgets.search import SearchedLines

if TYPE_CHECKING:
    from tuilab.tui.state.gpus import GpuList
    from tuilab.tui.widgets.lab.form import Form
    from tuilab.tui.widgets.lab.past_runs import PastRuns
    from tuilab.tui.widgets.lab.source import Source
from collections.abc import Iterator

from textual import events
from textual.app import RenderResult
from textual.widget import Widget

PARTS = {"lesson": "p", "form": "f", "code": "c", "runs": "r"}  # and the keys that open them
Part = Union[Lesson, "Form", "Source", "PastRuns"]


class Parts(Widget):
    """Says which part is open and by which key the others are reached."""

    DEFAULT_CSS = "Parts { height: 1; width: 100%; }"

    class Picked(Message):
        """A part was clicked."""

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__()
        self._open = ""

    def show(self, part: str) -> None:
        """Mark the open part; none for what has no parts."""
        if part != self._open:
            self._open = part
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        for part, start, end in _places():
            if start <= event.x < end:
                self.post_message(self.Picked(part))

    def render(self) -> RenderResult:
        tabs = []
        for part, key in PARTS.items():
            is_open = part == self._open
            name = Content.styled(
                part.capitalize(), "bold underline $text-primary" if is_open else "$text-muted"
            )
            tabs.append(Content.styled(key, "bold $text-accent") + Content(" ") + name)
        return Content("   ").join(tabs)


def _places() -> Iterator[tuple[str, int, int]]:
    at = 0
    for part in PARTS:
        yield part, at, at + len(part) + 2
        at += len(part) + 5


class Workbench(Vertical):
    """Parts that were never opened are never made: they cost time at the start."""

    DEFAULT_CSS = """
    Workbench { border: round $border-blurred; padding: 0 0 0 1; width: 1fr;
                border-title-color: $text-muted; border-subtitle-color: $text-secondary; border-subtitle-align: left; }
    Workbench:ansi { border: round ansi_bright_black; }
    Workbench:focus-within, Workbench:ansi:focus-within { border: round $primary; }
    Workbench > #title { height: auto; text-style: bold; padding-right: 1; }
    Workbench > Parts { margin-bottom: 1; }
    """

    def __init__(self, part: str) -> None:
        super().__init__(id="right")
        self.part = part if part in PARTS else "lesson"
        self._draft: Draft | None = None  # None: a topic is shown
        self._runs: Sequence[PastRun] = ()
        self._command = ""
        self._shown_name = Content("")  # of what is shown
        self._lesson = Lesson()
        self._form: Form | None = None
        self._widgets: dict[str, Part] = {"lesson": self._lesson}

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Parts()
        yield self._lesson

    class Opened(Message):
        """A part was picked with the mouse."""

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    @property
    def _open_part(self) -> str:
        return self.part if self._draft else "lesson"

    @property
    def is_in_form(self) -> bool:
        """Whether the user is in the form."""
        return self._form is not None and self._form.has_focus_within

    @property
    def is_among_runs(self) -> bool:
        """Whether the user is among the past runs."""
        return "runs" in self._widgets and self._widgets["runs"].has_focus

    @property
    def chosen_run(self) -> Path | None:
        """The past run that the user is on."""
        return getattr(self._widgets["runs"], "run_dir", None) if self.is_among_runs else None

    def show_topic(
        self,
        topic: str,
        about: str,
        scenarios: Sequence[Scenario],
        statuses: Mapping[str, ScenarioStatus],
        *,
        is_whole: bool,
    ) -> None:
        """Show what a topic is about, and what it has, as far as the filter leaves it."""
        self._draft = None
        self.border_title = self._shown_name = to_content(topic, 60)
        self.query_one("#title", Static).update(
            to_content(about or f"{show(topic, 100)}: {plural(len(scenarios), 'scenario')}", 200)
        )
        self._lesson.show_topic(scenarios, statuses, is_whole=is_whole)
        self._show_part()

    def show_none(self, words: str, topics: Sequence[str]) -> None:
        """Show that no scenario has some words, and which may be typed."""
        self._draft = None
        self.border_title = Content("no match")
        self.query_one("#title", Static).update(
            to_content(f"No scenario has all these words: {words}", 200)
        )
        self._lesson.show_none(topics)
        self._show_part()

    def show_draft(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show a scenario, with the values of its form."""
        scenario = draft.scenario
        self._draft, self._runs = draft, runs
        self.border_title = self._shown_name = to_content(
            f"{show(scenario.topic, 40)}/{show(scenario.id, 80)}"
        )
        self._show_part()

    def _show_title(self) -> None:
        """Tell what the scenario is about; of a file that cannot be used why, where the lesson does not."""
        scenario = self._draft.scenario if self._draft else None
        if scenario:
            is_why = scenario.error and self._open_part != "lesson"
            title = (
                to_content(f"! {scenario.error}", 300, "$text-error")
                if is_why
                else to_content(scenario.title or scenario.id, 160)
            )
            self.query_one("#title", Static).update(title)

    def show_runs(self, runs: Sequence[PastRun]) -> None:
        """Show these past runs of the scenario, and what the newest of them found."""
        self._runs = runs
        self._show_part()

    def show_command(self, command: str) -> None:
        """Show the command line that does what the form says."""
        self._command = command
        self.border_subtitle = to_content(command, 500)
        if self._form:
            self._form.show_command(command)

    def show_gpus(self, gpus: "GpuList") -> None:
        """Show the GPUs that there are to choose from; who wants to see them has opened the form."""
        if self._form:
            self._form.show_gpus(gpus)

    def open(self, part: str, field: str = "") -> None:
        """Open a part and give it the focus; of the form, a certain field."""
        self.part = part
        self._show_part()
        widget = self._widgets[self._open_part]
        if widget is self._form:
            self._form.go_to(field)
        else:
            widget.focus()

    def text_of(self, scenario: Scenario) -> str:
        """Return the lesson of a scenario; where the code is open, the whole file, or why it cannot be read."""
        from tuilab.catalogue.source import Broken, read_text

        if isinstance(scenario, OwnCommand):
            return scenario.lesson
        if self.part != "code":
            return translated(scenario).lesson
        try:
            return read_text(scenario.path)
        except Broken as problem:
            return str(problem)

    def refill(self) -> None:
        """Show what the draft has: it was changed elsewhere."""
        if self._form:
            self._form.refill()

    def on_searched_lines_found(self, event: SearchedLines.Found) -> None:
        event.stop()
        found = Content.styled(f"  {event.said}" if event.said else "", "$text-accent")
        self.border_title = Content.assemble(self._shown_name, found)

    def on_parts_picked(self, event: Parts.Picked) -> None:
        event.stop()
        self.post_message(self.Opened(event.part))

    def _show_part(self) -> None:
        """Bring the open part up to date; the others wait until they are opened."""
        part = self._open_part
        self._show_title()
        self.query_one(Parts).show(part if self._draft else "")
        if part not in self._widgets:
            self._widgets[part] = self._make(part)
            self.mount(self._widgets[part])
        for name, widget in self._widgets.items():
            widget.display = name == part
        if self._draft:
            self._widgets[part].fill(self._draft, self._runs)
        self.show_command(self._command)

    def _make(self, part: str) -> Part:
        """Return a new widget for a part; loaded only when it is wanted."""
        if part == "form":
            from tuilab.tui.widgets.lab.form import Form

            self._form = Form()
            return self._form
        if part == "code":
            from tuilab.tui.widgets.lab.source import Source

            return Source()
        from tuilab.tui.widgets.lab.past_runs import PastRuns

        return PastRuns()
