"""Search in a text that scrolls: the search line, and the text that marks and shows the matches."""

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

_MAX_PASTED = 200  # characters
SEARCHES: list[BindingType] = [
    Binding("slash", "search", show=False),
    Binding("n", "next_match(1)", show=False),
    Binding("N", "next_match(-1)", show=False),
    Binding("escape", "end_search", show=False),
]


class Searched(Widget):
    """A text that can be searched. A subclass has the keys `SEARCHES` and returns its lines."""

    class Asked(Message):
        """A search began or ended."""

    words = ""  # of the search, in lower case; empty without a search
    match_line = -1  # the line of the match that is shown
    search_title = "the text"  # its name in the search line
    no_match_note = (
        ""  # added to the sentence that there is no match, if not all lines were searched
    )

    def lines_to_search(self) -> Sequence[Content]:
        """Return the lines."""
        raise NotImplementedError

    def go_to_line(self, number: int) -> None:
        """Scroll to a line."""
        raise NotImplementedError

    def redraw_matches(self) -> None:
        """Draw the lines again: other words are marked."""
        raise NotImplementedError

    def show_match(self, words: str) -> None:
        """Show in the frame which match is shown; nothing without a search."""
        raise NotImplementedError

    def mark_matches(self, line: Content) -> Content:
        """Return a line with its matches marked."""
        if not self.words:
            return line
        text = line.plain.lower()
        start = text.find(self.words)
        while start >= 0:
            line = line.stylize("reverse", start, start + len(self.words))
            start = text.find(self.words, start + 1)
        return line

    def search_for(self, words: str) -> None:
        """Mark words and go to the first match at or below the visible lines.

        Empty words end the search.
        """
        self.words = words.lower()
        self.match_line = int(self.scroll_offset.y) - 1
        self.redraw_matches()
        if words:
            self.show_match(self._go_to_match(1))
        else:
            self.show_match("")
        self.post_message(self.Asked())

    def _go_to_match(self, step: int) -> str:
        """Go to the next match; for a negative step, to the previous match. Matches go round.

        Return a sentence about the match.
        """
        shown_words = show(self.words, 40)
        matches = []  # the numbers of the lines that contain the words
        for number, line in enumerate(self.lines_to_search()):
            if self.words in line.plain.lower():
                matches.append(number)
        if not matches:
            return f"no match for {shown_words}{self.no_match_note}"
        if step > 0:
            below = [number for number in matches if number > self.match_line]
            self.match_line = below[0] if below else matches[0]
        else:
            above = [number for number in matches if number < self.match_line]
            self.match_line = above[-1] if above else matches[-1]
        self.go_to_line(self.match_line)
        place = matches.index(self.match_line) + 1
        return f"match {place} of {len(matches)} for {shown_words}"

    async def action_search(self) -> None:
        # Awaited, so that the next key that is typed goes into the line.
        await self.screen.mount(SearchLine(self))

    def action_next_match(self, step: int) -> None:
        """Go to another match; without a search, leave the key to the screen."""
        if not self.words:
            raise SkipAction  # the screen has a meaning for the key
        self.show_match(self._go_to_match(step))

    def action_end_search(self) -> None:
        """End the search; without one, leave the key to the screen."""
        if not self.words:
            raise SkipAction
        self.search_for("")


class SearchedLines(Lines, Searched):
    """Lines that can be searched, and selected with the mouse."""

    BINDINGS = SEARCHES
    ALLOW_SELECT = True

    class Found(Message):
        """Another match is shown. The widget with the frame shows these words."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def lines_to_search(self) -> Sequence[Content]:
        return self._lines

    def go_to_line(self, number: int) -> None:
        self.scroll_to(y=max(number - 1, 0), animate=False, force=True)

    def redraw_matches(self) -> None:
        self.refresh()

    def show_match(self, words: str) -> None:
        self.post_message(self.Found(words))

    def draw(self, line: Content, width: int, number: int) -> Strip:
        line = self._mark_selection(self.mark_matches(line), number)
        # With the offsets, Textual finds the text under the mouse.
        return super().draw(line, width, number).apply_offsets(0, number)

    def _mark_selection(self, line: Content, number: int) -> Content:
        """Return a line with the part marked that the mouse has selected."""
        if self.text_selection is None:
            return line
        span = self.text_selection.get_span(number)
        if span is None:
            return line
        start, end = span
        if end < 0:
            end = len(line)
        return line.stylize(self.screen.get_visual_style("screen--selection"), start, end)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, and the separator to the text of another widget."""
        text = "\n".join(line.plain for line in self._lines)
        return selection.extract(text), "\n"


class SearchLine(Horizontal):
    """Exists while words are typed; `enter` searches for them, `esc` ends the search."""

    DEFAULT_CSS = """
    SearchLine { height: 1; dock: bottom; margin: 0 0 1 0; background: $surface; padding: 0 1; }
    SearchLine Static { width: 2; color: $text-accent; text-style: bold; }
    SearchLine Input, SearchLine Input:focus {
        width: 1fr; background: $surface; border: none; height: 1; padding: 0;
    }
    """

    def __init__(self, text: Searched) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static("/")
        placeholder = f"search {self._text.search_title}"
        line = _SearchInput(self._text.words, placeholder=placeholder, compact=True)
        line.cursor_blink = False
        yield line

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.leave(event.value)

    def leave(self, words: str) -> None:
        """Search for words and return to the text."""
        self._text.focus()
        self._text.search_for(words)
        self.remove()


class _SearchInput(Input):
    PLACE: ClassVar[str] = "search"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    def action_give_up(self) -> None:
        assert isinstance(self.parent, SearchLine)
        self.parent.leave("")

    def on_paste(self, event: events.Paste) -> None:
        # The handler of Input, which inserts the text, runs after this one.
        event.text = first_printable_line(event.text)


def first_printable_line(text: str) -> str:
    """Return the printable characters of the first line of a pasted text, at most 200."""
    first_line, _, _ = text.partition("\n")
    printable = [character for character in first_line if character.isprintable()]
    return "".join(printable[:_MAX_PASTED])
