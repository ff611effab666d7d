"""The Advise screen: the settings that follow from what was measured on this box, each with what raced for it."""

import shlex
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from tuilab.errors import TuilabError
from tuilab.runs.command_line import root_option
from tuilab.text import plural
from tuilab.tui.keys import bindings
from tuilab.tui.screens.printed import PrintedPage
from tuilab.tui.state.box import beside

if TYPE_CHECKING:
    from tuilab.reports.advice.advised import Advice


class AdvisePage(PrintedPage):
    """The file that `tuilab advise` writes."""

    PLACE = "advise"
    BINDINGS = bindings("advise")

    class Found(Message):
        """The runs were read: what follows from them, what was left out, or why nothing could be read."""

        def __init__(self, advice: "Advice | None", told: str) -> None:
            super().__init__()
            self.advice, self.told = advice, told

    def __init__(self) -> None:
        super().__init__()
        self.is_reading = False

    def on_mount(self) -> None:
        super().on_mount()
        self.action_read_again()

    def command(self) -> str:
        return shlex.join(["tuilab", "advise", "-o", "box.env", *root_option(self.desk.root)])

    def action_read_again(self) -> None:
        """Read the runs, once more."""
        if not self.is_reading:
            self.is_reading = True
            self.say("reading runs …")
            beside.begin(self._read)

    def _read(self) -> None:
        from tuilab.reports.advice import gather  # what only reports need

        known, index = self.desk.scenarios, self.desk.index
        try:
            found, notes = gather.of_runs(gather.racing(self.desk.root, known, cache=index), known, cache=index)
        except TuilabError as problem:
            self.post_message(self.Found(None, str(problem)))
        else:
            told = "; ".join([plural(len(found.settings), "setting"), *notes])
            self.post_message(self.Found(found, told))

    def on_advise_page_found(self, message: Found) -> None:
        self.is_reading = False
        self.say(message.told)
        self.printout.show(partial(self._printed, message.advice, message.told))

    def _printed(self, advice: "Advice | None", told: str, width: int) -> str:
        """Return the file, with comments that step back."""
        from tuilab.reports.advice.env_file import env_file

        lines = (f"# {told}" if advice is None else env_file(advice, width)).splitlines()
        return "\n".join(self.style.dim(line) if line.startswith("#") else self.style.bold(line) for line in lines)
