"""The line in which a filter is typed, and the completion of its words."""

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
from tuilab.tui.widgets.search import first_printable_line


class Completion(Suggester):
    """Shows in grey how the line may be completed; → accepts it.

    `complete` returns the whole completed line, or None if there is no completion.
    """

    def __init__(self, complete: Callable[[str], str | None]) -> None:
        # Without a cache, because the known words change while the user types.
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return self._complete(value)


def complete_last_word(text: str, words: Sequence[str]) -> str | None:
    """Return a line with its last word completed to the first of some words that begins with it.

    Return None if there is no such word. The signs `!` and `#` before a word belong to no word.
    """
    _, _, last_word = text.rpartition(" ")
    beginning = last_word.lstrip("!#")
    if not beginning:
        return None
    for word in words:
        is_longer = len(word) > len(beginning)
        if is_longer and word.lower().startswith(beginning.lower()):
            return text + word[len(beginning) :]
    return None


class FilterLine(Horizontal):
    """Hidden until it is opened. Each typed character is applied at once.

    `enter` returns to the list, `esc` clears the filter.
    """

    DEFAULT_CSS = """
    FilterLine { height: 1; display: none; background: $surface; padding: 0 1; }
    FilterLine.is-open { display: block; }
    FilterLine Static { width: 2; color: $text-accent; text-style: bold; }
    FilterLine Input { width: 1fr; background: $surface; border: none; height: 1; padding: 0; }
    FilterLine Input:focus { border: none; background: $surface; }
    """

    class Changed(Message):
        """The words of the filter changed."""

    class Left(Message):
        """The user returns to the list."""

    def __init__(
        self, hint: str = HINT, find_values: Callable[[], Mapping[str, Sequence[str]]] | None = None
    ) -> None:
        super().__init__()
        self._hint = hint  # shown while nothing is typed
        self._find_values = find_values  # of runs, by the keys of a filter; None: no completion

    def compose(self) -> ComposeResult:
        yield Static("/")
        find_values = self._find_values
        suggester = None
        if find_values:
            suggester = Completion(lambda text: completed(text, find_values()))
        line = _FilterInput(placeholder=self._hint, compact=True, suggester=suggester)
        line.cursor_blink = False  # nothing is sent to the terminal while nothing happens
        yield line

    @property
    def value(self) -> str:
        """The typed words."""
        return self.query_one(Input).value.strip()

    def open(self) -> None:
        """Show the line and focus it."""
        self.add_class("is-open")
        self.query_one(Input).focus()

    def put(self, words: str) -> None:
        """Show the words of an earlier filter. Without words, hide the line."""
        self.set_class(bool(words), "is-open")
        self.query_one(Input).value = words

    def clear(self) -> bool:
        """Clear and hide the filter. Return whether it was open."""
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
        # The handler of Input, which inserts the text, runs after this one.
        event.text = first_printable_line(event.text)
