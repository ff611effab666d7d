"""A widget for any picture of `tuilab.drawings`: gives its roles the theme's colours and repaints only rows that changed."""

from collections.abc import Callable, Hashable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tuilab.drawings.picture import ROLES, Picture
from tuilab.drawings.symbols import ASCII, BRAILLE, Symbols
from tuilab.text import is_utf8_terminal

Paint = Callable[[int, int, Symbols, bool], Picture]
"""Draws into a width and a height, in some symbols; whether there are colours to shade with."""


class Drawing(Widget):
    """Shows what `paint` draws, and draws it again when its data or the size changed."""

    # Colours of arms are told apart by every kind of colour vision (after Okabe and Ito), and never carry meaning alone.
    DEFAULT_CSS = """
    Drawing {
        height: 1fr; width: 1fr;
        & > .drawing--arm0 { color: #6ab7f5; }
        & > .drawing--arm1 { color: #f0a040; }
        & > .drawing--arm2 { color: #3fc9a0; }
        & > .drawing--arm3 { color: #e391c8; }
        & > .drawing--arm4 { color: #efe25a; }
        & > .drawing--arm5 { color: #ff7d55; }
        & > .drawing--tone0 { color: #440154; }
        & > .drawing--tone1 { color: #46327e; }
        & > .drawing--tone2 { color: #365c8d; }
        & > .drawing--tone3 { color: #277f8e; }
        & > .drawing--tone4 { color: #1fa187; }
        & > .drawing--tone5 { color: #4ac16d; }
        & > .drawing--tone6 { color: #a0da39; }
        & > .drawing--tone7 { color: #fde725; }
        & > .drawing--axis { color: $foreground 35%; }
        & > .drawing--bad { color: $text-error; text-style: bold; }
        & > .drawing--band { color: $foreground 30%; }
        & > .drawing--cursor { color: $text-accent; text-style: bold; }
        & > .drawing--grid { color: $foreground 20%; }
        & > .drawing--guide { color: $text-warning; }
        & > .drawing--label { color: $foreground 60%; }
        & > .drawing--muted { color: $foreground 60%; }
        & > .drawing--raw { color: $foreground 30%; }
        & > .drawing--title { color: $foreground; text-style: bold; }
        & > .drawing--value { color: $foreground; }
    }
    Drawing:light {
        & > .drawing--arm0 { color: #0062b8; }
        & > .drawing--arm1 { color: #a85800; }
        & > .drawing--arm2 { color: #007a5c; }
        & > .drawing--arm3 { color: #a8327e; }
        & > .drawing--arm4 { color: #746800; }
        & > .drawing--arm5 { color: #c23a10; }
    }
    Drawing:ansi {
        & > .drawing--arm0 { color: ansi_cyan; }
        & > .drawing--arm1 { color: ansi_yellow; }
        & > .drawing--arm2 { color: ansi_green; }
        & > .drawing--arm3 { color: ansi_magenta; }
        & > .drawing--arm4 { color: ansi_blue; }
        & > .drawing--arm5 { color: ansi_red; }
        & > .drawing--bad { color: ansi_red; }
        & > .drawing--cursor { color: ansi_default; }
        & > .drawing--guide { color: ansi_yellow; }
        & > .drawing--title, & > .drawing--value { color: ansi_default; }
        & > .drawing--axis, & > .drawing--band, & > .drawing--grid { color: ansi_default; text-style: dim; }
        & > .drawing--label, & > .drawing--muted, & > .drawing--raw { color: ansi_default; text-style: dim; }
    }
    Drawing:ansi:light {
        & > .drawing--arm0 { color: ansi_blue; }
        & > .drawing--arm1 { color: ansi_magenta; }
        & > .drawing--arm2 { color: ansi_green; }
        & > .drawing--arm3 { color: ansi_cyan; }
        & > .drawing--arm4 { color: ansi_red; }
        & > .drawing--arm5 { color: ansi_yellow; }
        & > .drawing--guide { color: ansi_magenta; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"drawing--{role}" for role in ROLES}

    def __init__(
        self, *, name: str | None = None, id: str | None = None, classes: str | None = None, symbols: Symbols | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._symbols = symbols
        self._paint: Paint | None = None
        self._version: Hashable = None
        self._drawn: Hashable = None  # the version, size and symbols of the picture
        self._picture = Picture(0, ())
        self._looks: dict[str, Style] = {}

    def show(self, paint: Paint, version: Hashable) -> None:
        """Show what `paint` draws; it is called again only when `version` or the size is another one."""
        self._paint, self._version = paint, version
        self.redraw()

    def use_symbols(self, symbols: Symbols) -> None:
        """Draw with other symbols from now on."""
        self._symbols = symbols
        self.redraw()

    def redraw(self) -> None:
        """Draw again if there is anything new, and repaint the rows that differ."""
        old = self._picture
        if not self._bring_up_to_date():
            return
        new = self._picture
        if (old.width, len(old.rows)) != (new.width, len(new.rows)):
            self.refresh()
            return
        changed = [y for y, (was, row) in enumerate(zip(old.rows, new.rows, strict=True)) if was != row]
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
        """The characters to draw with: those that were asked for, else the app's, else what the locale allows."""
        chosen = self._symbols or getattr(self.app, "symbols", None)
        return chosen or (BRAILLE if is_utf8_terminal() else ASCII)

    @property
    def has_shades_of_colour(self) -> bool:
        """Whether a picture can be made of colours: with 16 of them, or none, it is made of shaded characters."""
        has_many = self.app.console.color_system in ("truecolor", "256")
        return has_many and not self.app.no_color and not self.app.native_ansi_color

    @property
    def picture_text(self) -> str:
        """What is shown, as plain text."""
        return self._picture.text

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if y >= len(self._picture.rows):
            return Strip.blank(width, self.rich_style)
        strip = Strip([Segment(text, self._look(role)) for text, role in self._picture.rows[y]])
        return strip.adjust_cell_length(width, self.rich_style)

    def render_lines(self, crop: Region) -> list[Strip]:
        self._bring_up_to_date()  # here, because Textual does not always tell a new widget its first size
        return super().render_lines(crop)

    def on_resize(self) -> None:
        self.redraw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()
        self.call_later(self.redraw)

    def _look(self, role: str) -> Style:
        look = self._looks.get(role)
        if look is None:
            look = self._looks[role] = self._resolved(role)
        return look

    def _resolved(self, role: str) -> Style:
        """Return the style of a role; of `a on b`, the colour of a on the colour of b."""
        name, _, ground = role.partition(" on ")
        if not name:
            return self.rich_style
        style = self.get_component_rich_style(f"drawing--{name}")
        if not ground:
            return style
        return style + Style(bgcolor=self.get_component_rich_style(f"drawing--{ground}").color)
