"""The Lab screen: choose a scenario, read its lesson, fill in its form, run it."""

import shlex
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from tuilab.catalogue.scenario import Scenario, Value
from tuilab.errors import TuilabError
from tuilab.runs.past_runs import PastRun
from tuilab.text import plural, show
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import plain
from tuilab.tui.screens.page import Page
from tuilab.tui.state import command_line
from tuilab.tui.state.background_reader import Lookout
from tuilab.tui.state.draft import GUESS, Draft, spelt
from tuilab.tui.widgets.lab.catalogue import Catalogue
from tuilab.tui.widgets.lab.catalogue_pane import CataloguePane
from tuilab.tui.widgets.lab.running_line import GoingLine
from tuilab.tui.widgets.lab.workbench import Workbench
from tuilab.tui.widgets.lines import PickList

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder

_LOOK_AGAIN_S = 2.0
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

    def __init__(self) -> None:
        super().__init__()
        self._drafts: dict[str, Draft] = {}
        self._attached = 0  # times that the user went to a run that goes on
        self._asked: set[str] = set()  # scenarios whose prediction was asked for

    # ---- what is on the screen

    def compose_body(self) -> ComposeResult:
        if not self.desk.settings.has_seen_hint:
            yield Static(Content(_HINT), id="hint")
        yield GoingLine()
        with Horizontal(id="columns"):
            yield CataloguePane(self.desk.scenarios)
            yield Workbench(self.desk.settings.part)

    def on_mount(self) -> None:
        self._lookout = Lookout(self, self.desk)
        self.desk.settings.has_seen_hint = True
        if not self._catalogue.go_to(self.desk.settings.scenario):
            self._catalogue.move_to(1)
        self._catalogue.focus()
        self._show_chosen()
        self.call_after_refresh(self._lookout.see_box)
        self.set_interval(_LOOK_AGAIN_S, self._look_again)

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
    def _going_on(self) -> GoingLine:
        return self.query_one(GoingLine)

    @property
    def _past(self) -> list[PastRun]:
        """The past runs of the scenario under the cursor, as far as they were read."""
        return (self._lookout.past(self.scenario) if self.scenario else None) or []

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
            self._bench.show_draft(draft, self._past)
            self._lookout.look_at(draft.scenario)
        else:
            self._bench.show_topic(row.topic, self._catalogue.of_topic(row.topic), self._catalogue.verdicts)
        self._show_command()

    def _show_command(self) -> None:
        wrong = list(self.draft.problems) if self.draft and not self.draft.scenario.error else []
        self._bench.show_command(f"✗ look at {', '.join(wrong)}" if wrong else self.command())

    def command(self) -> str:
        row = self._catalogue.row
        if row is None:
            return "tuilab list"
        first = self._catalogue.of_topic(row.topic)[0]
        return command_line.chosen_line(self.draft, first, self.desk.root, self.desk.folders)

    def places(self) -> list[str]:
        found = super().places()
        if self._catalogue.has_focus and self.scenario is None:
            found.insert(0, "topic")
        return [*found[:-1], "a run goes on", *found[-1:]] if self._going_on.runs else found

    # ---- keys

    def action_run(self) -> None:
        """Run what is chosen; among past runs, open one."""
        from tuilab.tui.widgets.lab.past_runs import PastRuns

        row = self._catalogue.row
        if isinstance(self.focused, PastRuns):
            if self.focused.run_dir:
                self.lab.open_run(self.focused.run_dir)
        elif (draft := self.draft) and self._has_to_ask(draft):
            self._ask(draft)
        elif row is not None:
            self._run_chosen()

    def _run_chosen(self) -> None:
        try:
            self._run(self._orders())
        except TuilabError as problem:
            self.lab.tell(str(problem))

    def _has_to_ask(self, draft: Draft) -> bool:
        """Say whether this is the first run of a scenario here, and nobody has said what it may bring."""
        if GUESS not in draft.fields or draft.problems or draft.scenario.path in self._asked:
            return False
        return not draft.text(GUESS).strip() and self._lookout.past(draft.scenario) == []

    def _ask(self, draft: Draft) -> None:
        from tuilab.tui.widgets.lab.prediction import Prediction

        def heed(wants_to_run: bool | None) -> None:
            if wants_to_run:
                self._asked.add(draft.scenario.path)
                self._bench.refill()
                self._run_chosen()

        self.app.push_screen(Prediction(draft), heed)

    def action_attach(self) -> None:
        """Go to a run that goes on; asked again, to the next of them."""
        runs = self._going_on.runs
        if runs:
            self.lab.open_run(self.desk.root / runs[self._attached % len(runs)].run)
            self._attached += 1
        else:
            self.lab.tell("nothing runs at the moment", is_problem=False)

    def action_compare(self) -> None:
        """Compare the newest run of the scenario, or the chosen one, with the one before it."""
        from tuilab.tui.widgets.lab.past_runs import PastRuns

        runs = [run.run_dir for run in self._past]
        chosen = self.focused.run_dir if isinstance(self.focused, PastRuns) else None
        at = runs.index(chosen) if chosen in runs else 0
        if len(runs) > at + 1:
            self.lab.open_compare([runs[at + 1], runs[at]])
        else:
            self.lab.tell("two runs of the scenario are needed to compare", is_problem=False)

    def _orders(self) -> "list[RunOrder]":
        """Return what is to be run; none while the form holds something that cannot be used."""
        draft, row = self.draft, self._catalogue.row
        if draft is None:
            from tuilab.engine import launch

            usable = [s for s in self._catalogue.of_topic(row.topic) if not s.error] if row else []
            argv = shlex.split(self.command())[1:]
            return [launch.order(scenario, {}, root=self.desk.root, argv=argv) for scenario in usable]
        if problems := draft.problems:
            self.action_show_part("form", next(iter(problems)))
            return []
        words = command_line.run_words(draft, self.desk.root, self.desk.folders)
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
        from tuilab.tui.widgets.lab.source import Source

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
            self.show_keys()

    def on_pick_list_chosen(self, event: PickList.Chosen) -> None:
        self.action_run()

    def on_workbench_opened(self, event: Workbench.Opened) -> None:
        self.action_show_part(event.part)

    def on_descendant_focus(self) -> None:
        self.show_keys()

    def on_form_changed(self) -> None:
        self._show_command()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_run()

    # ---- what is read meanwhile

    def _look_again(self) -> None:
        """Look around while something runs, and when runs came or went; else nothing is read."""
        if self.is_current and (self._going_on.runs or self._lookout.has_news()):
            self._look_around()

    def _look_around(self) -> None:
        self._lookout.look_around()
        self._lookout.look_at(self.scenario)

    def _prepare(self) -> None:
        """Have a process ready by the time that the lesson is read, and the screen that will show the run."""
        if self.is_current and not self.desk.is_running():
            self.desk.prepare()
            self.run_worker(partial(import_module, "tuilab.tui.screens.run"), thread=True, exit_on_error=False)

    def on_lookout_box_seen(self, event: Lookout.BoxSeen) -> None:
        self.heading.show(Content("tuilab  lab"), plain(event.line, 200, "$text-muted"))

    def on_lookout_runs_came(self, event: Lookout.RunsCame) -> None:
        self._catalogue.show_verdicts(event.verdicts)
        self._going_on.show(event.going_on)
        if self.scenario is None:
            self._show_chosen()
        if not event.going_on:
            self.set_timer(_READING_S, self._prepare)
        self.show_keys()

    def on_lookout_past_seen(self, event: Lookout.PastSeen) -> None:
        if event.scenario is self.scenario:
            self._bench.show_runs(self._past)
        elif event.is_all:
            self._lookout.look_at(self.scenario)
