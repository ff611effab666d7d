"""A few words of which one is chosen: next to each other, or one at a time without room."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.app import RenderResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tuilab.text.display import show

_MAX_WORD = 40


class Choice(Widget, can_focus=True):
    """A word is chosen with the left and right keys, the space bar, or a click."""

    PLACE: ClassVar[str] = "choice"
    DEFAULT_CSS = "Choice { height: 1; width: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", show=False),
        Binding("right,space", "choose(1)", show=False),
    ]

    class Changed(Message):
        """The user chose another word."""

        def __init__(self, choice: "Choice") -> None:
            super().__init__()
            self.choice = choice

    def __init__(
        self,
        words: Sequence[str],
        chosen: int = 0,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.words = words
        self.chosen = chosen

    @property
    def value(self) -> str:
        return self.words[self.chosen]

    def put(self, value: str) -> None:
        """Show a value without a message."""
        self.chosen = 0
        if value in self.words:
            self.chosen = self.words.index(value)
        self.refresh()

    def offer(self, words: Sequence[str]) -> None:
        """Offer other words. The chosen word stays if it is among them."""
        value = self.value
        self.words = words
        self.put(value)

    def action_choose(self, count: int) -> None:
        self._choose((self.chosen + count) % len(self.words))

    def _choose(self, number: int) -> None:
        """Choose a word by its number; post `Changed` if it is another one."""
        if number != self.chosen:
            self.chosen = number
            self.refresh()
            self.post_message(self.Changed(self))

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked word; if only the chosen word has room, choose the next one."""
        if not self._has_room:
            self.action_choose(1)
            return
        for number, (start, end) in enumerate(self._spans()):
            if start <= event.x < end:
                self._choose(number)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield the first column of each word, and the one after it."""
        start = 0
        for word in self.words:
            end = start + Content(show(word, _MAX_WORD)).cell_length + 2
            yield start, end
            start = end + 1

    @property
    def _has_room(self) -> bool:
        """Whether all words fit next to each other."""
        width = 0
        for _, end in self._spans():
            width = max(width, end)
        return width <= self.size.width

    def render(self) -> RenderResult:
        """Return all words, the chosen one in brackets; without room, that one and its number."""
        style = "bold $text-accent" if self.has_focus else "bold"
        if not self._has_room:
            chosen_word = Content.styled(f"‹{show(self.value, _MAX_WORD)}›", style)
            place = f" {self.chosen + 1}/{len(self.words)}"
            return chosen_word + Content.styled(place, "$text-muted")
        parts = []
        for number, word in enumerate(self.words):
            shown_word = show(word, _MAX_WORD)
            if number == self.chosen:
                parts.append(Content.styled(f"‹{shown_word}›", style))
            else:
                parts.append(Content.styled(f" {shown_word} ", "$text-muted"))
        return Content(" ").join(parts)
