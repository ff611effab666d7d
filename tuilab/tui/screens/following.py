"""A page that follows a run: it reads new records, or the whole record, and shows them.

`RunSource` reads the run, the panes and `headline` show it, and `ViewController` keeps the view
that the user chose.
"""

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Resize

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import TuilabError
from tuilab.record.events import Identity
from tuilab.record.finding_words import company_words
from tuilab.record.gpus.own_gpus import own_gpus
from tuilab.record.states import RunState
from tuilab.runs import store
from tuilab.runs.earlier_verdicts import describe_earlier_verdicts
from tuilab.tui.looks.marks import to_content
from tuilab.tui.screens.page import Page
from tuilab.tui.state.lesson_card import LessonCard, make_lesson_card
from tuilab.tui.state.next_steps import NextSteps, next_steps
from tuilab.tui.state.other_processes import OtherProcesses
from tuilab.tui.state.other_runs.live_runs import LiveRuns
from tuilab.tui.state.run_source import GONE, WAS_DELETED, LiveRun, Replay, RunSource
from tuilab.tui.terminal.delayed_call import later
from tuilab.tui.widgets.info_line import InfoLine
from tuilab.tui.widgets.run import headline
from tuilab.tui.widgets.run.others import OtherRuns
from tuilab.tui.widgets.run.panes import ChartsLine, Panes
from tuilab.tui.widgets.run.view_controller import ViewController

_SOON_S = 0.03  # between two polls for the first point
_COMPANY_S = 2.0
_WARNING_S = 1.0
_LIVE_RUNS_S = 2.0  # between two polls for other running runs
DELETED = f"this run {WAS_DELETED}"
_KEYS_S = 0.01  # a pause before more is read, in which keys are answered
_EAGER_S = 5.0  # the longest wait for a first point: not every scenario logs one


class FollowingPage(Page):
    """A page of panes: one for each kind of data that the run has."""

    def __init__(self, run_dir: Path, *, is_replay: bool = False) -> None:
        super().__init__()
        self.run_dir = run_dir
        self.source: RunSource = Replay(run_dir) if is_replay else LiveRun(run_dir)
        self._cost = headline.Cost()
        self._other_processes = OtherProcesses()
        # By claim: how often it was judged on this machine before. None until the run has ended.
        self._earlier_verdicts: dict[str, str] | None = None
        self._lesson_card: LessonCard | None = None
        self._is_reading_on = False
        self._is_state_asked = False
        self._is_queued = False
        self._is_laid_out = False  # whether the pane of the last time is restored, or need not be
        self._was_going_on = False
        self._had_bad = False
        self._was_deleted = False

    @property
    def is_live(self) -> bool:
        """Whether this page shows a run as it happens, not a replay."""
        return self.source.is_live

    @property
    def has_bad(self) -> bool:
        return any(series.bad for series in self.source.summary.series.values())

    @property
    def scenario(self) -> Scenario | None:
        """The scenario of the run, as its file is now; None if no such scenario exists any more."""
        run = self.source.summary.run
        if run is None:
            return None
        return self.desk.scenario_of(run, self.run_dir)

    def next_steps(self) -> NextSteps:
        """Return what the lesson says to try; in read-only mode, without options to try."""
        steps = next_steps(self.source.summary, self.scenario)
        if self.desk.is_read_only:
            # The keys of the options open a form, which read-only mode cannot use.
            return replace(steps, options=())
        return steps

    def lesson_card(self) -> LessonCard | None:
        """Return the card of a finished lesson for a user who learns; None for other runs.

        A user who typed a prediction learns, and so does one who opened the screens with `learn`.
        """
        if self._lesson_card is None and self.source.is_over and self.source.is_caught_up:
            summary = self.source.summary
            is_learning = self.desk.is_learning or (
                summary.run is not None and summary.run.prediction is not None
            )
            if is_learning and summary.state == RunState.SUCCEEDED and self.scenario is not None:
                self._lesson_card = make_lesson_card(summary, self.scenario, self.desk.scenarios)
        return self._lesson_card

    def compose_body(self) -> ComposeResult:
        self.panes = Panes()
        self.views = ViewController(self.panes, self.desk, self.show_panes)
        self.charts_line = ChartsLine()
        self.queue_line = InfoLine()
        yield self.queue_line
        self.warning = InfoLine()
        yield self.warning
        self.users_line = InfoLine(is_short=True)
        yield self.users_line
        live_runs = LiveRuns(self, self.desk.index, self.run_dir)
        self.other_runs = OtherRuns(live_runs, self.panes, self.views, self._tell)
        yield self.charts_line
        yield self.panes

    def on_mount(self) -> None:
        self._await_first_point(time.monotonic() + _EAGER_S)
        self.set_interval(1 / self.desk.fps, self.turn)
        self.set_interval(_COMPANY_S, self._look_for_company)
        self.set_interval(_LIVE_RUNS_S, self._look_around)
        self.set_interval(_WARNING_S, self._look_for_warning)

    def on_screen_resume(self) -> None:
        self.other_runs.look()

    def on_unmount(self) -> None:
        self.source.close()
        self.panes.overlays.close()

    def on_resize(self, event: Resize) -> None:
        self.panes.fit()
        self._show_heading()

    def on_live_runs_seen(self, message: LiveRuns.Seen) -> None:
        self.other_runs.take(message)
        self._show_heading()
        self.show_keys()

    def _await_first_point(self, deadline: float) -> None:
        """Poll often for the first point: a user who has just started a run waits for it."""
        self.turn()
        if self.source.summary.series or self.source.is_over:
            return
        if time.monotonic() < deadline:
            later(self, _SOON_S, partial(self._await_first_point, deadline))

    def turn(self) -> None:
        """Read new records and show them, unless a long record is being read already."""
        if not self._is_reading_on:
            self._read_on()

    def _read_on(self) -> None:
        """Read new records and show them.

        Do nothing if another screen is on top, the run was deleted, or the display is frozen. If a
        run has ended and nothing is new, only the note is shown again.
        """
        source = self.source
        self._is_reading_on = False
        if not self.is_current or self._is_gone() or source.is_frozen:
            return
        try:
            source.has_news |= source.read() | self.other_runs.read()
        except TuilabError as problem:
            self.lab.tell(str(problem))
            source.is_frozen = True
            return
        is_more_read = not (source.is_caught_up and self.other_runs.is_caught_up)
        if is_more_read:
            self._read_on_soon()
        self._call_user()
        if self.lab.is_stalled:
            return
        is_link_slow = self.lab.is_link_slow
        if source.is_picture_fresh(is_link_slow=is_link_slow, is_more_read=is_more_read):
            return
        if source.has_news or not source.is_over:
            self._show_heading()
        if source.has_news:
            self.show_panes()
        self.show_note()

    def _read_on_soon(self) -> None:
        """Read the next portion of a long record after the keys that were pressed meanwhile.

        A slow link to the terminal does not delay this reading.
        """
        self._is_reading_on = True
        pause_s = _KEYS_S if self.lab.has_pending_keys else 0.0
        later(self, pause_s, self._read_on)
        if isinstance(self.source, LiveRun) and not self.source.state and not self._is_state_asked:
            self._is_state_asked = True
            self._ask_for_state(self.source)

    @work(thread=True, group="state")
    def _ask_for_state(self, run: LiveRun) -> None:
        """Read from the end of the record how the run ended, or that it is still running."""
        state = self.desk.index.entry(self.run_dir.name).state
        if not run.is_caught_up:
            run.state = state

    def _is_gone(self) -> bool:
        """Return whether the run was deleted, and show the user a message the first time.

        The data that was read before stays on the screen.
        """
        if not self._was_deleted and not os.path.lexists(self.run_dir):
            self._was_deleted = True
            self.lab.tell(DELETED)
            self._show_end()
        return self._was_deleted

    def _show_end(self) -> None:
        """Show that no more data will come from a run that was deleted while it was running."""
        if isinstance(self.source, LiveRun) and not self.source.is_over:
            self.source.state = GONE
            self._show_heading()
            self.show_panes()
            self.show_note()

    def _look_around(self) -> None:
        if self.is_current:
            self.other_runs.look_again()

    def _look_for_warning(self) -> None:
        """Show why the run cannot be recorded, if so, and the place of a queued run in the queue.

        Do this also while the display is frozen.
        """
        if not self.is_current:
            return
        warning = Content("")
        if self.source.warning:
            warning = to_content(self.source.warning, 600, "$text-error")
        self.warning.show(warning)
        if self._is_queued:
            self._find_place()

    def _look_for_company(self) -> None:
        """Show which other processes use the GPUs of the run or keep cores busy.

        The record of a run with GPUs has the users of the GPUs. For other runs, poll the cores, but
        only while the run is running and this screen shows it live and not frozen.
        """
        source = self.source
        run = source.summary.run
        if own_gpus(source.summary):
            self._show_users(company_words(source.summary))
        elif source.is_over:
            self._show_users("")
        elif run is not None and self.is_live and self.is_current and not source.is_frozen:
            self._see_cores(run.supervisor)

    @work(thread=True, exclusive=True, group="live")
    def _see_cores(self, supervisor: Identity) -> None:
        users = self._other_processes.describe(supervisor)
        self.app.call_from_thread(self._show_users, users)

    def _show_users(self, users: str) -> None:
        """Show who else uses the GPU of the run, or keeps cores busy."""
        if not users:
            self.users_line.show(Content(""))
            return
        lead = ("also running: ", "bold $text-warning")
        text = to_content(users, 300, "$text-warning")
        self.users_line.show(Content.assemble(lead, text))

    @work(thread=True, exclusive=True, group="queue")
    def _find_place(self) -> None:
        """Find the place of a queued run in the queue, in a thread, and show it."""
        # imported here: only a queued run needs it
        from tuilab.engine.queue_turn import where_it_waits

        place = where_it_waits(self.run_dir)
        self.app.call_from_thread(self._show_place, place)

    def _show_place(self, place: str) -> None:
        """Show the place of the run in the queue, and the runs before it."""
        if not self._is_queued or not place:
            self.queue_line.show(Content(""))
            return
        text = to_content(place, 600)
        key = ("  Q", "bold $text-accent")
        self.queue_line.show(Content.assemble(text, key, (" queue", "$text-muted")))

    def _call_user(self) -> None:
        """Call the user at the first NaN or Inf of a watched run, and at its end."""
        source = self.source
        if not self.is_live or not source.is_caught_up:
            return
        run = source.summary.run
        name = self.run_dir.name
        if run is not None:
            name = f"{run.topic}/{run.scenario} {store.short_id(self.run_dir.name)}"
        if self._was_going_on and self.has_bad and not self._had_bad:
            self.lab.alert(f"{name} has a NaN or Inf")
        if self._was_going_on and source.is_over:
            self.lab.alert(f"{name} {source.state}")
        self._was_going_on = not source.is_over
        self._had_bad = self.has_bad

    def _show_heading(self) -> None:
        """Show the run, its state and its progress in the heading.

        When the run becomes queued, its place in the queue is looked up. When it is queued no
        longer, the line with the place disappears.
        """
        was_queued = self._is_queued
        self._is_queued = self.is_live and self.source.state == RunState.QUEUED
        if self._is_queued and not was_queued:
            self._find_place()
        elif not self._is_queued:
            self.queue_line.show(Content(""))
        is_running = self.is_live and not self.source.is_over
        others_words = self.other_runs.words(is_going_on=is_running)
        width = self.size.width - self.heading.gutter.width
        parts = headline.heading_of(self.run_dir, self.source, width, others_words)
        self.heading.show(*parts)

    def show_panes(self) -> None:
        """Show the run in the panes as the user chose to view it; at its end, what to try next."""
        is_over = self.source.is_over
        steps = NextSteps()
        earlier_verdicts: dict[str, str] = {}
        card = None
        if is_over:
            card = self.lesson_card()
            steps = self.next_steps()
            earlier_verdicts = self._find_earlier_verdicts()
        run = self.source.summary.run
        if not self.views.scenario and run is not None:
            self.views.recall(run.scenario)
            self.charts_line.recall(self.views.view.words)
        self.panes.show(self.source, self.views.view, steps, earlier_verdicts, card)
        self.charts_line.show(self.panes.names, self.views.view, self.panes.grid_size.most_charts)
        if self.source.is_caught_up and not self.views.go_to_failure() and not self._is_laid_out:
            self._is_laid_out = self.views.restore_pane() or is_over
        # Called last, because the time until the next picture counts from here: a picture of many
        # lines takes long, and reading has to continue before the next one.
        self.source.note_picture()

    def _find_earlier_verdicts(self) -> dict[str, str]:
        """Return for each claim how often it was judged before. This is looked up only once."""
        if self._earlier_verdicts is None:
            self._earlier_verdicts = describe_earlier_verdicts(
                self.run_dir, self.source.summary, self.desk.index
            )
        return self._earlier_verdicts

    def show_note(self) -> None:
        """Show next to the keys whether the display is frozen or zoomed, and what tuilab costs."""
        is_frozen = self.source.is_frozen
        is_link_slow = self.lab.is_link_slow
        costs: list[Content] = []
        if not is_frozen and not self.source.is_over:
            for cost in self._cost.words(self.lab.bytes_sent):
                costs.append(Content.styled(cost, "$text-muted"))
        note = headline.note_of(self.source, is_frozen=is_frozen, is_link_slow=is_link_slow)
        if self.maximized is not None:
            note = Content.styled("zoomed  ", "$text-accent") + note
        self.keybar.note(note, *costs)
        self.show_keys()

    def _tell(self, message: str, is_problem: bool) -> None:
        self.lab.tell(message, is_problem=is_problem)
