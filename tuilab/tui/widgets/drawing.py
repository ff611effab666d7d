"""A widget for any picture of `tuilab.drawings`, in the colours of the theme."""

from collections.abc import Callable, Hashable
from typing import Any, Self

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import ASCII, BRAILLE, Symbols
from tuilab.text.display import is_utf8_terminal
from tuilab.tui.looks.styles import ansi_styles, theme_styles

Paint = Callable[[int, int, Symbols, bool], Picture]
"""A function that draws into a width and a height, with symbols, with or without colours."""


def symbols_of(app: "App[Any]") -> Symbols:
    """Return the characters to draw with: those of the app, else those that the locale allows."""
    symbols: Symbols | None = getattr(app, "symbols", None)
    if symbols:
        return symbols
    return BRAILLE if is_utf8_terminal() else ASCII


class Drawing(Widget):
    """Shows a picture and draws it again when its data or the size changes.

    Only the rows that differ are rendered again.
    """

    DEFAULT_CSS = """
    Drawing { height: 1fr; width: 1fr; }
    """

    def __init__(
        self, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._paint: Paint | None = None
        self._version: Hashable = None
        self._drawn_version: Hashable = None  # the version, size and symbols of the picture
        self._picture = Picture(0, ())
        self._styles_by_role: dict[str, Style] = {}
        self._strips: dict[int, Strip] = {}  # the rendered rows, by y
        self._bare_size: Size | None = None  # the size at which the widget has no border or padding

    def show(self, paint: Paint, version: Hashable) -> None:
        """Show what `paint` draws. It is called only if `version` or the size has changed."""
        self._paint = paint
        self._version = version
        self.redraw()

    def refresh(self, *regions: Region, **how: bool) -> Self:
        """Render some regions again. Without regions, render all, and look for a border again."""
        for region in regions:
            for y in region.line_range:
                self._strips.pop(y, None)
        if not regions:
            self._strips.clear()
            self._bare_size = None
        return super().refresh(*regions, **how)

    def get_selection(self, selection: Selection) -> None:
        """Return nothing for a selection by mouse across the widget: a picture has no text."""

    def as_text(self) -> str:
        """Return the picture as lines of text."""
        lines = []
        for row in self._picture.rows:
            line = "".join(text for text, _ in row)
            lines.append(line.rstrip())
        return "\n".join(lines)

    def redraw(self) -> None:
        """Draw again if anything has changed, and render the rows that differ."""
        old = self._picture
        if not self._bring_up_to_date():
            return
        new = self._picture
        if (old.width, len(old.rows)) != (new.width, len(new.rows)):
            self.refresh()
            return
        changed = []
        for y, (old_row, new_row) in enumerate(zip(old.rows, new.rows, strict=True)):
            if old_row != new_row:
                changed.append(Region(0, y, new.width, 1))
        if changed:
            self.refresh(*changed)

    def _bring_up_to_date(self) -> bool:
        """Draw the picture unless it is up to date. Return whether it was drawn."""
        width, height = self.content_size
        if self._paint is None or not width or not height:
            return False
        symbols = self.symbols
        has_shades = self.has_shades_of_colour
        current = (self._version, width, height, symbols, has_shades)
        if current == self._drawn_version:
            return False
        self._picture = self._paint(width, height, symbols, has_shades)
        self._drawn_version = current
        return True

    @property
    def symbols(self) -> Symbols:
        """The characters to draw with: those of the app, else those that the locale allows."""
        return symbols_of(self.app)

    @property
    def has_shades_of_colour(self) -> bool:
        """Whether pictures are shaded with colours. With 16 or fewer, characters shade them."""
        has_many = self.app.console.color_system in ("truecolor", "256")
        return has_many and not self.app.no_color and not self.app.native_ansi_color

    def render_line(self, y: int) -> Strip:
        """Return a row of the picture as wide as the widget; below the picture, a blank one."""
        width = self.content_size.width
        if y >= len(self._picture.rows):
            return Strip.blank(width, self.rich_style)
        row = self._picture.rows[y]
        strip = Strip([Segment(text, self._style(role)) for text, role in row])
        return strip.adjust_cell_length(width, self._style(""))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render the rows alone if the widget has no border or padding.

        Textual would compute both again for each changed row.
        """
        if self.outer_size != self._bare_size:
            # Drawn here, because Textual does not always send a new widget its first size.
            if self._bring_up_to_date():
                self._strips.clear()
            if self.outer_size != self.content_size:
                return super().render_lines(crop)
            self._bare_size = self.outer_size
        return [self._strip(y).crop(*crop.column_span) for y in crop.line_range]

    def _strip(self, y: int) -> Strip:
        """Return a row, which is rendered only once until it changes."""
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
        self._styles_by_role.clear()
        self._strips.clear()
        self._bare_size = None
        self.call_later(self.redraw)

    def _style(self, role: str) -> Style:
        """Return the style of a role. The role `a on b` has the colour of b as its background."""
        if not self._styles_by_role:
            self._styles_by_role = self._make_styles()
        if role not in self._styles_by_role:
            name, _, ground = role.partition(" on ")
            background = Style(bgcolor=self._styles_by_role[ground].color)
            self._styles_by_role[role] = self._styles_by_role[name] + background
        return self._styles_by_role[role]

    def _make_styles(self) -> dict[str, Style]:
        """Return the styles of all roles, changed by the filters of the app, such as no colour.

        The filters are applied here, so that Textual need not apply them to each row.
        """
        own_style = self.rich_style
        styles = {"": own_style}
        for role, style in self._theme_styles().items():
            styles[role] = own_style + style
        segments = [Segment("", style) for style in styles.values()]
        for line_filter in self.get_line_filters():
            segments = line_filter.apply(segments, self.background_colors[1])
        filtered = [segment.style or Style.null() for segment in segments]
        return dict(zip(styles, filtered, strict=True))

    def _theme_styles(self) -> dict[str, Style]:
        """Return the style of each role in the current theme, or in the terminal's own colours."""
        theme = self.app.current_theme
        if self.app.native_ansi_color:
            return ansi_styles(is_dark=theme.dark)
        background = self.background_colors[1]
        return theme_styles(background, self.app.theme_variables, is_dark=theme.dark)
