"""The Run screen: a run as it happens, or its record; both are the same."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.events import Resize

from tuilab import launch, store
from tuilab.drawings.units import clock
from tuilab.errors import TuilabError
from tuilab.headless import progress_words
from tuilab.text import show
from tuilab.tui.following import Following
from tuilab.tui.keys import bindings
from tuilab.tui.marks import plain, state_words
from tuilab.tui.playback import Playback
from tuilab.tui.screens.page import Page
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.claims import ClaimsPane
from tuilab.tui.widgets.notes import NotesPane
from tuilab.tui.widgets.output import OutputPane
from tuilab.tui.widgets.pane import Pane, View
from tuilab.tui.widgets.pictures import PicturesPane
from tuilab.tui.widgets.series import ChartPane, MemoryPane, SeriesPane, names_of
from tuilab.tui.widgets.timings import TimingsPane, blocks_of

_MOST_SERIES = 6
_OLD_S = 2.0  # data older than this is told to be
_SLOW_S = 2.0  # between two pictures on a slow link, so that keys are answered in between
_GLANCE_S = 0.4  # between two pictures while a long record is read
_SOON_S = 0.03  # between two looks for the first point
_EAGER_S = 5.0  # that it is looked for: not every scenario has one


class RunPage(Page):
    """Panes side by side, as many as the run has something to show for."""

    PLACE = "run"
    BINDINGS = bindings("run")
    DEFAULT_CSS = """
    RunPage #panes { layout: grid; grid-size: 2; height: 1fr; overflow-y: auto; scrollbar-size: 1 1; }
    """

    def __init__(self, run_dir: Path, *, is_replay: bool = False) -> None:
        super().__init__()
        self.run_dir = run_dir
        self.following: Following | Playback = Playback(run_dir) if is_replay else Following(run_dir)
        self.view = View(is_log=None)
        self._panes: dict[str, Pane] = {}
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
        yield Container(id="panes")

    def on_mount(self) -> None:
        self._await_first_point(time.monotonic() + _EAGER_S)
        self.set_interval(1 / self.desk.fps, self._turn)

    def on_unmount(self) -> None:
        self.following.close()

    def command(self) -> str:
        return f"tuilab attach {store.short_id(self.run_dir.name)}"

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
        """Show what there is in the panes, and make those that are missing."""
        self._shown_at = time.monotonic()
        self._has_news = False
        wanted = self._wanted()
        if list(wanted) != list(self._panes):
            self._arrange(wanted)
        for pane in self._panes.values():
            pane.show(self.following, self.view)

    def _wanted(self) -> dict[str, int]:
        """Return the names of the panes in their order, each with the columns that it spans."""
        summary = self.following.summary
        left = [f"series {name}" for name in names_of(summary)[:_MOST_SERIES]]
        left += ["timings"] if blocks_of(summary) else []
        left += ["pictures"] if summary.images else []
        left += ["notes"] if summary.texts or (self.following.is_over and self._try_next()) else []
        columns = self._columns()
        order = [*left[:1], "memory", *left[1:2], "claims", *left[2:]]
        spans = dict.fromkeys(order, 1)
        if free := -len(order) % columns:
            spans["claims" if columns == 2 and len(left) < 2 else order[-1]] += free
        return {**spans, "output": columns}

    def _columns(self) -> int:
        width = self.size.width
        return 1 if width < 70 else 2 if width < 170 else 3

    def _arrange(self, wanted: dict[str, int]) -> None:
        """Put the panes in their places; those that there were keep what they show."""
        holder = self.query_one("#panes")
        for name in self._panes.keys() - wanted.keys():
            self._panes.pop(name).remove()
        for name, span in wanted.items():
            pane = self._panes.get(name) or self._make(name)
            pane.styles.column_span = span
            if pane.parent is None:
                holder.mount(pane)
            self._panes[name] = pane
        self._panes = {name: self._panes[name] for name in wanted}
        order = {pane: place for place, pane in enumerate(self._panes.values())}
        holder.sort_children(key=lambda child: order.get(child, len(order)))  # type: ignore[call-overload]
        self._fit_rows()

    def _make(self, name: str) -> Pane:
        kind, _, rest = name.partition(" ")
        if kind == "series":
            return SeriesPane(rest)
        if kind == "notes":
            return NotesPane(self._try_next())
        if kind == "claims":
            return ClaimsPane(self.desk.predictions.get(self.run_dir.name, ""))
        return {"memory": MemoryPane, "timings": TimingsPane, "pictures": PicturesPane, "output": OutputPane}[kind]()

    def _fit_rows(self) -> None:
        """Share the height among the rows, each at least as high as a chart needs; what does not fit is scrolled to."""
        holder = self.query_one("#panes")
        columns = self._columns()
        holder.styles.grid_size_columns = columns
        cells = sum(int(pane.styles.column_span or 1) for pane in list(self._panes.values())[:-1])
        rows = -(-cells // columns)
        height = max(self.size.height - 2, 1)
        output = 6 if height < 30 else 9
        room = (height - output) // max(rows, 1)
        holder.styles.grid_rows = " ".join([*["1fr" if room >= 8 else "9"] * rows, str(output)])

    def on_resize(self, event: Resize) -> None:
        if self._panes:
            self._arrange(self._wanted())

    def _try_next(self) -> str:
        run = self.following.summary.run
        found = [s for s in self.desk.scenarios if run and s.id == run.scenario]
        return found[0].sections.get("Try next", "") if found else ""

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
        if self.maximized is not None:
            self.minimize()
        elif pane := self._focused_pane():
            self.maximize(pane, container=False)

    def action_toggle_log(self) -> None:
        if chart := self._focused_chart():
            self._look(replace(self.view, is_log=not chart.is_log))

    def action_toggle_smooth(self) -> None:
        self._look(replace(self.view, is_smooth=not self.view.is_smooth))

    def action_toggle_time(self) -> None:
        self._look(replace(self.view, is_timed=not self.view.is_timed))

    def action_next_bad(self) -> None:
        if not any(chart.jump_to_bad() for chart in self._charts()):
            self.lab.tell("every value so far is finite", is_problem=False)

    def action_move_cursor(self, columns: int) -> None:
        if chart := self._focused_chart():
            chart.move_cursor(columns)

    def action_zoom(self, factor: float) -> None:
        for chart in self._charts():
            chart.zoom(factor)

    def action_again(self) -> None:
        """Back to the form of this scenario, with the values of this run."""
        run = self.following.summary.run
        if run is not None:
            self.lab.open_form(run.scenario, dict(run.params), is_quick=run.quick)

    def reset_layout(self) -> None:
        """Look at the run as at first."""
        for chart in self._charts():
            chart.reset()
        self._look(View())

    def on_chart_cursor_moved(self, message: Chart.CursorMoved) -> None:
        """One cursor over all panes."""
        for chart in self._charts():
            if chart is not message.chart:
                chart.put_cursor(message.t)

    def _look(self, view: View) -> None:
        self.view = view
        self.show_panes()

    def _charts(self) -> list[Chart]:
        return [pane.chart for pane in self._panes.values() if isinstance(pane, ChartPane)]

    def _focused_pane(self) -> Pane | None:
        focused = self.focused
        return focused if isinstance(focused, Pane) else next(iter(self._panes.values()), None)

    def _focused_chart(self) -> Chart | None:
        focused = self.focused
        return focused.chart if isinstance(focused, ChartPane) else next(iter(self._charts()), None)


class Cost:
    """What the screens themselves cost: processor time and bytes sent, over the last few seconds."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._cpu_s = time.process_time()
        self._bytes = 0
        self._words = ""

    def words(self, bytes_sent: int) -> str:
        """Return the cost in words; they change every few seconds."""
        now = time.monotonic()
        if now - self._since > 3:
            cpu_s = time.process_time()
            share = (cpu_s - self._cpu_s) / (now - self._since)
            rate = (bytes_sent - self._bytes) / (now - self._since) / 1000
            self._words = f"ui {share:.0%} {rate:.1f} kB/s"
            self._since, self._cpu_s, self._bytes = now, cpu_s, bytes_sent
        return self._words
