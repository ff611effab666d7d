"""What every screen of tuilab has in common: a heading, a body, and the line of keys."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.events import ScreenResume
from textual.screen import Screen

from tuilab.tui.widgets.heading import Heading
from tuilab.tui.widgets.keybar import KeyBar

if TYPE_CHECKING:
    from tuilab.tui.app import TuilabApp
    from tuilab.tui.desk import Desk


class Page(Screen[None]):
    """A screen that fills its body in `compose_body`; its keys are those that `keys.py` has for its place."""

    PLACE: ClassVar[str] = ""
    AUTO_FOCUS = ""
    _was_open = False

    def compose(self) -> ComposeResult:
        yield Heading(Content.from_text(f"tuilab  {self.PLACE}", markup=False))
        yield from self.compose_body()
        yield KeyBar(self.PLACE)

    def compose_body(self) -> ComposeResult:
        """Yield what stands between the heading and the keys."""
        yield from ()

    @on(ScreenResume)
    def _keep_styles(self, event: ScreenResume) -> None:
        """Look again at the styles, unless every widget has just been given them: that takes as long as drawing."""
        event.refresh_styles = self._was_open
        self._was_open = True

    def _compositor_refresh(self) -> None:
        """Have the app draw; what Textual would render here for the terminal is never sent."""
        if self is self.app.screen and self.lab.draws_frames:
            self._compositor._dirty_regions.clear()
            self._dirty_widgets.clear()
            self.lab._display(self, "")
            self.lab._update_mouse_over(self)
        else:
            super()._compositor_refresh()

    @property
    def lab(self) -> "TuilabApp":
        """The app, as what it is."""
        return cast("TuilabApp", self.app)

    @property
    def desk(self) -> "Desk":
        return self.lab.desk

    @property
    def heading(self) -> Heading:
        return self.query_one(Heading)

    @property
    def keybar(self) -> KeyBar:
        return self.query_one(KeyBar)

    def command(self) -> str:
        """Return the command line that does what this screen does; every page has one."""
        return "tuilab"

    def action_copy_command(self) -> None:
        """Copy the command line, and say what was really done."""
        self.lab.copy(self.command())
