"""The terminal application. It opens the screens and handles the keys that work everywhere."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.actions import ActionParseResult
from textual.app import SuspendNotSupported
from textual.dom import DOMNode
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input

from tuilab import first_process
from tuilab.errors import TuilabError
from tuilab.runs import store
from tuilab.runs.run_name import RunName, is_of_command
from tuilab.text.display import plural, show
from tuilab.tui.keys import READ_ONLY, bindings
from tuilab.tui.looks import themes
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.screens.page import Page
from tuilab.tui.shown_keys import is_change
from tuilab.tui.state import settings
from tuilab.tui.state.session import Session, waits
from tuilab.tui.terminal import alerts, clipboard, editor
from tuilab.tui.terminal.delayed_call import later
from tuilab.tui.terminal.toolkit import TerminalApp, TerminalPalette

if TYPE_CHECKING:
    from textual.command import Provider

    from tuilab.catalogue.scenario import Value
    from tuilab.drawings.symbols import Symbols
    from tuilab.engine.messages import RunOrder
    from tuilab.tui.navigator import Navigator

_ENDS_S = 2.0  # between two checks whether a run has ended
# Between two calls of `bury`. Code that started a process itself has reaped it within this time.
_ORPHANS_S = 5.0


def _commands() -> "type[Provider]":
    from tuilab.tui.palette import Commands  # imported here: the first picture needs no palette

    return Commands


class TuilabApp(TerminalApp[int]):
    """The application. It opens the screens, and each screen decides what it shows."""

    TITLE = "tuilab"
    CSS_PATH = "tuilab.tcss"
    BINDINGS = bindings("everywhere")
    COMMANDS = {_commands}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        desk: Session,
        orders: "Sequence[RunOrder]" = (),
        show: Path | None = None,
        *,
        is_replay: bool = False,
    ) -> None:
        super().__init__()
        self.desk = desk
        self._first_orders = list(orders)
        self._first_run = show
        self._is_first_replay = is_replay
        # The runs started here that are running or queued. The app shows them one after another.
        self._shown_in_turn: list[Path] = []
        shows_command = show is not None and is_of_command(show.name)
        # The first time that the user goes back to the Lab, it goes to the form of the command.
        self._goes_to_command = shows_command or any(order.command for order in orders)
        self.was_interrupted = False  # by SIGINT, SIGTERM or SIGQUIT
        self._alerted: set[str] = set()
        self._message_screen: Screen[Any] | None = None  # that was open at the last message
        for own_theme in themes.OURS:
            self.register_theme(own_theme)
        theme = desk.settings.theme
        if theme not in themes.NAMES:
            theme = themes.NAMES[0]
        self.theme = theme

    def on_mount(self) -> None:
        # A file that the user named may be in none of the folders.
        for order in self._first_orders:
            if order.command is None:  # the script of a command is not a scenario
                self.desk.take_file(order.path)
        self.desk.settings.scenario = self._first_scenario() or self.desk.settings.scenario
        self.push_screen(LabPage())
        self.set_interval(_ENDS_S, self._look_for_ends)
        if os.getpid() == 1:
            self.set_interval(_ORPHANS_S, first_process.Orphans().bury)
        if self._first_orders:
            self.run_orders(self._first_orders)
        if self._first_run:
            self.open_run(self._first_run, is_replay=self._is_first_replay)

    def _first_scenario(self) -> str:
        """Return the scenario of the first run, at which the Lab opens; empty without a run."""
        if self._first_orders:
            return self._first_orders[0].scenario
        if self._first_run:
            return RunName(self._first_run.name).scenario
        return ""

    # ---- read-only mode

    async def run_action(
        self,
        action: "str | ActionParseResult",
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action of a key, a click or the palette, unless read-only mode forbids it.

        A forbidden action counts as done, so that no other binding of the key is tried.
        """
        name = action if isinstance(action, str) else action[1]
        if is_change(name) and not self.may_change():
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def may_change(self) -> bool:
        """Return whether the user may start, stop, change or write something.

        In read-only mode, show the user a message that nothing can be changed.
        """
        if self.desk.is_read_only:
            self.tell(READ_ONLY, is_problem=False)
        return not self.desk.is_read_only

    # ---- screens

    def run_orders(self, orders: "list[RunOrder]") -> None:
        """Start runs, and show each of them while it is running.

        Open the first run at once. If a run that was started here is still running and one of the
        new runs has to wait for its turn, open nothing and show a message about the queue. If a run
        cannot be started, show why, and leave out the runs after it.
        """
        if not self.may_change():
            return
        has_to_wait = self.desk.is_running() and any(waits(order) for order in orders)
        started: list[Path] = []
        try:
            for order in orders:
                started.append(self.desk.start(order))
        except TuilabError as problem:
            self.tell(str(problem))
        self._shown_in_turn += started
        if started and has_to_wait:
            from tuilab.runs import queue  # imported here: it would delay the first picture

            step = "Q shows the queue"
            if queue.is_paused(self.desk.root):
                step = "the queue is paused (press Q)"
            self.tell(f"{plural(len(started), 'run')} queued; {step}", is_problem=False)
        elif started:
            self.open_run(started[0])
        self._show_next()

    def _show_next(self) -> None:
        """Show the next run that was queued here, if the user still watches the run that has ended.

        While such runs remain, check again every second.
        """
        if not self._shown_in_turn:
            return
        if not self.desk.is_going_on(self._shown_in_turn[0]):
            ended_run = self._shown_in_turn.pop(0)
            is_live = getattr(self.screen, "is_live", False)
            is_watched = is_live and getattr(self.screen, "run_dir", None) == ended_run
            if self._shown_in_turn and is_watched:
                self.show_instead(self._shown_in_turn[0])
        if self._shown_in_turn:
            later(self, 1.0, self._show_next)

    def open_run(self, run_dir: Path, *, is_replay: bool = False) -> None:
        """Show a run: live if it is running, else its record. With `is_replay`, replay it.

        If it cannot be read, show why.
        """
        from tuilab.tui.screens.run import RunPage

        try:
            self.push_screen(RunPage(run_dir, is_replay=is_replay))
            self.desk.watched[run_dir.name] = None
        except TuilabError as problem:
            self.tell(str(problem))

    def show_instead(self, run_dir: Path) -> None:
        """Replace the shown run by another one, unless a question or another screen covers it."""
        from tuilab.tui.screens.run import RunPage

        if isinstance(self.screen, RunPage):
            self.pop_screen()
            self.open_run(run_dir)

    def open_form(
        self, scenario: str, values: "dict[str, Value]", *, is_quick: bool = False
    ) -> None:
        """Go back to the Lab screen, and fill in the form of a scenario."""
        self.action_open_lab()
        if isinstance(self.screen, LabPage):
            self.screen.fill(scenario, values, is_quick=is_quick)

    def open_next_lesson(self) -> None:
        """Go back to the Lab screen, to the first lesson that the user has not done."""
        self.action_open_lab()
        if isinstance(self.screen, LabPage):
            self.screen.action_next_lesson()

    def open_compare(self, run_dirs: list[Path]) -> None:
        """Open the Compare screen for some runs."""
        from tuilab.tui.screens.compare import ComparePage

        self.push_screen(ComparePage(run_dirs))

    def action_open_lab(self) -> None:
        """Go back to the Lab screen, which is below all others."""
        while len(self.screen_stack) > 2:
            self.pop_screen()

    def action_open_history(self) -> None:
        from tuilab.tui.screens.history import HistoryPage

        self._open_once(HistoryPage)

    def action_open_box(self) -> None:
        from tuilab.tui.screens.box import BoxPage

        self._open_once(BoxPage)

    def action_open_doctor(self) -> None:
        from tuilab.tui.screens.command import DoctorPage

        self._open_once(DoctorPage)

    def action_open_facts(self) -> None:
        from tuilab.tui.screens.command import DoctorPage

        self.push_screen(DoctorPage(["doctor", "--all"]))

    def action_open_advice(self) -> None:
        from tuilab.tui.screens.command import AdvisePage

        self._open_once(AdvisePage)

    def action_open_calibration(self) -> None:
        from tuilab.tui.screens.command import CalibratePage

        self._open_once(CalibratePage)

    def _open_once(self, kind: type[Page]) -> None:
        """Open a screen unless it is already on top: the palette offers a screen also on itself."""
        if not isinstance(self.screen, kind):
            self.push_screen(kind())

    def action_open_queue(self) -> None:
        from tuilab.tui.screens.queue import QueuePage

        self._open_once(QueuePage)

    def action_open_help(self) -> None:
        from tuilab.tui.screens.help import HelpPage

        if not isinstance(self.screen, HelpPage):
            self.push_screen(HelpPage(getattr(self.screen, "PLACE", "")))

    def action_step_back(self) -> None:
        """Close the screen. The Lab screen stays open, because no screen is below it."""
        if len(self.screen_stack) > 2:
            closed_screen = self.screen
            self.pop_screen()
            if self._goes_to_command and isinstance(self.screen, LabPage):
                self._goes_to_command = False
                self.screen.go_to_command(getattr(closed_screen, "scenario", None))

    # ---- what works everywhere

    @property
    def symbols(self) -> "Symbols | None":
        """The characters that the user chose for drawings; None if the locale decides."""
        from tuilab.drawings import symbols

        for symbol_set in symbols.ALL:
            if symbol_set.name == self.desk.settings.symbols:
                return symbol_set
        return None

    def tell(self, text: str, *, is_problem: bool = True) -> None:
        """Show a sentence at the edge of the screen, unless it is shown already."""
        self._message_screen = self.screen
        message = show(text)
        if self.is_notification_shown(message):
            return
        severity: SeverityLevel = "error" if is_problem else "information"
        # One message of each severity at a time: more of them would cover the screen.
        self.remove_notifications(severity)
        self.notify(message, severity=severity, markup=False)

    def clear_old_messages(self, page: Screen[None]) -> None:
        """Remove the messages of other screens when the user comes to a page."""
        if self._message_screen is not page:
            self.clear_notifications()

    def alert(self, text: str) -> None:
        """Call the user, who may look elsewhere, and do so only once with the same text."""
        if text in self._alerted:
            return
        sequences = alerts.alert(text)
        if not self._alerted:
            sequences = alerts.SAVE_TITLE + sequences
        self.write_to_terminal(sequences)
        self._alerted.add(text)

    def _look_for_ends(self) -> None:
        """Call the user when a run that was started here has ended, whichever screen is open."""
        for entry in self.desk.ended():
            self.alert(f"{entry.name} {store.short_id(entry.run)} {entry.state}")

    def copy(self, text: str) -> None:
        """Copy a text, and show how it was really copied."""
        self.keep_copied(text)
        self.tell(clipboard.copy(text, self.write_to_terminal), is_problem=False)

    def edit(self, path: str, line: int = 1) -> bool:
        """Open a file in the user's editor and wait for its end. Return whether the editor ran."""
        if not self.may_change():
            return False
        try:
            words = editor.command(path, line)
            with self.suspend():
                code = self.foreground.run(words)
        except TuilabError as problem:
            self.tell(str(problem))
            return False
        except (SuspendNotSupported, OSError) as problem:
            self.tell(f"cannot open the editor: {problem}")
            return False
        if code:
            self.tell(f"{Path(words[0]).name} exited with code {code}")
        return True

    def copy_to_clipboard(self, text: str) -> None:
        """Copy the text that is selected with the mouse or in a field.

        If nothing is selected, the user's clipboard stays as it is.
        """
        if text:
            self.copy(text)

    def action_help_quit(self) -> None:
        """Show which key quits, because Ctrl-C does not."""
        key = "^q" if isinstance(self.focused, Input) else "q"
        sentence = f"esc closes this; then {key} quits"
        if isinstance(self.screen, Page):
            sentence = self.screen.how_to_leave(key)
        self.tell(sentence, is_problem=False)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, TerminalPalette):
            self.push_screen(TerminalPalette(id="--command-palette"))

    async def action_press(self, key: str) -> None:
        """Do what another key does on the focused widget and its screen."""
        await self.press_now(key)

    def action_leave(self) -> None:
        """Quit. If that would stop running runs, ask the user first."""
        running = self.desk.going_on() if first_process.is_container_main() else []
        if not running:
            self.exit(0)
            return
        from tuilab.tui.widgets.question import ConfirmDialog

        names = [f"{entry.name} {store.short_id(entry.run)}" for entry in running]
        warning = "This container stops when the screens close."
        question = ConfirmDialog("Quit and stop these runs?", names, warning)
        self.push_screen(question, self._leave_if)

    def _leave_if(self, is_sure: bool | None) -> None:
        if is_sure:
            self.exit(0)

    def action_next_theme(self) -> None:
        next_index = 0
        if self.theme in themes.NAMES:
            next_index = themes.NAMES.index(self.theme) + 1
        self.choose_theme(themes.NAMES[next_index % len(themes.NAMES)])

    def choose_theme(self, name: str) -> None:
        """Switch to a theme, and show its name."""
        self.theme = name
        self.desk.settings.theme = name
        self.tell(f"theme {name}", is_problem=False)

    def action_next_symbols(self) -> None:
        """Draw everything with the next set of characters, and show its name."""
        from tuilab.drawings import symbols
        from tuilab.tui.widgets.drawing import Drawing

        index = symbols.ALL.index(self.symbols) if self.symbols else 0
        next_set = symbols.ALL[(index + 1) % len(symbols.ALL)]
        self.desk.settings.symbols = next_set.name
        for screen in self.screen_stack:
            for drawing in screen.query(Drawing):
                drawing.redraw()
        self.tell(f"drawn with {next_set.name} characters", is_problem=False)

    def action_reset_layout(self) -> None:
        """Reset all settings but the chosen scenario, and the layout of the current screen.

        The hint for new users is not shown again.
        """
        self.desk.settings = settings.Settings(
            has_seen_hint=True, scenario=self.desk.settings.scenario
        )
        self.theme = self.desk.settings.theme
        reset = getattr(self.screen, "reset_layout", None)
        if reset is not None:
            reset()
        self.tell("layout and settings are reset", is_problem=False)

    def action_redraw(self) -> None:
        self.redraw()

    def heed_signal(self, number: int) -> None:
        """Quit cleanly. SIGHUP only closes the screens; the other signals interrupt them."""
        if number != signal.SIGHUP:
            self.was_interrupted = True
        self.exit(0)

    def on_unmount(self) -> None:
        if self._alerted:
            self.write_to_terminal(alerts.RESTORE_TITLE)
        self.desk.leave()
        if not self.desk.is_read_only:
            settings.save(self.desk.settings)


if TYPE_CHECKING:
    # A type checker reports here if the app lacks a method that the screens call.
    _navigator: "type[Navigator]" = TuilabApp
