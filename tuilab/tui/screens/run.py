"""The Run screen: a run as it happens, or its record.

Both look the same. This file has the actions of the user.
"""

import os
import shlex
from typing import ClassVar

from textual import work
from textual.binding import BindingType

from tuilab.errors import TuilabError
from tuilab.record import tracebacks
from tuilab.record.gpus.own_gpus import other_gpus
from tuilab.runs import store
from tuilab.runs.command_line import root_option, why_not_again
from tuilab.text.display import show
from tuilab.tui.keys import Key, bindings
from tuilab.tui.screens.following import DELETED, FollowingPage
from tuilab.tui.state import printed_output
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.menu import Menu
from tuilab.tui.widgets.pane import Pane, TextPane
from tuilab.tui.widgets.run.copies import copies, rerun_command
from tuilab.tui.widgets.run.failure import FailurePane

_MAX_NAMES = 3  # charts that a message names


class RunPage(FollowingPage):
    """The Run screen: the keys of a run and their actions."""

    PLACE = "run"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("run"), *bindings("finished lesson")]
    ALLOW_IN_MAXIMIZED_VIEW = "Heading, KeyBar, SearchLine"
    DEFAULT_CSS = """
    RunPage.-maximized-view Heading { dock: top; }
    """

    def command(self) -> str:
        verb = "attach" if self.is_live else "replay"
        run = store.short_id(self.run_dir.name)
        return shlex.join(["tuilab", verb, run, *root_option(self.desk.root)])

    def how_to_leave(self, key: str) -> str:
        """Say of a running run also which key stops it."""
        if not self.is_live or self.source.is_over:
            return super().how_to_leave(key)
        sentence = f"{key} quits; the run {self.fate}"
        if self.desk.is_read_only:
            return sentence
        return f"{sentence}; s stops it"

    def places(self) -> list[str]:
        """Return the places of `keys.py` that apply now, those of the run before the others."""
        summary = self.source.summary
        places_of_focus = super().places()
        places: list[str] = []
        if summary.failure:
            places.append("failed run")
        card = self.lesson_card()
        if card is not None and card.upcoming and not self.desk.is_read_only:
            places.append("finished lesson")
        places.append(self.source.place)
        if self.other_runs.next(1):
            places.append("other running runs")
        if self.has_bad:
            places.append("NaN or Inf")
        if other_gpus(summary):
            places.append("other GPUs")
        places += places_of_focus[:-1]
        if len(self.panes.names) > 1:
            places.append("several charts")
        places += places_of_focus[-1:]
        return places

    def keys_now(self) -> list[Key]:
        """Return the keys that have an effect now, the key for a NaN or a search first."""
        # These keys come first if they are offered: there is a NaN or Inf, or text to search.
        first_keys = ["n"]
        if isinstance(self.focused, TextPane) and self._is_chosen(self.focused):
            first_keys.append("slash")

        def rank(key: Key) -> int:
            if key.key in first_keys:
                return first_keys.index(key.key)
            return len(first_keys)

        return sorted(super().keys_now(), key=rank)

    def idle_keys(self) -> set[str]:
        """Return the digits without a suggested run, `r` without repeats, and `s` after the end."""
        is_over = self.source.is_over
        option_count = len(self.next_steps().options) if is_over else 0
        idle = {str(number) for number in range(option_count + 1, 10)}
        if self.source.summary.planned_repeats <= 1:
            idle.add("r")
        if is_over:
            idle.add("s")
        return idle

    def action_toggle_others(self) -> None:
        """Overlay the curves of other runs, or remove them."""
        self.other_runs.toggle()

    def action_go_to_run(self, step: int) -> None:
        """Replace this run on the screen by the next running run, or by the previous one."""
        if run_dir := self.other_runs.next(step):
            self.lab.show_instead(run_dir)
        else:
            self.lab.tell("no other run is running", is_problem=False)

    def action_compare(self) -> None:
        self.compare_with_reference(self.run_dir)

    def on_descendant_focus(self) -> None:
        if isinstance(self.focused, Pane) and self._is_chosen(self.focused):
            self.desk.settings.pane = self.panes.name_of(self.focused)

    def _is_chosen(self, pane: Pane) -> bool:
        """Return whether the user chose to focus a pane.

        The pane of a failure gets the focus without the user.
        """
        return not isinstance(pane, FailurePane)

    async def action_filter_charts(self) -> None:
        """Open the filter of the charts by name; for a run without charts, search its output.

        Until the record is read, it is not known whether there are charts: the filter opens.
        """
        if not self.panes.names and self.source.is_caught_up:
            await self.views.search()
            return
        self.minimize()
        self.charts_line.open()

    def on_filter_line_changed(self) -> None:
        self.views.filter_charts(self.charts_line.filter.value)

    def on_filter_line_left(self) -> None:
        # Filter before a pane gets the focus: a pane that the filter removes cannot have it.
        self.views.filter_charts(self.charts_line.filter.value)
        if self.panes.every:
            self.panes.every[0].focus()
        self.show_panes()

    def on_chart_clicked(self, message: Chart.Clicked) -> None:
        self.views.move_cursor_to_click(message)

    def reset_layout(self) -> None:
        """Show the run as it was shown at first."""
        self.charts_line.filter.put("")
        self.views.reset()

    def action_look(self, method_name: str, *values: float) -> None:
        """Change the view of the run by a method of `ViewController`."""
        method = getattr(self.views, method_name)
        message = method(*values)
        if message:
            self.lab.tell(message, is_problem=False)
        self.show_note()

    def action_play(self, method_name: str, *values: float) -> None:
        """Freeze the display or replay the run by a method of `RunSource`."""
        method = getattr(self.source, method_name)
        try:
            self.source = method(*values)
        except TuilabError as problem:
            self.lab.tell(str(problem), is_problem=False)
            return
        self.show_note()
        self.turn()

    def action_next_bad(self) -> None:
        """Move the cursor to the next NaN or Inf.

        If there is none in the shown charts, show a message: the filter may hide it.
        """
        if self.views.go_to_next_bad():
            return
        bad_names = self.panes.bad_names
        charts = [show(name, 40) for name in bad_names[:_MAX_NAMES]]
        if len(bad_names) > _MAX_NAMES:
            charts.append(f"{len(bad_names) - _MAX_NAMES} more")
        hidden = ", ".join(charts)
        message = "no NaN or Inf so far"
        if hidden:
            message = (
                f"NaN or Inf in {hidden}, which the filter hides;"
                " press / and esc to show all charts"
            )
        self.lab.tell(message, is_problem=False)

    def action_step_out(self) -> None:
        """Leave the zoom, else clear the filter of the charts, else leave the screen."""
        if self.maximized is not None:
            self.views.maximise()
        elif self.views.view.words:
            self.charts_line.filter.clear()
        else:
            self.lab.action_step_back()

    def action_stop(self) -> None:
        """Ask whether to stop the run, or whether to kill it if it is stopping already."""
        summary = self.source.summary
        state = self.source.state if self.is_live else summary.state
        if not state:
            message = "still reading this run: not known yet whether it is running"
            self.lab.tell(message, is_problem=False)
            return
        name = store.short_id(self.run_dir.name)
        if summary.run is not None:
            name = f"{show(summary.run.topic)}/{show(summary.run.scenario)} {name}"
        self.stop(self.run_dir, name, state)

    def action_try_next(self, number: int) -> None:
        """Open the form of this scenario with the values that the lesson suggests."""
        if form := self.next_steps().form(number):
            self.lab.open_form(*form)
        else:
            self.lab.tell("the lesson suggests nothing for this key", is_problem=False)

    def action_next_lesson(self) -> None:
        """Go to the next lesson that the user has not done, if this run is a finished lesson."""
        if "finished lesson" in self.places():
            self.lab.open_next_lesson()

    def action_again(self) -> None:
        """Open the form of this scenario with the values of this run."""
        run = self.source.summary.run
        scenario = self.scenario
        if run is None:
            return
        if scenario is not None:
            self.lab.open_form(scenario.path, dict(run.params), is_quick=run.quick)
            return
        message = (
            f"the file of {show(run.scenario, 60)} is no longer here; where the file exists,"
            f" use: {rerun_command(self.source.summary)}"
        )
        self.lab.tell(message, is_problem=False)

    def action_edit(self) -> None:
        """Open the file of the scenario in the editor, at the failed line if the run failed."""
        summary = self.source.summary
        path = tracebacks.file_of(summary, self.run_dir) or self._scenario_file()
        frame = tracebacks.own_frame(summary)
        if path:
            line = frame.line if frame else 1
            self.lab.edit(path, line)
        elif summary.run and summary.run.command:
            self.lab.tell("the command names no file on this machine")
        else:
            self.lab.tell(
                f"the file is no longer on this machine; a copy of it: {self.run_dir}/scenario.py"
            )

    def _scenario_file(self) -> str:
        """Return the file of the scenario, or the script of a command; empty without one."""
        scenario = self.scenario
        if scenario is None:
            return ""
        if isinstance(scenario, OwnCommand):
            return scenario.script
        return scenario.path

    def action_show_all(self) -> None:
        """Show all kept output of the run in the pager."""
        if not os.path.lexists(self.run_dir):
            self.lab.tell(DELETED)
            return
        output = printed_output.whole(self.run_dir, self.source.summary)
        self.show_in_pager(output or "nothing was printed", str(self.run_dir))

    @work(group="question")
    async def action_choose_copy(self) -> None:
        """Let the user choose what to copy: the pane, a command, a claim, a value or a chart."""
        items = copies(self.source, self.views.view, self.panes, self.command())
        text = await self.app.push_screen_wait(Menu("Copy", items))
        if text:
            self.lab.copy(text)

    def action_copy_rerun(self) -> None:
        """Copy the command that runs the run again.

        If the command does not repeat the run as it was, show the reason.
        """
        summary = self.source.summary
        command = rerun_command(summary)
        if command:
            self.lab.copy(command)
        reason = why_not_again(summary.run) if summary.run else ""
        if reason:
            self.lab.tell(reason)

    def action_export(self) -> None:
        self.export([self.run_dir])
