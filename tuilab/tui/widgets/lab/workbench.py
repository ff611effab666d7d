"""The right side of the Lab: four parts about the chosen scenario, of which one is open."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from textual import events
from textual.app import ComposeResult, RenderResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
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

PARTS = {"lesson": "p", "form": "f", "code": "c", "runs": "r"}  # with the keys that open them
Part = Union[Lesson, "Form", "Source", "PastRuns"]


class Parts(Widget):
    """The names of the parts, with the keys that open them. The open part stands out."""

    DEFAULT_CSS = "Parts { height: 1; width: 100%; }"

    class Picked(Message):
        """The user clicked a part."""

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__()
        self._open = ""

    def show(self, part: str) -> None:
        """Show which part is open. For a topic, which has no parts, it is none."""
        if part != self._open:
            self._open = part
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        for part, start, end in _places():
            if start <= event.x < end:
                self.post_message(self.Picked(part))

    def render(self) -> RenderResult:
        """Return the names with their keys. `_places` has to match: it says where each name is."""
        tabs = []
        for part, key in PARTS.items():
            style = "bold underline $text-primary" if part == self._open else "$text-muted"
            name = Content.styled(part.capitalize(), style)
            tabs.append(Content.styled(key, "bold $text-accent") + Content(" ") + name)
        return Content("   ").join(tabs)


def _places() -> Iterator[tuple[str, int, int]]:
    """Yield each part with its first column and the column after it."""
    start = 0
    for part in PARTS:
        end = start + len(part) + 2  # the key and a space
        yield part, start, end
        start = end + 3


class Workbench(Vertical):
    """Shows a scenario or a topic. A part is made when it is first opened, which saves time."""

    DEFAULT_CSS = """
    Workbench { border: round $border-blurred; padding: 0 0 0 1; width: 1fr;
                border-title-color: $text-muted; border-subtitle-color: $text-secondary;
                border-subtitle-align: left; }
    Workbench:ansi { border: round ansi_bright_black; }
    Workbench:focus-within, Workbench:ansi:focus-within { border: round $primary; }
    Workbench > #title { height: auto; text-style: bold; padding-right: 1; }
    Workbench > Parts { margin-bottom: 1; }
    """

    class Opened(Message):
        """The user picked a part with the mouse."""

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    def __init__(self, part: str) -> None:
        super().__init__(id="right")
        self.part = part if part in PARTS else "lesson"
        self._draft: Draft | None = None  # None: a topic is shown
        self._runs: Sequence[PastRun] = ()
        self._command = ""
        self._shown_name = Content("")  # of the scenario or the topic
        self._lesson = Lesson()
        self._form: Form | None = None
        self._widgets: dict[str, Part] = {"lesson": self._lesson}

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Parts()
        yield self._lesson

    # ---- where the user is

    @property
    def _open_part(self) -> str:
        return self.part if self._draft else "lesson"

    @property
    def is_in_form(self) -> bool:
        """Whether the form has the focus."""
        return self._form is not None and self._form.has_focus_within

    @property
    def is_among_runs(self) -> bool:
        """Whether the list of past runs has the focus."""
        return "runs" in self._widgets and self._widgets["runs"].has_focus

    @property
    def chosen_run(self) -> Path | None:
        """The past run at the cursor, if the list of past runs has the focus."""
        if not self.is_among_runs:
            return None
        return getattr(self._widgets["runs"], "run_dir", None)

    # ---- what is shown

    def show_topic(
        self,
        topic: str,
        about: str,
        scenarios: Sequence[Scenario],
        statuses: Mapping[str, ScenarioStatus],
        *,
        is_whole: bool,
    ) -> None:
        """Show a topic and its scenarios that match the filter; `is_whole` if all of them do."""
        self._draft = None
        self._show_name(to_content(topic, 60))
        title = about or f"{show(topic, 100)}: {plural(len(scenarios), 'scenario')}"
        self._show_title(to_content(title, 200))
        self._lesson.show_topic(scenarios, statuses, is_whole=is_whole)
        self._show_part()

    def show_none(self, words: str, topics: Sequence[str]) -> None:
        """Show that no scenario matches a filter, and which topics there are."""
        self._draft = None
        self.border_title = Content("no match")
        self._show_title(to_content(f"No scenario has all these words: {words}", 200))
        self._lesson.show_none(topics)
        self._show_part()

    def show_draft(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show a scenario with the values of its form."""
        scenario = draft.scenario
        self._draft = draft
        self._runs = runs
        self._show_name(to_content(f"{show(scenario.topic, 40)}/{show(scenario.id, 80)}"))
        self._show_part()

    def show_runs(self, runs: Sequence[PastRun]) -> None:
        """Show these past runs of the scenario, and the verdicts of one of them in the lesson."""
        self._runs = runs
        self._show_part()

    def show_command(self, command: str) -> None:
        """Show the command line that does the same as the form."""
        self._command = command
        self.border_subtitle = to_content(command, 500)
        if self._form:
            self._form.show_command(command)

    def show_gpus(self, gpus: "GpuList") -> None:
        """Show the GPUs that can be chosen, if the form was opened."""
        if self._form:
            self._form.show_gpus(gpus)

    def open(self, part: str, field: str = "") -> None:
        """Open a part and focus it, in the form a certain field."""
        self.part = part
        self._show_part()
        widget = self._widgets[self._open_part]
        if widget is self._form:
            self._form.go_to(field)
        else:
            widget.focus()

    def text_of(self, scenario: Scenario) -> str:
        """Return the lesson of a scenario. If the code is open, return the whole file instead.

        If the file cannot be read, return the reason. For a user's command, always return the
        lesson.
        """
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
        """Show the values of the draft, which was changed elsewhere."""
        if self._form:
            self._form.refill()

    def on_searched_lines_found(self, event: SearchedLines.Found) -> None:
        event.stop()
        match_words = f"  {event.words}" if event.words else ""
        self.border_title = Content.assemble(self._shown_name, (match_words, "$text-accent"))

    def on_parts_picked(self, event: Parts.Picked) -> None:
        event.stop()
        self.post_message(self.Opened(event.part))

    # ---- the parts of the frame

    def _show_name(self, name: Content) -> None:
        self._shown_name = name
        self.border_title = name

    def _show_title(self, title: Content) -> None:
        self.query_one("#title", Static).update(title)

    def _show_scenario_title(self, scenario: Scenario) -> None:
        """Show the title of a scenario. For an unusable file, show why, as the lesson does."""
        if scenario.error and self._open_part != "lesson":
            self._show_title(to_content(f"! {scenario.error}", 300, "$text-error"))
        else:
            self._show_title(to_content(scenario.title or scenario.id, 160))

    def _show_part(self) -> None:
        """Update the open part. The others are updated when they are opened."""
        part = self._open_part
        if self._draft:
            self._show_scenario_title(self._draft.scenario)
        self.query_one(Parts).show(part if self._draft else "")
        if part not in self._widgets:
            self._widgets[part] = self._make_part(part)
            self.mount(self._widgets[part])
        for name, widget in self._widgets.items():
            widget.display = name == part
        if self._draft:
            self._widgets[part].fill(self._draft, self._runs)
        self.show_command(self._command)

    def _make_part(self, part: str) -> Part:
        """Return a new widget for a part. Its module is imported here, which saves time."""
        if part == "form":
            from tuilab.tui.widgets.lab.form import Form

            self._form = Form()
            return self._form
        if part == "code":
            from tuilab.tui.widgets.lab.source import Source

            return Source()
        from tuilab.tui.widgets.lab.past_runs import PastRuns

        return PastRuns()
