"""The Run screen: a run as it happens, or its record; both are the same."""

import shlex
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Resize

from tuilab.catalogue.params import parse
from tuilab.catalogue.scenario import Scenario
from tuilab.engine import launch
from tuilab.errors import TuilabError
from tuilab.record.told import progress_words
from tuilab.runs import store
from tuilab.text import show
from tuilab.tui.keys import Key, bindings
from tuilab.tui.looks.marks import plain, state_words
from tuilab.tui.screens.page import Page
from tuilab.tui.state import presets
from tuilab.tui.state.command_line import root_option
from tuilab.tui.state.cost import Cost
from tuilab.tui.state.following import Following
from tuilab.tui.state.playback import Playback
from tuilab.tui.state.presets import Preset
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.pane import Pane, View
from tuilab.tui.widgets.run.notes import TryNext
from tuilab.tui.widgets.run.panes import Panes
from tuilab.tui.widgets.run.series import ChartPane
from tuilab.words import clock

_MOST_OPTIONS = 3  # of the things to try that have a key
_OLD_S = 2.0  # data older than this is told to be
_SLOW_S = 2.0  # between two pictures on a slow link, so that keys are answered in between
_GLANCE_S = 0.4  # between two pictures while a long record is read
_SOON_S = 0.03  # between two looks for the first point
_EAGER_S = 5.0  # that it is looked for: not every scenario has one


class RunPage(Page):
    """Panes side by side, as many as the run has something to show for."""

    PLACE = "run"
    BINDINGS = bindings("run")
    ALLOW_IN_MAXIMIZED_VIEW = "Heading, KeyBar"
    DEFAULT_CSS = """
    RunPage.-maximized-view Heading { dock: top; }
    """

    def __init__(self, run_dir: Path, *, is_replay: bool = False) -> None:
        super().__init__()
        self.run_dir = run_dir
        self.following: Following | Playback = Playback(run_dir) if is_replay else Following(run_dir)
        self.view = View()
        self._is_laid_out = False  # as the user left it last time
        self._is_frozen = False
        self._shown_at = 0.0
        self._has_news = False  # that is not on the screen yet
        self._has_asked_to_stop = False
        self._cost = Cost()

    @property
    def is_following(self) -> bool:
        """Whether this page shows a run as it happens, not one that is played again."""
        return isinstance(self.following, Following)

    def compose_body(self) -> ComposeResult:
        yield Panes(self.desk.predictions.get(self.run_dir.name, ""))

    def on_mount(self) -> None:
        kept = self.desk.settings
        self.view = View(is_smooth=kept.is_smooth, is_timed=kept.is_timed)
        self._await_first_point(time.monotonic() + _EAGER_S)
        self.set_interval(1 / self.desk.fps, self._turn)

    def on_unmount(self) -> None:
        self.following.close()

    def command(self) -> str:
        verb = "replay" if isinstance(self.following, Playback) else "attach"
        return shlex.join(["tuilab", verb, store.short_id(self.run_dir.name), *root_option(self.desk.root)])

    def places(self) -> list[str]:
        if isinstance(self.following, Playback):
            state = "replay"
        elif self.following.is_over:
            state = "run that is over"
        else:
            state = "run that is frozen" if self._is_frozen else "run that goes on"
        return [state, *super().places()]

    def keys_now(self) -> list[Key]:
        options = len(self._presets()) if self.following.is_over else 0
        return [key for key in super().keys_now() if not key.key.isdigit() or int(key.key) <= options]

    # ---- following

    def _await_first_point(self, deadline: float) -> None:
        """Look often for the first point: whoever has started a run waits for it."""
        self._turn()
        if not self.following.summary.series and not self.following.is_over and time.monotonic() < deadline:
            self.set_timer(_SOON_S, partial(self._await_first_point, deadline))

    def _turn(self) -> None:
        """Take in what is new and show it; of a run that is over there is nothing more to do."""
        if self._is_frozen or not self.is_current:
            return
        try:
            self._has_news |= self.following.read()
        except TuilabError as problem:
            self.lab.tell(str(problem))
            self._is_frozen = True
            return
        if self.lab.is_stalled or (self.lab.is_link_slow and time.monotonic() - self._shown_at < _SLOW_S):
            return
        if not self.following.is_caught_up:
            self.set_timer(0.005, self._turn)  # a long record is read in portions, and keys are answered between them
            if time.monotonic() - self._shown_at < _GLANCE_S:
                return
        if self._has_news or not self.following.is_over:
            self._show_heading()
        if self._has_news:
            self.show_panes()
        self._show_note()

    def show_panes(self) -> None:
        """Show what there is in the panes."""
        self._shown_at = time.monotonic()
        self._has_news = False
        self.panes.show(self.following, self.view, self._try_next())
        if self.following.is_caught_up and not self._is_laid_out:
            self._is_laid_out = self._lay_out()

    def _lay_out(self) -> bool:
        """Go to the pane where the user was last time; say whether it is there."""
        kept = self.desk.settings
        pane = self.panes.named(kept.pane)
        if pane is not None and self.focused is None:
            pane.focus(scroll_visible=True)
            if kept.is_zoomed:
                self.maximize(pane, container=False)
        return pane is not None or not kept.pane or self.following.is_over

    def on_resize(self, event: Resize) -> None:
        self.panes.fit()

    def on_descendant_focus(self) -> None:
        if isinstance(self.focused, Pane):
            self.desk.settings.pane = self.panes.name_of(self.focused)

    @property
    def panes(self) -> Panes:
        return self.query_one(Panes)

    @property
    def _scenario(self) -> Scenario | None:
        run = self.following.summary.run
        return next((one for one in self.desk.scenarios if run and one.id == run.scenario), None)

    def _presets(self) -> list[Preset]:
        return presets.try_next(self._scenario)[:_MOST_OPTIONS] if self._scenario else []

    def _try_next(self) -> TryNext:
        if not self.following.is_over or self._scenario is None:
            return TryNext()
        return TryNext(self._scenario.sections.get("Try next", ""), tuple(preset.name for preset in self._presets()))

    # ---- what is told above and below

    def _show_heading(self) -> None:
        following, summary = self.following, self.following.summary
        run = summary.run
        name = f"{show(run.topic)}/{show(run.scenario)}" if run else "?"
        stage = show(summary.stages[-1].name, 40) if summary.stages and not following.is_over else ""
        id = Content.styled(f" · {store.short_id(self.run_dir.name)}  ", "$text-muted")
        left = Content.assemble((name, "bold"), id, state_words(following.state), "  ", stage)
        if following.is_over and summary.reason:
            left = Content.assemble(left, plain(summary.reason, 200, "$text-muted"))
        if summary.damage.is_any:
            left = Content.assemble(left, ("  the record is not whole", "$text-error"))
        self.heading.show(left, self._progress())

    def _progress(self) -> Content:
        following, summary = self.following, self.following.summary
        if not following.is_caught_up:
            return Content.styled(f"reading, {summary.records} records", "$text-warning")
        parts = [] if following.is_over else [progress_words(summary)]
        parts.append(clock(following.elapsed_s))
        parts += [f"of {clock(following.whole_s)}"] if isinstance(following, Playback) else []
        repeats = [w.started.repeat for w in summary.workers.values() if w.started and not w.started.arm]
        if summary.run and summary.run.repeats > 1 and repeats:
            parts.append(f"repeat {max(repeats) + 1}/{summary.run.repeats}")
        return Content("  ".join(part for part in parts if part))

    def _show_note(self) -> None:
        if self._is_frozen:
            note = Content.styled("frozen", "bold $text-warning")
        elif isinstance(self.following, Playback):
            word = "end" if self.following.is_over else "playing" if self.following.is_playing else "paused"
            note = Content.styled(f"{word} x{self.following.speed:.3g}  space, , . seek  [ ] speed", "$text-accent")
        elif self.following.is_over:
            note = Content("")
        else:
            age = self.following.age_s
            old = f"data {age:.0f} s old  " if age > _OLD_S else ""
            slow = "slow link, drawing less  " if self.lab.is_link_slow else ""
            note = Content.assemble((old + slow, "$text-warning"), (self._cost.words(self.lab.bytes_sent), "$text-muted"))
        self.keybar.note(note)
        self.show_keys()

    # ---- keys

    def action_freeze(self) -> None:
        """Hold the picture; of a run that is over, play it again, and pause."""
        if isinstance(self.following, Playback):
            self.following.is_playing = not self.following.is_playing
        elif self.following.is_over:
            self.action_replay()
            return
        else:
            self._is_frozen = not self._is_frozen
        self._show_note()
        self._turn()

    def action_replay(self) -> None:
        """Play the run from its start."""
        if not self.following.is_over:
            self.lab.tell("a run that goes on cannot be played again yet", is_problem=False)
            return
        self.following.close()
        self.following = Playback(self.run_dir)
        self._turn()

    def action_speed(self, factor: float) -> None:
        if isinstance(self.following, Playback):
            self.following.speed = min(max(self.following.speed * factor, 0.1), 1000.0)
            self._show_note()

    def action_seek(self, share: float) -> None:
        if isinstance(self.following, Playback) and self.following.is_caught_up:
            self.following.seek(share)
            self._show_heading()
            self.show_panes()

    @work(thread=True, exclusive=True, group="stop")
    def action_stop(self) -> None:
        """Ask the run to stop, the second time at once; in a thread, because a long record is read for it."""
        at_once, self._has_asked_to_stop = self._has_asked_to_stop, True
        try:
            said = launch.stop(self.run_dir, at_once=at_once)
        except TuilabError as problem:
            said = str(problem)
        self.app.call_from_thread(self.lab.tell, said, is_problem=False)

    def action_maximise(self) -> None:
        pane = self._focused_pane()
        if self.maximized is not None:
            self.minimize()
        elif pane is not None:
            pane.focus()
            self.maximize(pane, container=False)
        self.desk.settings.is_zoomed = self.maximized is not None

    def action_step_pane(self, step: int) -> None:
        """Go to the next pane; zoomed, to look at each in turn."""
        is_zoomed = self.maximized is not None
        self.minimize()
        self.focus_next() if step > 0 else self.focus_previous()
        if is_zoomed and (pane := self._focused_pane()):
            self.maximize(pane, container=False)

    def action_scroll_panes(self, rows: int) -> None:
        self.panes.scroll_relative(y=rows, animate=False)

    def action_step_out(self) -> None:
        """Out of the zoom, else out of the screen."""
        if self.maximized is not None:
            self.action_maximise()
        else:
            self.lab.action_step_back()

    def action_toggle_log(self) -> None:
        if chart := self._focused_chart():
            self._look(replace(self.view, is_log=not chart.is_log))

    def action_toggle_smooth(self) -> None:
        self._look(replace(self.view, is_smooth=not self.view.is_smooth))

    def action_toggle_time(self) -> None:
        self._look(replace(self.view, is_timed=not self.view.is_timed))

    def action_next_bad(self) -> None:
        if not any(chart.jump_to_bad() for chart in self.panes.charts):
            self.lab.tell("every value so far is finite", is_problem=False)

    def action_move_cursor(self, columns: int) -> None:
        if chart := self._focused_chart():
            chart.move_cursor(columns)

    def action_zoom(self, factor: float) -> None:
        for chart in self.panes.charts:
            chart.zoom(factor)

    def action_try_next(self, number: int) -> None:
        """To the form of this scenario, with what the lesson says to try."""
        scenario, options = self._scenario, self._presets()
        if scenario is not None and number <= len(options):
            typed = options[number - 1].typed
            self.lab.open_form(
                scenario.id, {param.name: parse(param, typed[param.name]) for param in scenario.params if param.name in typed}
            )
        else:
            self.lab.tell("the lesson names no such thing to try", is_problem=False)

    def action_export(self) -> None:
        self.export([self.run_dir])

    def action_again(self) -> None:
        """Back to the form of this scenario, with the values of this run."""
        run = self.following.summary.run
        if run is not None:
            self.lab.open_form(run.scenario, dict(run.params), is_quick=run.quick)

    def reset_layout(self) -> None:
        """Look at the run as at first."""
        self.minimize()
        self.set_focus(None)
        for chart in self.panes.charts:
            chart.reset()
        self._look(View())

    def on_chart_cursor_moved(self, message: Chart.CursorMoved) -> None:
        """One cursor over all panes."""
        for chart in self.panes.charts:
            if chart is not message.chart:
                chart.put_cursor(message.t)
        self._look(replace(self.view, cursor_t=message.t))

    def _look(self, view: View) -> None:
        self.view = view
        self.desk.settings.is_smooth, self.desk.settings.is_timed = view.is_smooth, view.is_timed
        self.show_panes()

    def _focused_pane(self) -> Pane | None:
        focused = self.focused
        return focused if isinstance(focused, Pane) else next(iter(self.panes.every), None)

    def _focused_chart(self) -> Chart | None:
        focused = self.focused
        return focused.chart if isinstance(focused, ChartPane) else next(iter(self.panes.charts), None)
