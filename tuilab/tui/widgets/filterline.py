"""The line in which words are typed that filter a list, and how a word may go on."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from tuilab.runs.filters import HINT, completed


class Completion(Suggester):
    """Shows in grey how what is typed may go on; → takes it. A function gives the whole line as it may become."""

    def __init__(self, completed: Callable[[str], str | None]) -> None:
        super().__init__(
            use_cache=False, case_sensitive=True
        )  # what is known changes while one types
        self._completed = completed

    async def get_suggestion(self, value: str) -> str | None:
        return self._completed(value)


def complete_last_word(text: str, known: Sequence[str]) -> str | None:
    """Return a line with its last word gone on to the first that begins so; None where there is none, or nothing to complete.

    A `!` or a `#` before the word stays: it is no part of what is known.
    """
    typed = text.rpartition(" ")[2].lstrip("!#")
    for word in known:
        if typed and word.lower().startswith(typed.lower()) and len(word) > len(typed):
            return text + word[len(typed) :]
    return None


class FilterLine(Horizontal):
    """Hidden until it is opened. Every character narrows; `enter` goes back to the list, `esc` shows everything again."""

    DEFAULT_CSS = """
    FilterLine { height: 1; display: none; background: $surface; padding: 0 1; }
    FilterLine.is-open { display: block; }
    FilterLine Static { width: 2; color: $text-accent; text-style: bold; }
    FilterLine Input { width: 1fr; background: $surface; border: none; height: 1; padding: 0; }
    FilterLine Input:focus { border: none; background: $surface; }
    """

    class Changed(Message):
        """Other words are to be looked for."""

    class Left(Message):
        """The user goes back to the list."""

    def __init__(
        self, wanted: str = HINT, there: Callable[[], Mapping[str, Sequence[str]]] | None = None
    ) -> None:
        super().__init__()
        self._wanted = wanted  # told while nothing is typed
        self._there = there  # what runs have by the keys of a filter, where runs are looked for

    def compose(self) -> ComposeResult:
        yield Static("/")
        there = self._there
        suggester = Completion(lambda typed: completed(typed, there())) if there else None
        line = _FilterInput(placeholder=self._wanted, compact=True, suggester=suggester)
        line.cursor_blink = False  # a screen on which nothing happens sends nothing
        yield line

    @property
    def value(self) -> str:
        """What was typed."""
        return self.query_one(Input).value.strip()

    def open(self) -> None:
        """Show the line and type into it."""
        self.add_class("is-open")
        self.query_one(Input).focus()

    def put(self, words: str) -> None:
        """Show words that were typed another time; without any the line is hidden."""
        self.set_class(bool(words), "is-open")
        self.query_one(Input).value = words

    def clear(self) -> bool:
        """Show everything again; say whether there was anything to clear."""
        was_open = self.has_class("is-open")
        self.query_one(Input).value = ""
        self.remove_class("is-open")
        self.post_message(self.Left())
        return was_open

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.value:
            self.remove_class("is-open")
        self.post_message(self.Left())


class _FilterInput(Input):
    PLACE: ClassVar[str] = "filter"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    def action_give_up(self) -> None:
        assert isinstance(self.parent, FilterLine)
        self.parent.clear()

    def on_paste(self, event: events.Paste) -> None:
        """Take what can be shown of the first line; Input takes the rest of its care."""
        event.text = "".join(char for char in event.text.partition("\n")[0] if char.isprintable())[
            :200
        ]
