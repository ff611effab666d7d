"""The app and its screens on Textual's own driver, for a Textual that our driver does not know.

Only public parts of Textual are used here. Compared with our driver, Textual's sends whole regions for a change of one cell,
never leaves out a frame on a slow link, and waits for a terminal that takes nothing.
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
    """An app that Textual draws; it has what the screens ask of the app that draws frames."""

    is_link_slow = False  # Textual's driver does not ask when a frame has arrived
    is_stalled = False
    is_terminal_given_back = True  # Textual waits until the terminal has taken everything

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.driver_class = _observed(self.driver_class)
        self.bytes_sent = 0
        self.write_if_open: Callable[[str], None] | None = (
            None  # set by the driver; a headless app has none
        )
        self._cleaner = Cleaner()
        self._notice = ""
        self._notice_ends = 0.0

    @property
    def has_terminal(self) -> bool:
        return self.write_if_open is not None

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, and those that our frames do not need."""
        filters = [*super().get_line_filters(), self._cleaner]
        if not has_colour():
            filters.append(NoColor())
        return filters

    def write_to_terminal(self, data: str) -> None:
        """Send something that is no part of a picture."""
        if self.write_if_open is not None:
            self.write_if_open(data)

    def redraw(self) -> None:
        """Draw everything again: the terminal may show something else."""
        self.refresh(layout=True)

    def call_after_first_frame(self, act: Callable[[], object]) -> None:
        """Call a function when the screen has been drawn."""
        self.call_after_refresh(act)

    def is_telling(self, text: str) -> bool:
        """Return whether a sentence is shown at the edge of the screen."""
        return text == self._notice and time.monotonic() < self._notice_ends

    def untell(self, severity: str) -> None:
        """Remove all sentences: the kind of a single one cannot be asked in public."""
        self.clear_notifications()

    def notify(self, message: str, **kwargs: Any) -> None:
        """Show a sentence, and remember it for `is_telling`."""
        self._notice = message
        self._notice_ends = time.monotonic() + self.NOTIFICATION_TIMEOUT
        super().notify(message, **kwargs)

    def clear_notifications(self) -> None:
        """Remove all sentences."""
        self._notice = ""
        super().clear_notifications()

    def keep_copied(self, text: str) -> None:
        """Let the keys of a field paste a text."""
        App.copy_to_clipboard(self, text)


class PlainScreen(SteadyScreen[ScreenResultType]):
    """A screen that Textual draws."""

    def take_breakpoints(self) -> None:
        """Leave the classes of the size to Textual, which sets them when it tells the size."""


class PlainModal(ModalScreen[ScreenResultType], SteadyScreen[ScreenResultType]):
    """A screen above another one."""


class PlainPalette(SteadyPalette):
    """The palette, whose keys do nothing while its list has no lines."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key acts now: Textual raises if it moves in a list without lines."""
        if action == "command_list":
            options = self.query_one(OptionList)
            return options.option_count > 0 and options.size.height > 0
        return super().check_action(action, parameters)


class Cleaner(LineFilter):
    """Removes what a terminal would obey, and replaces what it has no sign for.

    The screens show only text that is already safe. This is the last place before the terminal.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_utf8 = is_utf8_terminal()

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line with safe texts of the same width."""
        clean = []
        for text, style, control in segments:
            clean.append(Segment(self._clean_text(text), style, control))
        return clean

    def _clean_text(self, text: str) -> str:
        text = _CONTROLS.sub("", text)  # they have no width
        if self._is_utf8 or text.isascii():
            return text
        return "".join(
            to_ascii(char) if cell_len(char) == 1 else "?" * cell_len(char) for char in text
        )


def _observed(driver_class: type[Driver]) -> type[Driver]:
    """Return a driver of Textual that also tells the app when it takes the terminal, and when it gives it back."""

    class ObservedDriver(driver_class):  # type: ignore[valid-type, misc]  # which class it is, Textual decides
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
