"""Lines that scroll, and lists with a cursor: the base of lessons, sources and catalogues."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget


def strip_of(widget: Widget, line: Content, width: int, style: Style) -> Strip:
    """Return a line as it is drawn.

    If the terminal is so narrow that the line has no cells, the strip is empty.
    """
    strips = Visual.to_strips(widget, line, width, 1, style, pad=True)
    if not strips:
        return Strip.blank(0)
    return strips[0]


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """Draws only the visible lines. A subclass returns all lines at a width in `lay_out`."""

    ALLOW_SELECT = False

    DEFAULT_CSS = """
    Lines {
        height: 1fr;
        background: transparent;
        text-wrap: nowrap;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        scrollbar-color: $border;
        scrollbar-background: transparent;
    }
    Lines:ansi { scrollbar-color: ansi_bright_black; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_by(-1)", show=False),
        Binding("down", "scroll_by(1)", show=False),
        Binding("pageup", "scroll_pages(-1)", show=False),
        Binding("pagedown,space", "scroll_pages(1)", show=False),
        # No text has as many lines as these numbers, which mean its start and its end.
        Binding("home", "scroll_by(-1000000)", show=False),
        Binding("end", "scroll_by(1000000)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Content] = ()
        self._laid_out_width = 0
        self._will_renew = False
        self._will_be_at_top = False

    def lay_out(self, width: int) -> Sequence[Content]:
        """Return the lines at a width."""
        raise NotImplementedError

    def renew(self, *, from_top: bool = False) -> None:
        """Lay out the lines again: the content has changed."""
        width = self.scrollable_content_region.width
        self._will_renew = False
        self._will_be_at_top |= from_top
        if not width:
            # Hidden: the lines are laid out when it is shown, even at the same width as before.
            self._laid_out_width = 0
            return
        self._laid_out_width = width
        self._lines = self.lay_out(width)
        self.virtual_size = Size(width, len(self._lines))
        if self._will_be_at_top:
            self._will_be_at_top = False
            self.scroll_to(y=0, animate=False, force=True)
        self.refresh()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._laid_out_width:
            self.renew()

    def render_line(self, y: int) -> Strip:
        """Return a visible line; below the last line, a blank one.

        If the width has changed, the lines are laid out again soon.
        """
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if width != self._laid_out_width and not self._will_renew:
            self._will_renew = True  # Textual does not always send a new widget its first size
            self.call_later(self.renew)
        if not 0 <= number < len(self._lines):
            return Strip.blank(width, self.rich_style)
        return self.draw(self._lines[number], width, number)

    def draw(self, line: Content, width: int, number: int) -> Strip:
        """Return one line as it is drawn."""
        return strip_of(self, line, width, self.visual_style)

    def action_scroll_by(self, count: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + count, animate=False)

    def action_scroll_pages(self, count: int) -> None:
        self.action_scroll_by(count * max(self.size.height - 1, 1))


class Cursored(ScrollView):
    """Lines with a cursor that stays visible when it moves and when the size changes."""

    _user_scroll_y = 0.0  # the position to which the user scrolled

    @property
    def cursor_region(self) -> Region:
        """The region that has to be visible: the line of the cursor, or more."""
        raise NotImplementedError

    def scroll_to_cursor(self, *, immediate: bool = False) -> None:
        """Scroll until the cursor is visible."""
        self.scroll_to_region(self.cursor_region, animate=False, force=True, immediate=immediate)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._user_scroll_y = new_value

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_cursor_again)

    def _show_cursor_again(self) -> None:
        """Scroll to where the user was, then as little as needed to show the cursor.

        The user's position is kept, so that a terminal that was small for a moment changes nothing.
        """
        user_scroll_y = self._user_scroll_y
        self.scroll_to(y=user_scroll_y, animate=False, force=True, immediate=True)
        self.scroll_to_cursor(immediate=True)
        self._user_scroll_y = user_scroll_y  # scrolling has changed it


class PickList(Lines, Cursored):
    """A list with a cursor. It sends messages when the cursor moves and when a line is chosen."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor", "lines--cursor-blurred"}
    DEFAULT_CSS = """
    PickList > .lines--cursor { background: $primary 35%; text-style: bold; }
    PickList > .lines--cursor-blurred { background: $foreground 12%; }
    PickList:ansi > .lines--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground;
    }
    PickList:nocolor > .lines--cursor { text-style: bold underline; }
    PickList:ansi > .lines--cursor-blurred { background: ansi_default; text-style: bold underline; }
    PickList:nocolor > .lines--cursor-blurred { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move_pages(-1)", show=False),
        Binding("pagedown", "move_pages(1)", show=False),
        # No list has as many lines as these numbers, which mean its start and its end.
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, picker: "PickList") -> None:
            super().__init__()
            self.picker = picker

    class Chosen(Moved):
        """The line at the cursor was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0

    @property
    def cursor_region(self) -> Region:
        return Region(0, self.cursor, 1, 1)

    @property
    def count(self) -> int:
        """The number of lines that can have the cursor."""
        raise NotImplementedError

    def move_to(self, number: int) -> None:
        """Put the cursor on a line, at most on the last one, and scroll to it."""
        number = max(min(number, self.count - 1), 0)
        if number != self.cursor:
            self.cursor = number
            self.refresh()
            self.post_message(self.Moved(self))
        self.scroll_to_cursor()

    def draw(self, line: Content, width: int, number: int) -> Strip:
        """Return a line; that of the cursor is marked, most clearly if the list has the focus."""
        # A sentence in the place of an empty list has no cursor, so that `count` matters.
        if number != self.cursor or number >= self.count:
            return super().draw(line, width, number)
        if not self.has_focus:
            return strip_of(self, line, width, self.get_visual_style("lines--cursor-blurred"))
        if self.app.current_theme.ansi:
            # Which of the terminal's own colours are readable on that of the cursor is unknown.
            line = Content(line.plain)
        return strip_of(self, line, width, self.get_visual_style("lines--cursor"))

    def action_move(self, count: int) -> None:
        self.move_to(self.cursor + count)

    def action_move_pages(self, count: int) -> None:
        self.move_to(self.cursor + count * max(self.size.height - 1, 1))

    def on_click(self, event: events.Click) -> None:
        number = event.y + self.scroll_offset.y
        if 0 <= number < self.count:
            self.move_to(number)
            if event.chain == 2:
                self.post_message(self.Chosen(self))
