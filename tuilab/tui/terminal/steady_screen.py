"""Screens that ignore late clicks, keys and calls that were meant for the screen before."""

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, SearchIcon
from textual.errors import NoWidget
from textual.events import Click
from textual.geometry import Offset
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget


class SteadyScreen(Screen[ScreenResultType]):
    """A screen that ignores the mouse over removed widgets, and closes no other screen."""

    @property
    def is_seen(self) -> bool:
        """Whether the user sees this screen, also if it is behind a dialog.

        Textual's `is_current` is also true for a screen that is below an opaque screen.
        """
        stack = self.app.screen_stack
        if self not in stack:
            return False
        return all(above.is_modal for above in stack[stack.index(self) + 1 :])

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a place of the screen, unless that widget is being removed."""
        widget, offset = super().get_widget_and_offset_at(x, y)
        if widget is not None and not widget.is_attached:
            return None, None
        return widget, offset

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this screen if it is on top.

        Textual closes whichever screen is on top. If a dialog closes while a second key or click is
        on its way to the dialog, that key or click would close the screen below.
        """
        if self.app.screen_stack[-1:] != [self]:
            return AwaitComplete()
        return super().dismiss(result)


class SteadyPalette(CommandPalette, SteadyScreen[None]):
    """The command palette, which also ignores clicks from before the terminal shrank."""

    def on_mount(self) -> None:
        self.query_one(SearchIcon).icon = "›"  # every terminal has a glyph for it

    def on_click(self, event: Click) -> None:
        """Ignore a click outside the screen, because Textual would raise if it finds no widget."""
        try:
            self.get_widget_at(event.screen_x, event.screen_y)
        except NoWidget:
            event.prevent_default()
