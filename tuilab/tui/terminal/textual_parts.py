"""Give public names to every private part of Textual that tuilab uses.

No other file of tuilab uses a private part. If Textual calls one of its own private methods, that
method has a public twin here. Textual calls the private method, and that calls its twin. The twin
does what Textual does, unless a class of tuilab overrides it.

`known_textual.py` checks that the installed Textual has all these parts. For another version of
Textual, tests/tui/test_textual_parts.py names the parts that it lacks.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from operator import itemgetter
from typing import Any

from rich.segment import Segment
from textual._context import active_message_pump, visible_screen_stack
from textual._styles_cache import StylesCache
from textual._xterm_parser import XTermParser
from textual.app import App, ReturnType
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Region, Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widget import Widget

from tuilab.tui.terminal.steady_screen import SteadyPalette, SteadyScreen
from tuilab.tui.terminal.typed_app import TypedApp

Part = tuple[int, int, list[Segment]]  # column, row, and the segments from there on
# Each widget with its region, and the region outside which it is clipped.
_Placed = Sequence[tuple[Widget, Region, Region]]


def rendered(screen: Screen[Any]) -> list[list[Segment]]:
    """Return the lines that a screen shows; screens behind it may shine through."""
    size = screen._compositor.size
    lines: list[list[Segment]] = [[] for _ in range(size.height)]
    parts = _render_regions(screen, [size.region])
    parts.sort(key=itemgetter(0))  # from left to right
    for _, y, segments in parts:
        lines[y] += segments
    return lines


def rendered_parts(screen: Screen[Any], regions: AbstractSet[Region] | None) -> list[Part]:
    """Return the parts of lines that a screen shows in some regions; None means all regions."""
    if regions is None or screen._compositor.size.region in regions:
        return [(0, y, line) for y, line in enumerate(rendered(screen))]
    from_top_left = sorted(regions, key=lambda region: (region.y, region.x))
    return _render_regions(screen, from_top_left)


def _render_regions(screen: Screen[Any], regions: Sequence[Region]) -> list[Part]:
    """Return the parts of lines in some regions.

    In each region only the visible widgets render. They cover most of the containers and of the
    screen behind them, and rendering these would be most of the work for a frame.
    """
    visible_screen_stack.set(screen.app._background_screens)
    visible_widgets = screen._compositor.visible_widgets
    widgets = [(widget, place, clip) for widget, (place, clip) in visible_widgets.items()]
    parts: list[Part] = []
    for region in regions:
        parts += _render_region(region, widgets)
    return parts


def _render_region(region: Region, widgets: _Placed) -> Iterator[Part]:
    """Yield the parts of lines that some widgets, ordered front to back, show in a region.

    The first widget that is visible there renders. The widgets behind it render around it.
    """
    for index, (widget, place, clip) in enumerate(widgets):
        visible = region.intersection(place).intersection(clip)
        if not visible:
            continue
        lines = widget.render_lines(visible.translate((-place.x, -place.y)))
        for y, line in zip(visible.line_range, lines, strict=False):
            yield visible.x, y, list(line)
        for piece in _around(visible, region):
            yield from _render_region(piece, widgets[index + 1 :])
        return


def _around(part: Region, whole: Region) -> list[Region]:
    """Return the pieces of a region that are above, below, left and right of a part of it."""
    pieces = [
        Region.from_corners(whole.x, whole.y, whole.right, part.y),
        Region.from_corners(whole.x, part.bottom, whole.right, whole.bottom),
        Region.from_corners(whole.x, part.y, part.x, part.bottom),
        Region.from_corners(part.right, part.y, whole.right, part.bottom),
    ]
    return [piece for piece in pieces if piece]  # a region without an area is false


def _group_rows(rows: AbstractSet[int]) -> list[tuple[int, int]]:
    """Return the first row and the length of each group of consecutive rows."""
    firsts = sorted(row for row in rows if row - 1 not in rows)
    lasts = sorted(row for row in rows if row + 1 not in rows)
    return [(first, last - first + 1) for first, last in zip(firsts, lasts, strict=True)]


def at_work(app: App[Any]) -> MessagePump:
    """Return the widget or screen that is handling a message now; the app if there is none."""
    return active_message_pump.get(app)


class TextualApp(TypedApp[ReturnType]):
    """Textual's app, with public names for its private parts."""

    @property
    def is_closed(self) -> bool:
        """Whether the app no longer handles messages."""
        return self._closed

    @property
    def is_in_batch(self) -> bool:
        """Whether the app is collecting changes to show them together."""
        return self._batch_count > 0

    def display_update(self, screen: Screen[Any], update: Any) -> None:
        """Draw the changes of a screen."""
        super()._display(screen, update)

    def handle_exception(self, error: Exception) -> None:
        """Leave because of an exception that nobody caught."""
        super()._handle_exception(error)

    def show_exception(self) -> None:
        """Print the exception that is being handled, once the terminal is given back."""
        super()._fatal_error()

    def is_notification_shown(self, text: str) -> bool:
        """Return whether a notification with this text is shown."""
        return any(notification.message == text for notification in self._notifications)

    def remove_notifications(self, severity: str) -> None:
        """Remove the notifications of one severity, so that a new one can replace them."""
        for notification in list(self._notifications):
            if notification.severity == severity:
                self._unnotify(notification)

    def keep_copied(self, text: str) -> None:
        """Keep a text, so that the keys of an input field can paste it."""
        self._clipboard = text

    def move_mouse(self, screen: Screen[Any]) -> None:
        """Update which widget is under the mouse, because widgets may have moved."""
        self._update_mouse_over(screen)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        self.display_update(screen, renderable)

    def _handle_exception(self, error: Exception) -> None:
        self.handle_exception(error)

    def _fatal_error(self) -> None:
        self.show_exception()


class TextualScreen(SteadyScreen[ScreenResultType]):
    """Textual's screen, with public names for its private parts."""

    has_new_layout = True  # widgets were placed since `take_changes` was last called

    def on_unmount(self) -> None:
        """Clear a cache of Textual, because its keys keep what removed widgets drew.

        The cache has up to 1024 entries. The key of an entry holds all lines that its widget drew.
        """
        StylesCache.get_inner_outer.cache_clear()

    def show_changes(self) -> None:
        """Render the changes, and make the app draw them."""
        super()._compositor_refresh()

    def take_changes(self) -> set[Region]:
        """Return the regions that changed, and mark them as drawn.

        If widgets were placed again, the whole screen may have changed.
        """
        if self.has_new_layout:
            changed = {self._compositor.size.region}
        else:
            changed = self.changed_regions()
        self.has_new_layout = False
        self._compositor._dirty_regions.clear()
        self._dirty_widgets.clear()
        return changed

    def changed_regions(self) -> set[Region]:
        """Return the regions that changed, widened to the edges of widgets.

        A cut at another place could leave half of a wide character.
        """
        rows_by_edges: dict[tuple[int, int], set[int]] = {}
        for region in self._compositor._dirty_regions:
            for y in region.line_range:
                cuts = self._compositor.cuts[y]
                left = cuts[bisect_right(cuts, region.x) - 1]
                right = cuts[bisect_left(cuts, region.right)]
                rows_by_edges.setdefault((left, right), set()).add(y)
        regions: set[Region] = set()
        for (left, right), rows in rows_by_edges.items():
            for top, height in _group_rows(rows):
                regions.add(Region(left, top, right - left, height))
        return regions

    def take_breakpoints(self) -> None:
        """Set the CSS classes for the current size before the widgets are mounted.

        If Textual set them later, it would compute the styles of all widgets a second time.
        """
        width, height = self.app.size
        horizontal = self._get_breakpoint_classes(width, self.HORIZONTAL_BREAKPOINTS or [])
        vertical = self._get_breakpoint_classes(height, self.VERTICAL_BREAKPOINTS or [])
        self.add_class(*horizontal, *vertical)

    def forget_unreported_sizes(self) -> None:
        """Make Textual report their size to widgets that it placed without a report.

        If some code asks where a widget is before the layout, Textual places new widgets without
        reporting their sizes. The layout then takes these widgets for known, and reports only
        changes. So they are removed from the known places.
        """
        places = self._compositor._full_map
        for widget, place in list(places.items()):
            if place.region.size != widget.outer_size:
                del places[widget]

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        self.forget_unreported_sizes()
        self.has_new_layout = True
        super()._refresh_layout(size, scroll)

    def _compositor_refresh(self) -> None:
        self.show_changes()


class TextualModal(ModalScreen[ScreenResultType], SteadyScreen[ScreenResultType]):
    """Textual's screen above another screen."""


class TextualPalette(SteadyPalette):
    """Textual's command palette."""

    def _action_command_list(self, action: str) -> None:
        """Move in the list of commands, unless the list is empty.

        It is empty before a command is found, or if the terminal has no room for a line.
        """
        with suppress(KeyError):
            super()._action_command_list(action)


class TextualDriver(LinuxDriver):
    """Textual's driver of a terminal, with public names for its private parts."""

    @property
    def has_opened(self) -> bool:
        """Whether this driver has ever taken the terminal."""
        return self._key_thread is not None

    @property
    def is_to_resume(self) -> bool:
        """Whether a stop closed the screens, so that they must be opened again."""
        return self._must_signal_resume

    @is_to_resume.setter
    def is_to_resume(self, is_so: bool) -> None:
        self._must_signal_resume = is_so

    def heed_stop(self) -> None:
        """Give the terminal back and stop this process."""
        super()._sigtstp_application()

    def heed_continue(self) -> None:
        """Open the screens again."""
        super()._sigcont_application()

    def ask_about_frames(self) -> None:
        """Ask the terminal whether it can show a whole frame at once (synchronized output)."""
        super()._request_terminal_sync_mode_support()

    def ask_about_size(self) -> None:
        """Ask the terminal to report its size between the keys."""
        super()._query_in_band_window_resize()

    def terminal_size(self) -> tuple[int, int]:
        """Return the columns and rows of the terminal."""
        return super()._get_terminal_size()

    def _sigtstp_application(self, *_: Any) -> None:
        self.heed_stop()

    def _sigcont_application(self, *_: Any) -> None:
        self.heed_continue()

    def _request_terminal_sync_mode_support(self) -> None:
        self.ask_about_frames()

    def _query_in_band_window_resize(self) -> None:
        self.ask_about_size()

    def _get_terminal_size(self) -> tuple[int, int]:
        return self.terminal_size()


class KeyParser(XTermParser):
    """Textual's parser of the text that a terminal sends."""

    @property
    def is_waiting(self) -> bool:
        """Whether the last sequence may be incomplete."""
        return self._timeout_time is not None

    def stop_waiting(self) -> Iterable[Message]:
        """Return the events of the last sequence without waiting for more of it."""
        self._timeout_time = 0.0
        return self.tick()
