"""The base of every screen of tuilab: a heading, a body, and the line of keys."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

from textual import on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.content import Content
from textual.events import ScreenResume, ScreenSuspend
from textual.widgets import Input

from tuilab import first_process
from tuilab.errors import TuilabError
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.tui.keys import KEYS, Key
from tuilab.tui.looks.sgr import uncoloured
from tuilab.tui.navigator import Navigator
from tuilab.tui.shown_keys import keys_at
from tuilab.tui.state.session import Session
from tuilab.tui.terminal.toolkit import TerminalScreen
from tuilab.tui.widgets.info_line import Heading
from tuilab.tui.widgets.keybar import KeyBar
from tuilab.tui.widgets.search import Searched


class Page(TerminalScreen[None]):
    """A screen of tuilab.

    A subclass fills the body in `compose_body`. Its `PLACE` says which keys of `keys.py` it has.
    """

    PLACE: ClassVar[str] = ""
    AUTO_FOCUS = ""
    # The screens handle `esc` themselves, and remember that the user left the zoom.
    ESCAPE_TO_MINIMIZE = False
    _was_open = False

    @property
    def is_listed(self) -> bool:
        """Whether the list that the keys act on has been read. Keys wait until it has."""
        return True

    def compose(self) -> ComposeResult:
        self.take_breakpoints()
        title = Content.from_text(f"tuilab  {self.PLACE}", markup=False)
        yield Heading(title, badge=self._badge)
        yield from self.compose_body()
        yield KeyBar(keys_at([self.PLACE], is_read_only=self.desk.is_read_only))

    def on_mount(self) -> None:
        self.watch(self, "focused", self.show_keys)

    def places(self) -> list[str]:
        """Return the places of `keys.py` that apply now, the most specific one first.

        These are the places of the focused widget, of the widgets around it, and of the screen.
        """
        focused = self.focused
        places: list[str] = []
        if isinstance(focused, Searched) and focused.words:
            places.append("searched")
        nodes = focused.ancestors_with_self if focused else [self]
        for node in nodes:
            place = getattr(node, "PLACE", "")
            if place:
                places.append(place)
        return places

    @on(Searched.Asked)
    @on(ScreenSuspend)
    def _show_other_keys(self) -> None:
        self.show_keys()

    def keys_now(self) -> list[Key]:
        """Return the keys that have an effect now."""
        is_typing = isinstance(self.focused, Input)
        idle_keys = self.idle_keys()
        keys = keys_at(self.places(), is_typing=is_typing, is_read_only=self.desk.is_read_only)
        return [key for key in keys if key.key not in idle_keys]

    @property
    def _badge(self) -> Content:
        """The badge of the heading: whether the screens are read-only."""
        if not self.desk.is_read_only:
            return Content("")
        return Content.styled("read-only", "bold $text-warning")

    def idle_keys(self) -> set[str]:
        """Return the keys of this screen that have nothing to act on now."""
        return set()

    def show_keys(self) -> None:
        """Show the keys that work now. If a question covers the screen, these are its keys only."""
        top_screen = self.app.screen
        if top_screen.is_modal:
            self.keybar.show_keys(KEYS[getattr(top_screen, "PLACE", "menu")])
        else:
            self.keybar.show_keys(self.keys_now())

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between the heading and the line of keys."""
        yield from ()

    @on(ScreenResume)
    def _keep_styles(self, event: ScreenResume) -> None:
        """Have Textual apply the styles again, but not when the screen opens.

        When it opens, every widget has just got its styles, and applying them takes as long as
        drawing.
        """
        event.refresh_styles = self._was_open
        self._was_open = True
        self.lab.clear_old_messages(self)
        self.show_keys()

    @property
    def lab(self) -> Navigator:
        """The app, with the methods that a screen may call."""
        return cast(Navigator, self.app)

    @property
    def desk(self) -> Session:
        """The session of the app: its scenarios, its folder of runs and its settings."""
        return self.lab.desk

    @property
    def heading(self) -> Heading:
        return self.query_one(Heading)

    @property
    def keybar(self) -> KeyBar:
        return self.query_one(KeyBar)

    def command(self) -> str:
        """Return the command line that does what this screen does. Every page overrides this."""
        return "tuilab"

    def how_to_leave(self, key: str) -> str:
        """Return a sentence that this key quits, and what then happens to running runs."""
        return f"{key} quits; a running run {self.fate}"

    @property
    def fate(self) -> str:
        """The words for what happens to a run when the user quits."""
        if first_process.is_container_main():
            return "ends with this container"
        return "continues"

    def action_copy_text(self) -> None:
        """Copy the selected text. If no text is selected, leave the key to the next binding."""
        if not self.get_selected_text():
            raise SkipAction
        super().action_copy_text()

    def show_in_pager(self, text: str, place: str = "") -> None:
        """Show a text in the user's pager, and then where the text is kept, if it is on disk."""
        if not self.lab.may_change():  # a pager may open a shell
            return
        message = self.lab.show_in_pager(uncoloured(text))
        if not message and place:
            message = f"kept in {place}"
        if message:
            self.lab.tell(message, is_problem=False)

    @work(thread=True, group="compare")
    def compare_with_reference(self, run_dir: Path) -> None:
        """Compare a run with its scenario's baseline, else its newest earlier comparable run."""
        from tuilab.runs.representative import reference_for

        reference = reference_for(run_dir, self.desk.index)
        if reference is None:
            message = "no run to compare with: no baseline and no earlier successful run"
            self.app.call_from_thread(self.lab.tell, message, is_problem=False)
        else:
            self.app.call_from_thread(self.lab.open_compare, [reference.run_dir, run_dir])

    def export(self, run_dirs: Sequence[Path]) -> None:
        """Write a report about runs, and show where it is."""
        from tuilab.tui.state.export import export

        self.do(partial(export, run_dirs, self.desk.scenarios))

    def do(self, act: Callable[[], str], *, is_refusal_a_problem: bool = True) -> None:
        """Change something in a thread, and show the message that `act` returns, or the error.

        In read-only mode, only show that nothing can be changed.
        """
        if self.lab.may_change():
            self._do(act, is_refusal_a_problem=is_refusal_a_problem)

    @work(thread=True, group="doing")
    def _do(self, act: Callable[[], str], *, is_refusal_a_problem: bool) -> None:
        """Call `act` in a thread, then show its message, or its TuilabError.

        With `is_refusal_a_problem=False`, the error is shown as a plain message.
        """
        is_problem = False
        try:
            message = act()
        except TuilabError as problem:
            message = str(problem)
            is_problem = is_refusal_a_problem
        self.app.call_from_thread(self.say_done, message, is_problem=is_problem)

    @work(group="question")
    async def stop(self, run_dir: Path, name: str, state: str) -> None:
        """Ask the user, then stop a run. If the run is stopping already, kill its processes.

        If the run is not running, show its state instead.
        """
        from tuilab.engine import launch
        from tuilab.tui.widgets.question import StopQuestion

        if state not in RUNNING_STATES:
            self.lab.tell(f"this run is not running: {state}", is_problem=False)
            return
        question = StopQuestion(name, state, self._stop_of_sweep(run_dir))
        if await self.app.push_screen_wait(question):
            stop_run = partial(launch.stop, run_dir, at_once=state == RunState.STOPPING)
            self.do(stop_run, is_refusal_a_problem=False)

    def _stop_of_sweep(self, run_dir: Path) -> str:
        """Return the command that stops the whole sweep of a run; empty if it belongs to none."""
        from tuilab.runs.command_line import hint

        sweep = self.desk.index.entry(run_dir.name).sweep
        if not sweep:
            return ""
        return hint(self.desk.root, "stop", sweep)

    def say_done(self, message: str, *, is_problem: bool) -> None:
        """Show the outcome of a change."""
        self.lab.tell(message, is_problem=is_problem)

    def action_copy_command(self) -> None:
        """Copy the command line that does what this screen does."""
        self.lab.copy(self.command())
