"""Lines that are as high as they need, else are scrolled and say how many lines are below."""

from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip

from tuilab.tui.widgets.lines import Lines


class Counted(Lines):
    """They can fill the screen, too."""

    ALLOW_MAXIMIZE = True
    DEFAULT_CSS = """
    Counted { height: auto; width: 100%; padding: 0 1; background: $surface; scrollbar-gutter: auto; }
    Counted:focus { border-left: outer $primary; padding: 0 1 0 0; }
    Counted.-maximized { height: 1fr; max-height: 100%; }
    """

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lay_out(width))

    def draw(self, line: Content, width: int, number: int) -> Strip:
        below = len(self._lines) - 1 - number
        if below and number == self.scroll_offset.y + self.size.height - 1:
            more = Content.styled(f"  +{below} {'' if self.has_focus else 'tab '}↓", "bold $text-accent")
            line = line.truncate(width - more.cell_length, ellipsis=True, pad=True) + more
        return super().draw(line, width, number)

    def repaint(self) -> None:
        """Show what there is now."""
        before = len(self._lines)
        self.renew()
        self.refresh(layout=len(self._lines) != before)
