"""What the mouse points at."""

from textual.geometry import Offset
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget


class Pointed(Screen[ScreenResultType]):
    """A screen on which the mouse points at nothing that is being taken away."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        widget, offset = super().get_widget_and_offset_at(x, y)
        return (widget, offset) if widget is None or widget.is_attached else (None, None)
