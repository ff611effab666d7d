"""Show the app on Textual's own driver, for a Textual that our driver does not know.

This module uses only public parts of Textual. Textual's driver differs from ours in three ways. It
sends a whole region for a change of one cell, it never leaves out a frame on a slow link, and it
waits for a terminal that accepts nothing.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App, ReturnType
from textual.color import Color
from textual.driver import Driver
from textual.filter import LineFilter, NoColor
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import OptionList

from tuilab.text.display import has_colour, is_utf8_terminal
from tuilab.tui.terminal.frames import to_ascii
from tuilab.tui.terminal.steady_screen import SteadyPalette, SteadyScreen
from tuilab.tui.terminal.typed_app import TypedApp

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


class PlainApp(TypedApp[ReturnType]):
    """An app that Textual draws; it has every public member of PacedApp that the screens use."""

    is_link_slow = False  # Textual's driver does not ask when a frame has arrived
    is_stalled = False
    is_terminal_given_back = True  # Textual waits until the terminal has taken everything

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.driver_class = _observed(self.driver_class)
        self.bytes_sent = 0
        # The driver sets it; a headless app has none.
        self.write_if_open: Callable[[str], None] | None = None
        self._cleaner = Cleaner()
        self._notice = ""
        self._notice_ends = 0.0

    @property
    def has_terminal(self) -> bool:
        return self.write_if_open is not None

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, and the filters that frames of our own driver do not need."""
        filters = [*super().get_line_filters(), self._cleaner]
        if not has_colour():
            filters.append(NoColor())
        return filters

    def write_to_terminal(self, data: str) -> None:
        """Send text that is not part of a frame."""
        if self.write_if_open is not None:
            self.write_if_open(data)

    def redraw(self) -> None:
        """Draw everything again, because the terminal may show something else."""
        self.refresh(layout=True)

    def call_after_first_frame(self, act: Callable[[], object]) -> None:
        """Call a function when the screen has been drawn."""
        self.call_after_refresh(act)

    def is_notification_shown(self, text: str) -> bool:
        """Return whether a notification with this text is shown."""
        return text == self._notice and time.monotonic() < self._notice_ends

    def remove_notifications(self, severity: str) -> None:
        """Remove all notifications, because Textual has no public way to ask for their severity."""
        self.clear_notifications()

    def notify(self, message: str, **kwargs: Any) -> None:
        """Show a notification, and remember its text for `is_notification_shown`."""
        self._notice = message
        self._notice_ends = time.monotonic() + self.NOTIFICATION_TIMEOUT
        super().notify(message, **kwargs)

    def clear_notifications(self) -> None:
        """Remove all notifications."""
        self._notice = ""
        super().clear_notifications()

    def keep_copied(self, text: str) -> None:
        """Keep a text, so that the keys of an input field can paste it."""
        App.copy_to_clipboard(self, text)


class PlainScreen(SteadyScreen[ScreenResultType]):
    """A screen that Textual draws."""

    def take_breakpoints(self) -> None:
        """Do nothing: Textual sets the CSS classes for the size when it reports the size."""


class PlainModal(ModalScreen[ScreenResultType], SteadyScreen[ScreenResultType]):
    """A screen above another screen."""


class PlainPalette(SteadyPalette):
    """The command palette. Its keys do nothing while its list has no lines."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key acts now; Textual would raise if a key moved in an empty list."""
        if action == "command_list":
            options = self.query_one(OptionList)
            return options.option_count > 0 and options.size.height > 0
        return super().check_action(action, parameters)


class Cleaner(LineFilter):
    """Removes control characters, and replaces characters that the terminal has no glyphs for.

    The screens show only text that is already safe. This filter is the last check before the
    terminal.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_utf8 = is_utf8_terminal()

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, with safe text of the same width."""
        clean = []
        for text, style, control in segments:
            clean.append(Segment(self._clean_text(text), style, control))
        return clean

    def _clean_text(self, text: str) -> str:
        """Return a text without control characters; without UTF-8, with ASCII of the same width."""
        text = _CONTROLS.sub("", text)  # control characters have no width
        if self._is_utf8 or text.isascii():
            return text
        cells = []
        for char in text:
            width = cell_len(char)
            if width == 1:
                cells.append(to_ascii(char))
            else:
                cells.append("?" * width)
        return "".join(cells)


def _observed(driver_class: type[Driver]) -> type[Driver]:
    """Return a driver of Textual that also reports when it takes the terminal or gives it back."""

    class ObservedDriver(driver_class):  # type: ignore[valid-type, misc]  # Textual decides which class it is
        def __init__(self, app: "PlainApp[Any]", **kwargs: Any) -> None:
            super().__init__(app, **kwargs)
            self.owner = app
            self.is_open = False
            app.write_if_open = self.write_if_open

        def start_application_mode(self) -> None:
            self.owner.on_terminal_taken(True)
            super().start_application_mode()
            self.is_open = True

        def close(self) -> None:
            self.is_open = False
            super().close()  # returns when everything is written
            self.owner.on_terminal_taken(False)

        def write(self, data: str) -> None:
            super().write(data)
            self.owner.bytes_sent += len(data.encode(errors="replace"))

        def write_if_open(self, data: str) -> None:
            if self.is_open:
                self.write(data)

    return ObservedDriver
