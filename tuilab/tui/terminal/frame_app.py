"""An app that draws at the terminal's pace: only the cells that changed, never a frame that would have to wait.

Textual hands over every change as it comes. Here a change only marks the screen; the whole frame is composed when the
terminal has shown the last one, so that on a slow link frames are left out and none is ever old.
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
_LAID_OUT_S = 0.1  # after another size of the terminal is told
_RECHECK_S = 1.0  # for answers that are lost
_SLOW_S = 0.5  # a frame that takes so long to arrive means a slow link


class PacedApp(TextualApp[ReturnType]):
    """What every screen is shown by."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(driver_class=Terminal, **kwargs)
        self.terminal: Terminal | None = None  # which says so itself; a headless app has none
        self._frames: Frames | None = None
        self._sizes_known = 0
        self._is_due = False
        self._drawn = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._drawing_context: contextvars.Context | None = None
        self._changed: set[Region] | None = None  # since the last frame; None: all may have
        self._drawn_screen: Callable[[], Screen[Any] | None] = lambda: (
            None
        )  # that the last frame was of
        self._after_frame: list[Callable[[], object]] = []  # what waits for the first one

    @property
    def has_terminal(self) -> bool:
        return self.terminal is not None

    @property
    def bytes_sent(self) -> int:
        """Bytes that the terminal was sent; 0 where there is none."""
        return self.terminal.bytes_sent if self.terminal else 0

    @property
    def is_link_slow(self) -> bool:
        """Whether the last frame took long to arrive at the terminal."""
        return self.terminal is not None and self.terminal.round_trip_s > _SLOW_S

    @property
    def is_stalled(self) -> bool:
        """Whether the terminal takes nothing: what would be drawn now could not be seen."""
        return self.terminal is not None and self.terminal.is_stalled

    @property
    def is_terminal_given_back(self) -> bool:
        """Whether the terminal was told everything that leaves it as it was; one that takes nothing was not."""
        return self.terminal is None or self.terminal.is_given_back

    @property
    def draws_frames(self) -> bool:
        """Whether a screen need not render updates: frames are composed here when the terminal is ready; or there is none."""
        return self.is_headless or self.terminal is not None

    def write_to_terminal(self, data: str) -> None:
        """Send something that is no part of a frame."""
        if self.terminal is not None:
            self.terminal.write(data)

    def redraw(self) -> None:
        """Send the whole frame again: the terminal may show something else."""
        self._frames = None
        self._mark()

    def call_after_first_frame(self, act: Callable[[], object]) -> None:
        """Have something done when there is something to be seen: threads that begin before that hold it up."""
        if self.terminal is None:
            self.call_later(act)  # there will be no frame
        elif self._drawn:
            self.call_after_refresh(act)
        else:
            self._after_frame.append(act)

    def on_resize(self) -> None:
        """Send the whole frame again when it is laid out: what arrived while the terminal had another size is out of place.

        The size that it has from the start is told as if it were another one, more than once.
        """
        sizes_told = self.terminal.sizes_told if self.terminal else 0
        if self._sizes_known == sizes_told:
            return
        self._sizes_known = sizes_told
        self._frames = None
        later(self, _LAID_OUT_S, self._mark)

    def heed_mistake(self, error: Exception) -> None:
        """Leave because of a mistake; what fails in a screen that was left while it opened, or as we leave, is none."""
        if self.return_code is None and not _is_taken_away(at_work(self)):
            super().heed_mistake(error)

    def show_mistake(self) -> None:
        """Leave with a plain traceback; Textual's own shows every local, text of a run among them."""
        self.panic(Segments([Segment(show_lines(traceback.format_exc()))]))

    def display_update(self, screen: Screen[Any], update: Any) -> None:
        if self.terminal is None or update is None:
            super().display_update(screen, update)
            return
        self.terminal.on_ready, self.terminal.on_start, self.terminal.settle = (
            self._on_ready,
            self.redraw,
            self.settle,
        )
        self._drawing_context = contextvars.copy_context()
        self._note_changed(screen, update)
        self._mark()
        self.post_display_hook()

    def _note_changed(self, screen: Screen[Any], update: Any) -> None:
        """Note which regions are to be composed again, where a screen says so; of any other screen than the last it is all."""
        is_told = isinstance(update, set) and screen is self._drawn_screen()
        self._changed = self._changed | update if is_told and self._changed is not None else None

    @property
    def _colours(self) -> ColorSystem | None:
        """How many colours the terminal is sent; or none: what stands out does so by bold, underlined or reverse."""
        return None if self.no_color else COLOR_SYSTEMS.get(self.console.color_system or "")

    def _mark(self) -> None:
        self._is_due = True
        self._on_ready()

    def _on_ready(self) -> None:
        """Draw as soon as may be, if there is something to draw."""
        if not self._is_due or self._drawing_context is None:
            return
        is_ready = self.terminal is not None and self.terminal.is_ready
        if self._timer is not None:
            if not is_ready:
                return  # or every change would put off looking again
            self._timer.cancel()
        delay_s = max(self._drawn + _SHORTEST_S - time.monotonic(), 0) if is_ready else _RECHECK_S
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(delay_s, self._draw, context=self._drawing_context)

    def _draw(self) -> None:
        self._timer = None
        terminal = self.terminal
        if not self._is_due or not self.is_running or self.is_closed or terminal is None:
            return
        if not terminal.is_ready or self.is_in_batch:
            self._on_ready()
            return
        self._is_due = False
        self._drawn = time.monotonic()
        screen = self.screen
        is_part = self._frames is not None and screen is self._drawn_screen()
        changed = self._changed if is_part else None
        self._changed, self._drawn_screen = set(), ref(screen)
        try:
            parts = rendered_parts(screen, changed)
        except Exception as problem:
            self.heed_mistake(problem)
            return
        frames = self._frames or Frames(self._colours, is_utf8=is_utf8_terminal())
        if frame := frames.change(parts):
            x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
            terminal.send_frame(f"{frame}\x1b[{y + 1};{x + 1}H")
        waiting, self._after_frame = self._after_frame, []
        for act in waiting:
            self.call_later(act)
        self._frames = (
            frames if self.screen.outer_size == terminal.terminal_size() else None
        )  # else it will not fit


class FrameScreen(TextualScreen[ScreenResultType]):
    """A screen whose changes the app composes into frames."""

    def show_changes(self) -> None:
        """Have the app draw; what Textual would render here for the terminal is never sent."""
        app = cast("PacedApp[Any]", self.app)
        if not self.is_seen:
            self.take_changes()  # Textual would paint the screen that covers this one again
        elif self is app.screen and app.draws_frames:
            app.display_update(self, self.take_changes())
            app.move_mouse(self)
        else:
            super().show_changes()


def _is_taken_away(where: MessagePump) -> bool:
    """Whether a widget belongs to a screen that is not open any more, or to none."""
    if not isinstance(where, Widget):
        return False
    screens = [node for node in where.ancestors_with_self if isinstance(node, Screen)]
    return not screens or screens[0] not in where.app.screen_stack
