"""The pages that run a subcommand and show what it prints: Doctor, Advise and Calibrate."""

import shlex
from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.content import Content

from tuilab.judging.calibration import USUAL_MINUTES
from tuilab.probes.gpu.is_present import is_gpu_there
from tuilab.runs import queue
from tuilab.runs.command_line import root_option
from tuilab.storage import places
from tuilab.text.display import plural
from tuilab.text.words import clock
from tuilab.tui.keys import Key, bindings
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.looks.sgr import coloured
from tuilab.tui.screens.page import Page
from tuilab.tui.state.subcommand import Subcommand
from tuilab.tui.widgets.question import ConfirmDialog
from tuilab.tui.widgets.search import SearchedLines

_POLL_S = 0.1
_DEVICES = {"cpu": "this machine", "cuda": "the GPU with the most free memory"}


class Printout(SearchedLines):
    """Shows what a subcommand has printed, in the colours of the theme."""

    PLACE: ClassVar[str] = "printed text"
    DEFAULT_CSS = """
    Printout { padding: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="printout")
        self._text = ""

    def show(self, text: str, *, from_top: bool = False) -> None:
        """Show a text, unless it is shown already; `from_top` scrolls to its first line."""
        if text != self._text or from_top:
            self._text = text
            self.renew(from_top=from_top)

    def lay_out(self, width: int) -> list[Content]:
        """Return the lines in colour. Lines that are too wide are wrapped."""
        lines: list[Content] = []
        for line in coloured(self._text.split("\n")):
            if line.cell_length < width:
                lines.append(line)
            else:
                lines += wrap_lines(line, width - 1)
        return lines

    def as_text(self) -> str:
        """Return the whole text, to be copied."""
        return "\n".join(line.plain for line in self._lines)


class CommandPage(Page):
    """Runs its subcommand when it opens; `r` runs it again, and `s` stops it."""

    WORDS: ClassVar[tuple[str, ...]]  # the subcommand that the page opens with

    def __init__(self, words: Sequence[str] = ()) -> None:
        super().__init__()
        self._words = list(words or self.WORDS)
        self._subcommand: Subcommand | None = None
        self._is_end_shown = False

    def compose_body(self) -> ComposeResult:
        self.printout = Printout()
        yield self.printout

    def on_mount(self) -> None:
        self.printout.focus()
        self._polling = self.set_interval(_POLL_S, self._look)
        self.begin()

    def begin(self) -> None:
        """Run the subcommand that the page opens with."""
        self.run_words(self._words)

    def on_unmount(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        """Stop the subcommand that was shown, unless it is a calibration, which continues."""
        subcommand = self._subcommand
        if subcommand is None:
            return
        if subcommand.is_running:
            if subcommand is self.desk.calibration:
                return
            subcommand.stop()
        subcommand.close()

    @property
    def is_reading(self) -> bool:
        """Whether the end of the subcommand is still to be shown. A calibration does not count."""
        return not self._is_end_shown and self._subcommand is not self.desk.calibration

    @property
    def has_running_command(self) -> bool:
        """Whether a subcommand of this page is running."""
        return self._subcommand is not None and self._subcommand.is_running

    def command(self) -> str:
        return shlex.join(["tuilab", *self._words, *root_option(self.desk.root)])

    def places(self) -> list[str]:
        if not self.has_running_command:
            return super().places()
        return ["running subcommand", *super().places()]

    def idle_keys(self) -> set[str]:
        """Return the keys that start a subcommand while one is running, else that of stopping."""
        if self.has_running_command:
            return {"r", "a", "enter", "g"}
        return {"s"}

    def run_words(self, words: Sequence[str]) -> Subcommand | None:
        """Run a subcommand, and return it; None if its process cannot be started.

        The last subcommand is stopped, unless it is a calibration. An error is shown on the page.
        """
        self._let_go()
        self._words = list(words)
        command_words = [*words, "--root", str(self.desk.root)]
        width = self.app.size.width - 3  # padding, scroll bar, and a free column
        try:
            self._show(Subcommand(command_words, width, self.app.size))
        except OSError as problem:
            self._subcommand = None
            self._is_end_shown = True
            self.printout.show(f"cannot start tuilab {words[0]}: {problem.strerror}")
        return self._subcommand

    def _show(self, subcommand: Subcommand) -> None:
        """Show the output of this subcommand from now on."""
        self._subcommand = subcommand
        self._is_end_shown = False
        self.printout.show("", from_top=True)
        self._polling.resume()
        self._look()

    def _look(self) -> None:
        """Show what the subcommand has printed, and whether it is running."""
        subcommand = self._subcommand
        if subcommand is None:
            return
        # Asked before the read: otherwise the last output could be missed.
        is_running = subcommand.is_running
        self.printout.show(subcommand.read())
        if is_running:
            state = (self.state_words(subcommand), "$text-accent")
        else:
            state = (_describe_end(subcommand), "$text-muted")
            self._is_end_shown = True
            self._polling.pause()
        title = Content.assemble(("tuilab", "bold"), f"  {self.PLACE}  ", state, "  ")
        command = to_content(self.command(), 300, "$text-muted")
        self.heading.show(title + command)
        self.show_keys()

    def state_words(self, subcommand: Subcommand) -> str:
        """Return how long the subcommand has been running."""
        return f"running for {clock(subcommand.elapsed_s)}"

    def on_searched_lines_found(self, event: SearchedLines.Found) -> None:
        self.keybar.note(to_content(event.words, 80, "$text-accent"))

    def action_show_output(self, words: str = "") -> None:
        """Run a subcommand and show what it prints; without words, run the same one again."""
        if self.has_running_command:
            self.lab.tell(f"tuilab {self._words[0]} is still running; s stops it", is_problem=False)
            return
        self.run_words(words.split() or self._words)

    def action_interrupt(self) -> None:
        """Stop the subcommand."""
        if self._subcommand is not None and self._subcommand.is_running:
            self._subcommand.stop()
        else:
            self.lab.tell(f"tuilab {self._words[0]} is not running", is_problem=False)

    def action_copy_all(self) -> None:
        """Copy the whole text."""
        self.lab.copy(self.printout.as_text())

    def action_show_all(self) -> None:
        """Show the whole text in the pager."""
        self.show_in_pager(self.printout.as_text())


class DoctorPage(CommandPage):
    """Shows what needs attention on this machine."""

    PLACE = "doctor"
    WORDS = ("doctor",)
    BINDINGS = bindings("doctor")


class AdvisePage(CommandPage):
    """Shows the settings that were fastest on this machine."""

    PLACE = "advise"
    WORDS = ("advise",)
    BINDINGS = bindings("advise")


class CalibratePage(CommandPage):
    """Shows the latest calibrations. `enter` starts one, which continues if the user leaves."""

    PLACE = "calibrate"
    WORDS = ("calibrate", "--show")
    BINDINGS = bindings("calibrate")

    def begin(self) -> None:
        """Show the calibration that is running; if none is, show the latest ones."""
        calibration = self.desk.calibration
        if calibration and calibration.is_running:
            self._words = calibration.words[:-2]  # without --root and its folder
            self._show(calibration)
        else:
            super().begin()

    @property
    def _is_calibrating(self) -> bool:
        return self.has_running_command and self._subcommand is self.desk.calibration

    def keys_now(self) -> list[Key]:
        """Leave out the key that calibrates a GPU if this machine has none."""
        keys = super().keys_now()
        if is_gpu_there():
            return keys
        return [key for key in keys if key.key != "g"]

    def state_words(self, subcommand: Subcommand) -> str:
        """Say of a calibration also what it measures and how long that usually takes."""
        if not self._is_calibrating:
            return super().state_words(subcommand)
        device = self._words[-1]
        usual = clock(60 * USUAL_MINUTES[device])
        return f"measuring {_DEVICES[device]}: {clock(subcommand.elapsed_s)} of about {usual}"

    @work(group="question")
    async def action_start(self, device: str) -> None:
        """Calibrate a device if the user confirms it."""
        if self._is_calibrating:
            self.lab.tell("a calibration is running; s stops it", is_problem=False)
            return
        if device == "cuda" and not is_gpu_there():
            self.lab.tell("there is no GPU to calibrate")
            return
        busy = "every core" if device == "cpu" else "the GPU"
        about = [
            f"It keeps {busy} busy for {USUAL_MINUTES[device]:g} minutes.",
            "Do not use the machine meanwhile.",
            f"It writes {places.calibration_file()}",
            "It continues if you leave.",
        ]
        question = ConfirmDialog(f"Calibrate {_DEVICES[device]}?", about, self._warn_of_runs())
        if await self.app.push_screen_wait(question):
            self.desk.calibration = self.run_words(["calibrate", "--device", device])
            self._look()

    def _warn_of_runs(self) -> str:
        """Return a warning if runs are being timed: they and a calibration disturb each other."""
        count = len(queue.running(self.desk.root))
        if not count:
            return ""
        verb = "is" if count == 1 else "are"
        return f"{plural(count, 'run')} {verb} being timed now; all results would be less reliable."

    @work(group="question")
    async def action_cancel(self) -> None:
        """Stop the calibration if the user confirms it."""
        calibration = self.desk.calibration
        if calibration is None or not calibration.is_running:
            self.lab.tell("no calibration is running", is_problem=False)
            return
        question = ConfirmDialog("Stop the calibration?", ["Its measurements are not kept."])
        if await self.app.push_screen_wait(question):
            calibration.stop()


def _describe_end(subcommand: Subcommand) -> str:
    """Return how a subcommand ended, in how much time, and its exit code if it is not 0."""
    if subcommand.was_stopped:
        return "stopped"
    duration = clock(subcommand.elapsed_s)
    if subcommand.exit_code:
        return f"finished in {duration}, exit code {subcommand.exit_code}"
    return f"finished in {duration}"
