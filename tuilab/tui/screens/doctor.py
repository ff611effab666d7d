"""The Doctor screen: what will disturb, slow or end a run here, and what to do about it; answers come as they are found."""

import os
from functools import partial

from textual.message import Message

from tuilab.doctor import Finding
from tuilab.doctor.answers import counts, render, render_facts
from tuilab.doctor.asking import GROUPS, Asked, ask_all
from tuilab.doctor.facts import Fact
from tuilab.text import show
from tuilab.tui.keys import bindings
from tuilab.tui.screens.printed import PrintedPage
from tuilab.tui.state.box import beside

_WARNS = ("! ", "✗ ", "x ")  # how an answer begins that warns or fails


class DoctorPage(PrintedPage):
    """The answers as `tuilab doctor` prints them, then the facts."""

    PLACE = "doctor"
    BINDINGS = bindings("doctor")

    class Answered(Message):
        """A group of questions was answered, or the facts were found."""

        def __init__(self, asked: object, group: str, found: dict[str, Finding], facts: list[Fact]) -> None:
            super().__init__()
            self.asked, self.group, self.found, self.facts = asked, group, found, facts

    def __init__(self) -> None:
        super().__init__()
        self._groups: dict[str, dict[str, Finding]] = {}
        self._facts: list[Fact] = []
        self._asks: object = None  # tells the questions asked last from those before

    @property
    def is_reading(self) -> bool:
        """Whether something is still asked."""
        return len(self._groups) < len(GROUPS) or not self._facts

    def on_mount(self) -> None:
        super().on_mount()
        self.action_ask_again()

    def command(self) -> str:
        return "tuilab doctor"

    def action_ask_again(self) -> None:
        """Ask everything, once more."""
        self._groups, self._facts, self._asks = {}, [], object()
        self._show()
        beside.begin(partial(self._ask, self._asks))

    def _ask(self, asks: object) -> None:
        """Ask, and pass on each answer in the order in which they are shown; to be called by a thread that may wait."""
        asked: Asked = ask_all()
        for group, answers in asked.groups.items():
            self.post_message(self.Answered(asks, group, answers.result(), []))
        self.post_message(self.Answered(asks, "", {}, asked.facts.result()))

    def on_doctor_page_answered(self, message: Answered) -> None:
        if message.asked is not self._asks:
            return
        if message.group:
            self._groups[message.group] = message.found
        else:
            self._facts = message.facts
        self._show()

    def _show(self) -> None:
        self.printout.show(self._printed)
        found = {name: one for group in self._groups.values() for name, one in group.items()}
        if self.is_reading:
            missing = [group for group in GROUPS if group not in self._groups]
            self.say(f"checking: {', '.join(missing) or 'facts'}".replace("_", " "))
        else:
            self.say(f"{show(os.uname().nodename, 40)}  {counts(found)}")

    def _printed(self, width: int) -> str:
        """Return what is known so far, as the command prints it; the answers come first, which matter more here."""
        pad = max((len(name) for group in self._groups.values() for name in group), default=0)
        parts = [render(found, self.style, width, pad) for found in self._groups.values()]
        parts += [render_facts(self._facts, self.style, width)] if self._facts else [self.style.dim("…")]
        return "\n\n".join(parts)

    def action_next_warning(self) -> None:
        """Go to the next answer that warns or fails, after the last to the first."""
        lines = [at for at, line in enumerate(self.printout.lines_to_search()) if line.plain.startswith(_WARNS)]
        top = int(self.printout.scroll_offset.y)
        after = [at for at in lines if at > top and top < self.printout.max_scroll_y]
        if lines:
            self.printout.scroll_to(y=(after or lines)[0], animate=False, force=True)
        else:
            self.lab.tell("no warning or failure so far", is_problem=False)
