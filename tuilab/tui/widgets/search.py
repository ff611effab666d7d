"""Looking for words in a text that scrolls: the line that they are typed in, and what a text does to be searched."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from tuilab.text.display import show
from tuilab.tui.widgets.lines import Lines

SEARCHES: list[BindingType] = [
    Binding("slash", "search", show=False),
    Binding("n", "next_match(1)", show=False),
    Binding("N", "next_match(-1)", show=False),
    Binding("escape", "end_search", show=False),
]


class Searched(Widget):
    """A text that can be searched; a subclass has the keys `SEARCHES` and says which lines it has."""

    class Asked(Message):
        """Words are looked for, or none any more."""

    words = ""
    line_found = -1
    called = "the text"  # where words to look for are asked for
    beyond = ""  # said where no line has the words and there is more than its lines

    def lines_to_search(self) -> Sequence[Content]:
        """Return the lines."""
        raise NotImplementedError

    def go_to_line(self, number: int) -> None:
        """Show a line."""
        raise NotImplementedError

    def show_found(self) -> None:
        """Draw again: other words are marked."""
        raise NotImplementedError

    def marked(self, line: Content) -> Content:
        """Return a line with the words marked that are looked for."""
        text, at = line.plain.lower(), -1
        while self.words and (at := text.find(self.words, at + 1)) >= 0:
            line = line.stylize("reverse", at, at + len(self.words))
        return line

    def tell_found(self, said: str) -> None:
        """Say in the frame which of the lines that have the words is shown; nothing where none are looked for."""
        raise NotImplementedError

    def look_for(self, words: str) -> None:
        """Mark words, go to the first of them from what is shown on, and say how many lines have them."""
        self.words, self.line_found = words.lower(), int(self.scroll_offset.y) - 1
        self.show_found()
        self.tell_found(self._go(1) if words else "")
        self.post_message(self.Asked())

    def _go(self, step: int) -> str:
        found = [
            at for at, line in enumerate(self.lines_to_search()) if self.words in line.plain.lower()
        ]
        if not found:
            return f"no match for {show(self.words, 40)}{self.beyond}"
        after = [at for at in found if (at - self.line_found) * step > 0]
        self.line_found = (after or found)[0] if step > 0 else (after or found)[-1]
        self.go_to_line(self.line_found)
        return (
            f"match {found.index(self.line_found) + 1} of {len(found)} for {show(self.words, 40)}"
        )

    async def action_search(self) -> None:
        await self.screen.mount(SearchLine(self))  # what is typed next is typed into it

    def action_next_match(self, step: int) -> None:
        if not self.words:
            raise SkipAction  # the key is the screen's
        self.tell_found(self._go(step))

    def action_end_search(self) -> None:
        if not self.words:
            raise SkipAction
        self.look_for("")


class SearchedLines(Lines, Searched):
    """Lines that can be searched, and selected with the mouse."""

    BINDINGS = SEARCHES
    ALLOW_SELECT = True

    def lines_to_search(self) -> Sequence[Content]:
        return self._lines

    def go_to_line(self, number: int) -> None:
        self.scroll_to(y=max(number - 1, 0), animate=False, force=True)

    def show_found(self) -> None:
        self.refresh()

    class Found(Message):
        """What there is to say of the search, for whoever has the frame."""

        def __init__(self, said: str) -> None:
            super().__init__()
            self.said = said

    def tell_found(self, said: str) -> None:
        self.post_message(self.Found(said))

    def draw(self, line: Content, width: int, number: int) -> Strip:
        line = self._with_selection(self.marked(line), number)
        return super().draw(line, width, number).apply_offsets(0, number)  # where a mouse finds it

    def _with_selection(self, line: Content, number: int) -> Content:
        """Return a line with what the mouse has selected of it marked."""
        if self.text_selection is None or (span := self.text_selection.get_span(number)) is None:
            return line
        first, after = span
        return line.stylize(
            self.screen.get_visual_style("screen--selection"),
            first,
            len(line) if after < 0 else after,
        )

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the text that the mouse has selected, and what goes between it and that of another part of the screen."""
        return selection.extract("\n".join(line.plain for line in self._lines)), "\n"


class SearchLine(Horizontal):
    """There while words are typed; `enter` looks for them, `esc` for none."""

    DEFAULT_CSS = """
    SearchLine { height: 1; dock: bottom; margin: 0 0 1 0; background: $surface; padding: 0 1; }
    SearchLine Static { width: 2; color: $text-accent; text-style: bold; }
    SearchLine Input, SearchLine Input:focus { width: 1fr; background: $surface; border: none; height: 1; padding: 0; }
    """

    def __init__(self, text: Searched) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static("/")
        line = _SearchInput(
            self._text.words, placeholder=f"search {self._text.called}", compact=True
        )
        line.cursor_blink = False
        yield line

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.leave(event.value)

    def leave(self, words: str) -> None:
        """Look for words, and go back to the text."""
        self._text.focus()
        self._text.look_for(words)
        self.remove()


class _SearchInput(Input):
    PLACE: ClassVar[str] = "search"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    def action_give_up(self) -> None:
        assert isinstance(self.parent, SearchLine)
        self.parent.leave("")

    def on_paste(self, event: events.Paste) -> None:
        """Take what can be shown of the first line."""
        event.text = "".join(char for char in event.text.partition("\n")[0] if char.isprintable())[
            :200
        ]
