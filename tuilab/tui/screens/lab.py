"""The Lab screen: choose a scenario, read its lesson, fill in its form, run it.

`Columns` lays out the widgets, `Drafts` keeps the values of the forms, and `Starter` starts the
runs. Meanwhile `BackgroundReader` reads the runs, the scenario files and the GPUs.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from tuilab.catalogue.scenario import Scenario, Value
from tuilab.record.states import RunState
from tuilab.runs.past_runs import PastRun
from tuilab.runs.store import short_id
from tuilab.text.display import plural, show
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import state_words, to_content
from tuilab.tui.screens.page import Page
from tuilab.tui.state import command_line, drafts
from tuilab.tui.state.background_reader import BackgroundReader
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.drafts import Drafts
from tuilab.tui.state.own.own_commands import TOPIC, OwnCommand
from tuilab.tui.terminal.delayed_call import later
from tuilab.tui.widgets.info_line import InfoLine
from tuilab.tui.widgets.lab.columns import Columns
from tuilab.tui.widgets.lab.starter import Starter
from tuilab.tui.widgets.lab.workbench import Workbench
from tuilab.tui.widgets.lines import PickList

if TYPE_CHECKING:
    from tuilab.runs.entry import RunEntry

_LOOK_AGAIN_S = 2.0
_READING_S = 0.5  # a user who stays longer than this is reading the lesson
_HINT = "First time here?  ↑ ↓ choose a lesson · enter runs it · ? shows the keys"
_HINT_READ_ONLY = "↑ ↓ choose a lesson · h shows all runs · b this machine · nothing can be changed"


class LabPage(Page):
    """Shows the catalogue on the left, and the chosen scenario or topic on the right."""

    PLACE = "lab"
    BINDINGS = bindings("lab")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-normal"), (160, "-broad")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (9, "-high")]
    DEFAULT_CSS = """
    LabPage #columns { height: 1fr; }
    LabPage #hint { height: auto; padding: 0 1; color: $text-accent; text-style: bold; }
    LabPage #left { width: 35%; min-width: 34; }
    LabPage.-broad #left { width: 45%; }
    LabPage.-narrow #left { width: 1fr; min-width: 0; }
    LabPage.-narrow #right { display: none; }
    LabPage.-narrow.-reading #left { display: none; }
    LabPage.-narrow.-reading #right { display: block; }
    LabPage.-low #left, LabPage.-low #right { border: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._drafts = Drafts()
        self._live_runs: Sequence[RunEntry] = ()  # all running and queued runs, not only the user's
        self._is_queue_paused = False
        self._visited = 0  # how many times `action_attach` has opened a live run

    def compose_body(self) -> ComposeResult:
        if not self.desk.settings.has_seen_hint:
            hint = _HINT_READ_ONLY if self.desk.is_read_only else _HINT
            yield Static(Content(hint), id="hint")
        self._running_line = InfoLine(is_short=True)
        self.columns = Columns(self.desk)
        self._catalogue = self.columns.catalogue
        self._bench = self.columns.bench
        self._starter = Starter(self.columns, self._drafts, self.lab)
        yield self._running_line
        yield self.columns

    def on_mount(self) -> None:
        """Open at the scenario of the last time; without one, below the first topic.

        The user who is learning gets to the next lesson once the screen is laid out. The hint for
        new users counts as seen from now on.
        """
        self._reader = BackgroundReader(self, self.desk)
        self.desk.settings.has_seen_hint = True
        if not self._catalogue.go_to(self.desk.settings.scenario):
            self._catalogue.move_to(1)
        self.set_focus(self._catalogue)
        self._show_chosen()
        if self.desk.is_learning:
            self.call_after_refresh(self.action_next_lesson)
        self.lab.call_after_first_frame(self._reader.see_box)
        self.set_interval(_LOOK_AGAIN_S, self._look_again)

    def on_screen_resume(self) -> None:
        self.lab.call_after_first_frame(self._look_around)

    def on_screen_suspend(self) -> None:
        self.query("#hint").remove()

    def on_unmount(self) -> None:
        self._reader.close()

    @property
    def _past(self) -> list[PastRun]:
        """The past runs of the scenario at the cursor that have been read so far."""
        if self.scenario is None:
            return []
        return self._reader.past(self.scenario) or []

    @property
    def scenario(self) -> Scenario | None:
        """The scenario at the cursor; None on a topic."""
        return self.columns.scenario

    @property
    def draft(self) -> Draft | None:
        """The form of the scenario at the cursor; None on a topic."""
        if self.scenario is None:
            return None
        return self._drafts.of(self.scenario)

    def _show_chosen(self) -> None:
        """Show the scenario or the topic at the cursor; for a scenario, read its past runs."""
        if draft := self.draft:
            self.desk.settings.scenario = draft.scenario.id
            self._reader.look_at(draft.scenario)
        self.columns.show(draft, self._past)
        self.show_command()

    def show_command(self) -> None:
        """Show the command line that does the same as the form, or which fields are wrong."""
        problem = self._drafts.what_is_wrong(self.draft)
        self._bench.show_command(problem or self.command())

    def command(self) -> str:
        """Return the command that runs the form or the topic at the cursor.

        If nothing is listed, return the command that lists the scenarios.
        """
        row = self._catalogue.row
        if row is None:
            return "tuilab list"
        listed = self._catalogue.of_topic(row.topic)
        is_whole = self._catalogue.is_whole(row.topic)
        return command_line.chosen_line(
            self.draft, listed, self.desk.root, self.desk.folders, is_whole=is_whole
        )

    def places(self) -> list[str]:
        """Add the places of a topic at the cursor, and of running runs."""
        places = super().places()
        row = self._catalogue.row
        is_of_commands = row is not None and row.topic == TOPIC
        if self._catalogue.has_focus and self.scenario is None and not is_of_commands:
            places.insert(0, "topic")
        if not self._live_runs:
            return places
        return [*places[:-1], "running runs", *places[-1:]]

    def action_go(self, method_name: str, *values: str) -> None:
        """Move to another part of the screen by a method of `Columns`."""
        method = getattr(self.columns, method_name)
        method(*values)

    def action_run(self) -> None:
        """Run the scenario or the topic at the cursor."""
        self._starter.start(self.draft, self.command())

    def action_open(self) -> None:
        """Open the past run at the cursor."""
        if run_dir := self._bench.chosen_run:
            self.lab.open_run(run_dir)

    def action_attach(self) -> None:
        """Open a running or queued run; each further call opens the next one."""
        if not self._live_runs:
            self.lab.tell("no run is running or queued", is_problem=False)
            return
        entry = self._live_runs[self._visited % len(self._live_runs)]
        self._visited += 1
        self.lab.open_run(self.desk.root / entry.run)

    def action_next_lesson(self) -> None:
        """Go to the first lesson that the user has not done, and show the score."""
        from tuilab.runs import lesson_score  # imported here: the first frame does not need it

        learned = lesson_score.read()
        upcoming = lesson_score.upcoming(self.desk.scenarios, learned)
        if upcoming:
            self.columns.show_all()
            self._catalogue.go_to(upcoming.id)
            self.columns.show_part("lesson")
        self.lab.tell(lesson_score.describe_score(self.desk.scenarios, learned), is_problem=False)

    def action_show_all(self) -> None:
        """Show the lesson in the pager; if the code is open, show the whole file."""
        if self.scenario:
            self.show_in_pager(self._bench.text_of(self.scenario), self.scenario.path)

    def action_compare(self) -> None:
        """Compare the chosen run of the scenario, or its newest one, with its reference."""
        run_dir = self._bench.chosen_run
        if run_dir is None and self._past:
            run_dir = self._past[0].run_dir
        if run_dir is None:
            self.lab.tell("nothing to compare: the scenario has no runs", is_problem=False)
        else:
            self.compare_with_reference(run_dir)

    def action_edit(self) -> None:
        """Open the file of the scenario at its error, or else at its start; then read it again.

        For a command of the user, open its script.
        """
        scenario = self.scenario
        if scenario is None:
            self.lab.tell("choose a scenario to edit its file", is_problem=False)
            return
        path = scenario.path
        if isinstance(scenario, OwnCommand):
            path = scenario.script
            if not path:
                self.lab.tell("the command names no script on this machine")
                return
        has_edited = self.lab.edit(path, scenario.error_line)
        if has_edited:
            self.look_at_files()

    def action_toggle_quick(self) -> None:
        if draft := self.draft:
            draft.is_quick = not draft.is_quick
            self._bench.refill()
            self.show_command()

    def fill(self, scenario: str, values: Mapping[str, Value], *, is_quick: bool = False) -> None:
        """Show the form of a scenario with the values of a run, for parameters that still exist."""
        # When a run was opened, its scenario may have been added to the list.
        self.columns.replace_scenarios(self.desk.listed)
        draft = self.draft if self._catalogue.go_to(scenario) else None
        if draft is None:
            self.lab.tell(f"there is no scenario {show(scenario, 60)} here")
            return
        drafts.fill(draft, values, is_quick=is_quick)
        self._bench.refill()
        self.show_command()
        self.columns.show_part("form")

    def go_to_command(self, scenario: Scenario | None) -> None:
        """If the screens were opened for a command of the user, move the cursor to it."""
        if isinstance(scenario, OwnCommand):
            self.columns.replace_scenarios(self.desk.listed)
            self._catalogue.go_to(scenario.path)

    def on_pick_list_moved(self, event: PickList.Moved) -> None:
        if event.picker is self._catalogue:
            self._show_chosen()
            self.show_keys()

    @on(PickList.Chosen)
    @on(Input.Submitted)
    async def _do_it(self) -> None:
        """Do what `enter` does here: open the past run at the cursor, or run what is chosen."""
        action = "open" if self._bench.is_among_runs else "run"
        await self.run_action(action)

    def on_workbench_opened(self, event: Workbench.Opened) -> None:
        self.columns.show_part(event.part)

    def on_descendant_focus(self) -> None:
        self._show_running()  # in a text field, the line does not offer `a`, which would be typed
        # `Page` shows the keys when `focused` changes. Show them again now: `places` asks widgets
        # for `has_focus`, which changes only when they handle their Blur and Focus events.
        self.show_keys()

    def on_form_changed(self) -> None:
        self.show_command()

    def _look_again(self) -> None:
        """Look around if runs are running or queued, or if runs came or went; else read no run.

        Behind another screen, nobody sees the progress of runs. Then the page does not follow
        them. It looks around again when all have ended, to prepare the next run (`make_ready`).
        """
        if not self.is_current:
            return
        self.look_at_files()
        if self._is_progress_needed() or self._reader.has_news():
            self._look_around()

    def _is_progress_needed(self) -> bool:
        """Return whether there are live runs, and either the user sees this page or all ended."""
        if not self._live_runs:
            return False
        if self.is_seen:
            return True
        return not any(
            self.desk.is_going_on(self.desk.root / entry.run) for entry in self._live_runs
        )

    def look_at_files(self) -> None:
        """Read the scenarios again if their files have changed."""
        self._reader.look_at_files()

    def _look_around(self) -> None:
        self._reader.look_around(self.scenario)

    def make_ready(self) -> None:
        """While the user reads, prepare a process for the next run and load the Run screen.

        If the user only watches a run, with this screen behind it, nothing is prepared: to load
        torch would take a core of the machine.
        """
        is_run_likely = self.is_seen or self.desk.started
        if not self.is_current or not is_run_likely:
            return
        if not self.desk.is_read_only and not self.desk.is_running():
            self.desk.prepare()
            self.run_worker(_load_what_shows_runs, thread=True, exit_on_error=False)

    def on_background_reader_box_seen(self, event: BackgroundReader.BoxSeen) -> None:
        self.heading.show(Content("tuilab  lab"), to_content(event.line, 200, "$text-muted"))

    def on_field_gpus_wanted(self) -> None:
        self._reader.look_at_gpus()

    def on_background_reader_gpus_seen(self, event: BackgroundReader.GpusSeen) -> None:
        self._bench.show_gpus(event.gpus)

    def on_background_reader_files_changed(self) -> None:
        """Show the scenarios as the files define them now. Values typed into forms stay."""
        self.columns.replace_scenarios(self.desk.listed)
        self._show_chosen()

    def on_background_reader_runs_came(self, event: BackgroundReader.RunsCame) -> None:
        """Show the statuses and the running runs, as they are now.

        If no run is running or queued, prepare the next run when the user has had time to read.
        """
        self._catalogue.show_statuses(event.statuses)
        self._live_runs = event.going_on
        self._is_queue_paused = event.is_paused
        self._show_running()
        if self.scenario is None:
            self._show_chosen()
        if not event.going_on:
            later(self, _READING_S, self.make_ready)
        self.show_keys()

    def on_resize(self) -> None:
        self._show_running()

    def _show_running(self) -> None:
        """Show which runs are running or queued, and the key that opens them."""
        if not self._live_runs:
            self._running_line.show(Content(""))
            return
        key = Content("")
        if not isinstance(self.focused, Input):
            effect = " opens it" if len(self._live_runs) == 1 else " opens each in turn"
            key = Content.assemble("  ", ("a", "bold $text-accent"), (effect, "dim"))
        names = _describe_live_runs(self._live_runs, is_paused=self._is_queue_paused)
        room = max(self.size.width - 2 - key.cell_length, 8)
        self._running_line.show(names.truncate(room, ellipsis=True) + key)

    def on_background_reader_past_seen(self, event: BackgroundReader.PastSeen) -> None:
        if event.scenario is self.scenario:
            self._bench.show_runs(self._past)
        # The cursor has moved meanwhile, and the reader has ignored the scenario that it is at now.
        elif event.is_all:
            self._reader.look_at(self.scenario)


def _describe_live_runs(runs: "Sequence[RunEntry]", *, is_paused: bool) -> Content:
    """Return how many runs are running and queued, and their names.

    If the queue is paused, queued runs do not start, and the text says so.
    """
    queued = sum(run.state == RunState.QUEUED for run in runs)
    running = len(runs) - queued
    counts = []
    if running:
        counts.append(Content.styled(f"● {plural(running, 'run')}", "$text-primary"))
    if queued:
        counts.append(Content.styled(f"○ {queued} queued", "$text-muted"))
    states = Content(", ").join(counts)
    if len(runs) == 1:
        states = state_words(runs[0].state)
    if queued and is_paused:
        states = Content.assemble(states, (", paused (press Q)", "bold $text-warning"))
    names = []
    for run in runs:
        name = to_content(run.name, 40, "bold")
        names.append(Content.assemble(name, (f" {short_id(run.run)}", "$text-muted")))
    return Content.assemble(states, "  ", Content(", ").join(names))


def _load_what_shows_runs() -> None:
    """Load the Run screen and scipy before a run begins.

    To load them during the run would take a core from what the run measures.
    """
    from tuilab.judging.interim_results import start_loading_scipy
    from tuilab.tui.screens import run  # noqa: F401

    start_loading_scipy()
