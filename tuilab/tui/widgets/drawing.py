"""A widget for any picture of `tuilab.drawings`: gives its roles the theme's colours and repaints only rows that changed."""

from collections.abc import Callable, Hashable, Iterable
from typing import Self

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import ASCII, BRAILLE, Symbols
from tuilab.text.display import is_utf8_terminal
from tuilab.tui.looks.styles import looks_on, own_looks

Paint = Callable[[int, int, Symbols, bool], Picture]
"""Draws into a width and a height, in some symbols; whether there are colours to shade with."""


class Drawing(Widget):
    """Shows what `paint` draws, and draws it again when its data or the size changed."""

    DEFAULT_CSS = """
    Drawing { height: 1fr; width: 1fr; }
    """

    def __init__(
        self, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._paint: Paint | None = None
        self._version: Hashable = None
        self._drawn: Hashable = None  # the version, size and symbols of the picture
        self._picture = Picture(0, ())
        self._looks: dict[str, Style] = {}
        self._strips: dict[int, Strip] = {}  # the rows that were rendered, by y
        self._bare_size: Size | None = None  # for which there was nothing around them

    def show(self, paint: Paint, version: Hashable) -> None:
        """Show what `paint` draws; it is called again only when `version` or the size is another one."""
        self._paint, self._version = paint, version
        self.redraw()

    def refresh(self, *regions: Region, **how: bool) -> Self:
        """Render what is in some regions again, or all, around which there may be something else."""
        for region in regions:
            for y in region.line_range:
                self._strips.pop(y, None)
        if not regions:
            self._strips.clear()
            self._bare_size = None
        return super().refresh(*regions, **how)

    def get_selection(self, selection: Selection) -> None:
        """Hand on nothing of a text that the mouse has selected across it: it is none."""

    def as_text(self) -> str:
        """Return what is drawn, as lines."""
        return "\n".join("".join(text for text, _ in row).rstrip() for row in self._picture.rows)

    def redraw(self) -> None:
        """Draw again if there is anything new, and repaint the rows that differ."""
        old = self._picture
        if not self._bring_up_to_date():
            return
        new = self._picture
        if (old.width, len(old.rows)) != (new.width, len(new.rows)):
            self.refresh()
            return
        changed = [
            y for y, (was, row) in enumerate(zip(old.rows, new.rows, strict=True)) if was != row
        ]
        if changed:
            self.refresh(*(Region(0, y, new.width, 1) for y in changed))

    def _bring_up_to_date(self) -> bool:
        """Make the picture that is wanted now, unless there it is; say whether it was made."""
        width, height = self.content_size
        wanted = (self._version, width, height, self.symbols, self.has_shades_of_colour)
        if self._paint is None or not width or not height or wanted == self._drawn:
            return False
        self._picture = self._paint(width, height, self.symbols, self.has_shades_of_colour)
        self._drawn = wanted
        return True

    @property
    def symbols(self) -> Symbols:
        """The characters to draw with: the app's, else what the locale allows."""
        chosen: Symbols | None = getattr(self.app, "symbols", None)
        return chosen or (BRAILLE if is_utf8_terminal() else ASCII)

    @property
    def has_shades_of_colour(self) -> bool:
        """Whether a picture can be made of colours: with 16 of them, or none, it is made of shaded characters."""
        has_many = self.app.console.color_system in ("truecolor", "256")
        return has_many and not self.app.no_color and not self.app.native_ansi_color

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if y >= len(self._picture.rows):
            return Strip.blank(width, self.rich_style)
        strip = Strip([Segment(text, self._look(role)) for text, role in self._picture.rows[y]])
        return strip.adjust_cell_length(width, self._look(""))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render rows as they are where there is nothing around them: Textual looks that up again for each that changed."""
        if self.outer_size != self._bare_size:
            if (
                self._bring_up_to_date()
            ):  # here, because Textual does not always tell a new widget its first size
                self._strips.clear()
            if self.outer_size != self.content_size:
                return super().render_lines(crop)
            self._bare_size = self.outer_size
        return [self._strip(y).crop(*crop.column_span) for y in crop.line_range]

    def _strip(self, y: int) -> Strip:
        if y not in self._strips:
            strip = self.render_line(y)
            if y >= len(self._picture.rows):
                return strip  # as wide as the widget is, which may not be drawn again
            self._strips[y] = strip
        return self._strips[y]

    def on_resize(self) -> None:
        self.redraw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()
        self._strips.clear()
        self._bare_size = None
        self.call_later(self.redraw)

    def _look(self, role: str) -> Style:
        """Return the style of a role; of `a on b`, the colour of a on the colour of b."""
        if not self._looks:
            ours = self.rich_style
            looks = {"": ours} | {
                name: ours + look for name, look in self._looks_of_theme().items()
            }
            self._looks = dict(zip(looks, self._filtered(looks.values()), strict=True))
        if role not in self._looks:
            name, _, ground = role.partition(" on ")
            self._looks[role] = self._looks[name] + Style(bgcolor=self._looks[ground].color)
        return self._looks[role]

    def _filtered(self, looks: Iterable[Style]) -> list[Style]:
        """Return styles as the app has all colours changed: in the widget's rows, which Textual need not go through then."""
        segments = [Segment("", look) for look in looks]
        for one in self.get_line_filters():
            segments = one.apply(segments, self.background_colors[1])
        return [segment.style or Style.null() for segment in segments]

    def _looks_of_theme(self) -> dict[str, Style]:
        theme = self.app.current_theme
        if self.app.native_ansi_color:
            return own_looks(is_dark=theme.dark)
        return looks_on(self.background_colors[1], self.app.theme_variables, is_dark=theme.dark)
