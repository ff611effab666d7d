"""The question before a run is stopped: the key that asked it says yes, too."""

from typing import ClassVar

from tuilab.record.states import RunState
from tuilab.tui.keys import bindings
from tuilab.tui.widgets.question import ConfirmDialog


class StopQuestion(ConfirmDialog):
    """Asks whether a run is to end; of one that is ending already, whether at once.

    `of_sweep` is the command that stops the sweep that it is a point of.
    """

    PLACE: ClassVar[str] = "question about stopping"
    BINDINGS = bindings("question about stopping")

    def __init__(self, name: str, state: str, of_sweep: str = "") -> None:
        is_again = state == RunState.STOPPING
        title = "Kill it now?" if is_again else "Stop this run?"
        note = (
            "Its processes are killed; unwritten data is lost."
            if is_again
            else "What it has measured is kept."
        )
        note += (
            f" The next point of its sweep may start; to stop the whole sweep: {of_sweep}"
            if of_sweep
            else ""
        )
        super().__init__(title, [name], note)
