"""The Lab screen: choose a scenario, read its lesson, fill in its form, run it."""

import shlex
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tuilab.errors import TuilabError
from tuilab.history import RUNNING
from tuilab.scenario import Scenario, Value
from tuilab.text import plural, show
from tuilab.tui import commands, past
from tuilab.tui.draft import GUESS, Draft, spelt
from tuilab.tui.keys import bindings
from tuilab.tui.marks import plain
from tuilab.tui.past import PastRun
from tuilab.tui.screens.page import Page
from tuilab.tui.widgets.catalogue import Catalogue
from tuilab.tui.widgets.catalogue_pane import CataloguePane
from tuilab.tui.widgets.lines import PickList
from tuilab.tui.widgets.workbench import Workbench

if TYPE_CHECKING:
    from tuilab.orders import RunOrder

_LOOK_AGAIN_S = 2.0  # while something runs
_READING_S = 0.5  # a user who stays longer is reading
_HINT = "First time here?  ↑ ↓ choose a lesson · enter runs it on this box · ? shows the keys"


class LabPage(Page):
    """The catalogue on the left, what belongs to the chosen scenario on the right."""

    PLACE = "lab"
    BINDINGS = bindings("lab")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-normal")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (9, "-high")]
    DEFAULT_CSS = """
    LabPage #columns { height: 1fr; }
    LabPage #hint { height: auto; padding: 0 1; color: $text-accent; text-style: bold; }
    LabPage #left { width: 35%; min-width: 34; }
    LabPage.-narrow #left { width: 1fr; }
    LabPage.-narrow #right { display: none; }
    LabPage.-narrow.-reading #left { display: none; }
    LabPage.-narrow.-reading #right { display: block; }
    LabPage.-low #left, LabPage.-low #right { border: none; }
    """

    class BoxSeen(Message):
        """What this box is has been found out."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class VerdictsSeen(Message):
        """The last verdicts have been read."""

        def __init__(self, verdicts: Mapping[str, str]) -> None:
            super().__init__()
            self.verdicts = verdicts

    class RunsSeen(Message):
        """Past runs of a scenario have been read; more may come."""

        def __init__(self, scenario: Scenario, runs: list[PastRun], is_all: bool) -> None:
            super().__init__()
            self.scenario = scenario
            self.runs = runs
            self.is_all = is_all

    def __init__(self) -> None:
        super().__init__()
        self._drafts: dict[str, Draft] = {}
        self._runs: dict[str, list[PastRun]] = {}  # by the path of the scenario
        self._is_looking_at: Scenario | None = None
        self._will_look_again = False
        self._over: dict[str, PastRun] = {}  # runs that are over do not change

    # ---- what is on the screen

    def compose_body(self) -> ComposeResult:
        if not self.desk.settings.has_seen_hint:
            yield Static(Content(_HINT), id="hint")
        with Horizontal(id="columns"):
            yield CataloguePane(self.desk.scenarios)
            yield Workbench(self.desk.settings.part)

    def on_mount(self) -> None:
        self.desk.settings.has_seen_hint = True
        if not self._catalogue.go_to(self.desk.settings.scenario):
            self._catalogue.move_to(1)
        self._catalogue.focus()
        self._show_chosen()
        self.call_after_refresh(self._start_thread, self._see_box)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self._look_around)

    def on_screen_suspend(self) -> None:
        self.query("#hint").remove()

    @property
    def _catalogue(self) -> Catalogue:
        return self.query_one(Catalogue)

    @property
    def _bench(self) -> Workbench:
        return self.query_one(Workbench)

    @property
    def scenario(self) -> Scenario | None:
        """The scenario under the cursor; None on a topic."""
        row = self._catalogue.row
        return row.scenario if row else None

    @property
    def draft(self) -> Draft | None:
        """What the form of the scenario under the cursor holds."""
        return self._drafts.setdefault(self.scenario.path, Draft(self.scenario)) if self.scenario else None

    def _show_chosen(self) -> None:
        row = self._catalogue.row
        if row is None:
            return
        if draft := self.draft:
            self.desk.settings.scenario = draft.scenario.id
            self._bench.show_draft(draft, self._runs.get(draft.scenario.path, ()))
            self._look_at_runs()
        else:
            self._bench.show_topic(row.topic, self._catalogue.of_topic(row.topic), self._catalogue.verdicts)
        self._show_command()

    def _show_command(self) -> None:
        wrong = list(self.draft.problems) if self.draft and not self.draft.scenario.error else []
        self._bench.show_command(f"✗ look at {', '.join(wrong)}" if wrong else self.command())

    def command(self) -> str:
        row, draft = self._catalogue.row, self.draft
        if row is None:
            return "tuilab list"
        try:
            if draft is None:
                first = self._catalogue.of_topic(row.topic)[0]
                return commands.line(commands.topic_words(row.topic, first.path, self.desk.root, self.desk.folders))
            if draft.scenario.error:
                return commands.line(commands.check_words(draft.scenario.path))
            return commands.line(commands.run_words(draft, self.desk.root, self.desk.folders))
        except TuilabError:  # the form tells what is wrong
            return commands.line(["tuilab", "run", draft.scenario.id if draft else row.topic, "--help"])

    # ---- keys

    def action_run(self) -> None:
        """Run what is chosen; among past runs, open one."""
        from tuilab.tui.widgets.past_runs import PastRuns

        row = self._catalogue.row
        if isinstance(self.focused, PastRuns):
            if self.focused.run_dir:
                self.lab.open_run(self.focused.run_dir)
        elif row is not None:
            try:
                self._run(self._orders())
            except TuilabError as problem:
                self.lab.tell(str(problem))

    def _orders(self) -> "list[RunOrder]":
        """Return what is to be run; none while the form holds something that cannot be used."""
        draft, row = self.draft, self._catalogue.row
        if draft is None:
            from tuilab import launch

            usable = [s for s in self._catalogue.of_topic(row.topic) if not s.error] if row else []
            argv = shlex.split(self.command())[1:]
            return [launch.order(scenario, {}, root=self.desk.root, argv=argv) for scenario in usable]
        if problems := draft.problems:
            self.action_show_part("form", next(iter(problems)))
            return []
        words = commands.run_words(draft, self.desk.root, self.desk.folders)
        self.desk.guesses[draft.scenario.id] = draft.text(GUESS).strip() if GUESS in draft.fields else ""
        return [draft.order(self.desk.root, words[1:])]

    def _run(self, orders: "list[RunOrder]") -> None:
        if orders and self.desk.is_running():
            self.lab.tell(f"{plural(len(orders), 'run')} will start when the one before is over", is_problem=False)
        if orders:
            self.lab.run_orders(orders)

    def action_filter(self) -> None:
        self.remove_class("-reading")
        self.query_one(CataloguePane).open_filter()

    def action_show_part(self, part: str, field: str = "") -> None:
        if self._catalogue.row is None:
            return
        if self.scenario:
            self.desk.settings.part = part
        self.add_class("-reading")
        self._bench.open(part, field)

    def action_toggle_quick(self) -> None:
        if draft := self.draft:
            draft.is_quick = not draft.is_quick
            self._bench.refill()
            self._show_command()

    def action_next_claim(self) -> None:
        """Show the code, and in it the next claim."""
        from tuilab.tui.widgets.source import Source

        if isinstance(self.focused, Source):
            self.focused.go_to_next_claim()
        else:
            self.action_show_part("code")

    def action_step_in(self) -> None:
        row = self._catalogue.row
        if row and row.scenario is None and not self._catalogue.is_open(row.topic):
            self._catalogue.set_open(row.topic, True)
        elif self._catalogue.has_focus:
            self.action_show_part(self._bench.part)

    def action_step_aside(self) -> None:
        row = self._catalogue.row
        if not self._catalogue.has_focus:
            self._back_to_list()
        elif row and row.scenario:
            self._catalogue.go_to_topic(row.topic)
        elif row:
            self._catalogue.set_open(row.topic, False)

    def action_step_out(self) -> None:
        pane = self.query_one(CataloguePane)
        if pane.has_focus_within and pane.is_filtered:
            pane.close_filter()
        else:
            self._back_to_list()

    def _back_to_list(self) -> None:
        self.remove_class("-reading")
        self._catalogue.focus()

    def fill(self, scenario: str, values: Mapping[str, Value], *, is_quick: bool = False) -> None:
        """Show the form of a scenario with the values of a run, or as many of them as it still has."""
        if not self._catalogue.go_to(scenario) or (draft := self.draft) is None:
            self.lab.tell(f"no scenario is called {show(scenario, 60)} here")
            return
        draft.clear()
        draft.is_quick = is_quick
        for param in draft.scenario.params:
            if param.name in values and values[param.name] != draft.standard(param):
                draft.type(param.name, spelt(param, values[param.name]))
        self._bench.refill()
        self._show_command()
        self.action_show_part("form")

    # ---- what the widgets say

    def on_pick_list_moved(self, event: PickList.Moved) -> None:
        if event.picker is self._catalogue:
            self._show_chosen()

    def on_pick_list_chosen(self, event: PickList.Chosen) -> None:
        self.action_run()

    def on_workbench_opened(self, event: Workbench.Opened) -> None:
        self.action_show_part(event.part)

    def on_form_changed(self) -> None:
        self._show_command()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_run()

    # ---- what is read meanwhile, each in a thread that posts what it found

    def _start_thread(self, work: object) -> None:
        self.run_worker(work, thread=True, exit_on_error=False)  # type: ignore[arg-type]

    def _look_around(self) -> None:
        self._start_thread(self._see_verdicts)
        self._look_at_runs()

    def _look_at_runs(self) -> None:
        """Look at the past runs of the scenario under the cursor, when those of the one before are done."""
        if self._is_looking_at is None and self.scenario:
            self._is_looking_at = self.scenario
            self._start_thread(partial(self._see_runs, self.scenario))

    def _see_box(self) -> None:
        from tuilab.tui.box_line import box_line

        self.post_message(self.BoxSeen(box_line()))

    def _see_verdicts(self) -> None:
        self.post_message(self.VerdictsSeen(self.desk.verdicts()))

    def _see_runs(self, scenario: Scenario) -> None:
        runs: list[PastRun] = []
        for run_dir in past.runs_of(scenario.id, self.desk.root):
            run = self._over.get(run_dir.name) or past.look(run_dir)
            if not run.is_going_on:
                self._over[run_dir.name] = run
            runs.append(run)
            if len(runs) == 1:
                self.post_message(self.RunsSeen(scenario, runs[:], False))
            if scenario is not self._is_looking_at:
                break
        self.post_message(self.RunsSeen(scenario, runs, True))

    def on_lab_page_box_seen(self, event: BoxSeen) -> None:
        self.heading.show(Content("tuilab  lab"), plain(event.line, 200, "$text-muted"))

    def on_lab_page_verdicts_seen(self, event: VerdictsSeen) -> None:
        self._catalogue.show_verdicts(event.verdicts)
        if self.scenario is None:
            self._show_chosen()
        if RUNNING not in event.verdicts.values():
            self.set_timer(_READING_S, self._prepare)
        elif self.is_current and not self._will_look_again:
            self._will_look_again = True
            self.set_timer(_LOOK_AGAIN_S, self._look_again)

    def _prepare(self) -> None:
        """Have a process ready by the time that the lesson is read, and the screen that will show the run."""
        if self.is_current and not self.desk.is_running():
            self.desk.prepare()
            self._start_thread(partial(import_module, "tuilab.tui.screens.run"))

    def _look_again(self) -> None:
        self._will_look_again = False
        if self.is_current:
            self._look_around()

    def on_lab_page_runs_seen(self, event: RunsSeen) -> None:
        self._runs[event.scenario.path] = event.runs
        if event.scenario is self.scenario:
            self._bench.show_runs(event.runs)
        if event.is_all:
            self._is_looking_at = None
            if event.scenario is not self.scenario:
                self._look_at_runs()
