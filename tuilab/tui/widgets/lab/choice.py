"""A few words of which one is chosen: side by side, or one at a time where there is no room."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.app import RenderResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tuilab.text.display import show

_LONGEST = 40


class Choice(Widget, can_focus=True):
    """Left, right and space choose; a click, too."""

    PLACE: ClassVar[str] = "choice"
    DEFAULT_CSS = "Choice { height: 1; width: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", show=False),
        Binding("right,space", "choose(1)", show=False),
    ]

    class Changed(Message):
        """Another word was chosen by the user."""

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
        """Show a value; nobody is told."""
        self.chosen = self.words.index(value) if value in self.words else 0
        self.refresh()

    def offer(self, words: Sequence[str]) -> None:
        """Offer other words; the chosen one stays if it is among them."""
        value, self.words = self.value, words
        self.put(value)

    def action_choose(self, count: int) -> None:
        self._choose((self.chosen + count) % len(self.words))

    def _choose(self, number: int) -> None:
        if number != self.chosen:
            self.chosen = number
            self.refresh()
            self.post_message(self.Changed(self))

    def on_click(self, event: events.Click) -> None:
        if self._width > self.size.width:
            self.action_choose(1)
            return
        for number, start, end in self._places():
            if start <= event.x < end:
                self._choose(number)

    def _places(self) -> Iterator[tuple[int, int, int]]:
        at = 0
        for number, word in enumerate(self.words):
            width = Content(show(word, _LONGEST)).cell_length + 2
            yield number, at, at + width
            at += width + 1

    @property
    def _width(self) -> int:
        return max((end for _, _, end in self._places()), default=0)

    def render(self) -> RenderResult:
        on = "bold $text-accent" if self.has_focus else "bold"
        if self._width > self.size.width:
            word = Content.styled(f"‹{show(self.value, _LONGEST)}›", on)
            return word + Content.styled(f" {self.chosen + 1}/{len(self.words)}", "$text-muted")
        words = [
            (show(word, _LONGEST), number == self.chosen) for number, word in enumerate(self.words)
        ]
        parts = [
            Content.styled(f"‹{word}›", on) if is_on else Content.styled(f" {word} ", "$text-muted")
            for word, is_on in words
        ]
        return Content(" ").join(parts)
