"""Draw an app at the pace of its terminal: send only changed cells, and only when they can arrive.

Textual sends every change as it comes. Here a change only marks the screen. The frame is composed
when the terminal has shown the last frame. So a slow link gets fewer frames, and no outdated ones.
"""

import asyncio
import contextvars
import time
import traceback
from collections.abc import Callable
from typing import Any, cast
from weakref import ref

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS
from rich.segment import Segment, Segments
from textual.app import ReturnType
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from tuilab.text.display import is_utf8_terminal, show_lines
from tuilab.tui.terminal.delayed_call import later
from tuilab.tui.terminal.driver import Terminal
from tuilab.tui.terminal.frames import Frames
from tuilab.tui.terminal.textual_parts import TextualApp, TextualScreen, at_work, rendered_parts

_SHORTEST_S = 1 / 30  # between two frames
_LAID_OUT_S = 0.1  # from a change of the size to the next frame
_RECHECK_S = 1.0  # between two checks of the terminal, in case an answer is lost
_SLOW_S = 0.5  # a frame that takes so long to arrive means a slow link


class PacedApp(TextualApp[ReturnType]):
    """The app that shows every screen."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(driver_class=Terminal, **kwargs)
        self.terminal: Terminal | None = None  # the driver sets it; a headless app has none
        self._frames: Frames | None = None
        self._handled_size_reports = 0
        self._is_due = False
        self._drawn_s = 0.0  # when the last frame was drawn; 0 before the first one
        self._timer: asyncio.TimerHandle | None = None
        self._drawing_context: contextvars.Context | None = None
        self._changed: set[Region] | None = None  # since the last frame; None: maybe everything
        # Returns the screen of the last frame; None if there is none any more.
        self._drawn_screen: Callable[[], Screen[Any] | None] = lambda: None
        self._after_frame: list[Callable[[], object]] = []  # called after the first frame

    @property
    def has_terminal(self) -> bool:
        return self.terminal is not None

    @property
    def bytes_sent(self) -> int:
        """Bytes that were sent to the terminal; 0 if there is none."""
        if self.terminal is None:
            return 0
        return self.terminal.bytes_sent

    @property
    def is_link_slow(self) -> bool:
        """Whether the last frame took long to arrive at the terminal."""
        return self.terminal is not None and self.terminal.round_trip_s > _SLOW_S

    @property
    def is_stalled(self) -> bool:
        """Whether the terminal accepts nothing, so that the user could not see a new frame."""
        return self.terminal is not None and self.terminal.is_stalled

    @property
    def is_terminal_given_back(self) -> bool:
        """Whether the terminal was restored; that fails if it accepts nothing."""
        return self.terminal is None or self.terminal.is_given_back

    @property
    def draws_frames(self) -> bool:
        """Whether a screen need not render its updates.

        The app composes the frames when the terminal is ready. A headless app shows no frames.
        """
        return self.is_headless or self.terminal is not None

    def write_to_terminal(self, data: str) -> None:
        """Send text that is not part of a frame."""
        if self.terminal is not None:
            self.terminal.write(data)

    def redraw(self) -> None:
        """Send the whole frame again, because the terminal may show something else."""
        self._frames = None
        self._mark()

    def call_after_first_frame(self, act: Callable[[], object]) -> None:
        """Call `act` after the first frame, because threads that start earlier would delay it."""
        if self.terminal is None:
            self.call_later(act)  # there will be no frame
        elif self._drawn_s:
            self.call_after_refresh(act)
        else:
            self._after_frame.append(act)

    def on_resize(self) -> None:
        """Send the whole frame again after the layout for a new size of the terminal.

        Cells that arrived while the terminal had another size are out of place. Textual also
        reports the first size as a change, more than once; these reports are ignored.
        """
        size_reports = self.terminal.size_reports if self.terminal else 0
        if self._handled_size_reports == size_reports:
            return
        self._handled_size_reports = size_reports
        self._frames = None
        later(self, _LAID_OUT_S, self._mark)

    def handle_exception(self, error: Exception) -> None:
        """Leave because of an exception that nobody caught.

        Ignore an exception if the app is leaving, or if the screen was closed while it opened.
        """
        if self.return_code is None and not _is_taken_away(at_work(self)):
            super().handle_exception(error)

    def show_exception(self) -> None:
        """Leave with a plain traceback.

        Textual's own traceback would show all local variables, some of them with text of a run.
        """
        self.panic(Segments([Segment(show_lines(traceback.format_exc()))]))

    def display_update(self, screen: Screen[Any], update: Any) -> None:
        """Note the changes of a screen, and draw the next frame when the terminal is ready.

        Without a terminal, or without an update, do what Textual does.
        """
        if self.terminal is None or update is None:
            super().display_update(screen, update)
            return
        self.terminal.on_ready = self._on_ready
        self.terminal.on_start = self.redraw
        self.terminal.settle = self.settle
        self._drawing_context = contextvars.copy_context()
        self._note_changed(screen, update)
        self._mark()
        self.post_display_hook()

    def _note_changed(self, screen: Screen[Any], update: Any) -> None:
        """Note which regions the next frame must compose again.

        If the screen does not name its regions, or was not in the last frame, all are composed.
        """
        has_regions = isinstance(update, set) and screen is self._drawn_screen()
        if has_regions and self._changed is not None:
            self._changed = self._changed | update
        else:
            self._changed = None

    @property
    def _colours(self) -> ColorSystem | None:
        """The number of colours that the terminal gets; None without colours.

        Without colours, bold, underlined or reverse text marks what stands out.
        """
        if self.no_color:
            return None
        return COLOR_SYSTEMS.get(self.console.color_system or "")

    def _mark(self) -> None:
        self._is_due = True
        self._on_ready()

    def _on_ready(self) -> None:
        """Draw as soon as the terminal and the frame rate allow, if something has changed."""
        if not self._is_due or self._drawing_context is None:
            return
        is_ready = self.terminal is not None and self.terminal.is_ready
        if self._timer is not None:
            if not is_ready:
                return  # else every change would postpone the next check
            self._timer.cancel()
        delay_s = _RECHECK_S
        if is_ready:
            delay_s = max(self._drawn_s + _SHORTEST_S - time.monotonic(), 0)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(delay_s, self._draw, context=self._drawing_context)

    def _draw(self) -> None:
        """Send the next frame if something has changed; if the terminal is not ready, try later.

        After the first frame, call the functions that wait for it.
        """
        self._timer = None
        terminal = self.terminal
        if not self._is_due or not self.is_running or self.is_closed or terminal is None:
            return
        if not terminal.is_ready or self.is_in_batch:
            self._on_ready()
            return
        self._is_due = False
        self._drawn_s = time.monotonic()
        screen = self.screen
        is_part = self._frames is not None and screen is self._drawn_screen()
        changed = self._changed if is_part else None
        self._changed = set()
        self._drawn_screen = ref(screen)
        try:
            parts = rendered_parts(screen, changed)
        except Exception as problem:
            self.handle_exception(problem)
            return
        frames = self._frames or Frames(self._colours, is_utf8=is_utf8_terminal())
        frame = frames.change(parts)
        if frame:
            x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
            terminal.send_frame(f"{frame}\x1b[{y + 1};{x + 1}H")
        for act in self._after_frame:
            self.call_later(act)
        self._after_frame = []
        # If the size has changed meanwhile, this frame does not fit. The next one is sent whole.
        is_same_size = self.screen.outer_size == terminal.terminal_size()
        self._frames = frames if is_same_size else None


class FrameScreen(TextualScreen[ScreenResultType]):
    """A screen whose changes the app composes into frames."""

    def show_changes(self) -> None:
        """Make the app draw; Textual would render an update here that is never sent."""
        app = cast("PacedApp[Any]", self.app)
        if not self.is_seen:
            self.take_changes()  # Textual would draw the screen above this one again
        elif self is app.screen and app.draws_frames:
            app.display_update(self, self.take_changes())
            app.move_mouse(self)
        else:
            super().show_changes()


def _is_taken_away(pump: MessagePump) -> bool:
    """Return whether a widget belongs to a screen that is no longer open, or to no screen."""
    if not isinstance(pump, Widget):
        return False
    for node in pump.ancestors_with_self:
        if isinstance(node, Screen):
            return node not in pump.app.screen_stack
    return True
