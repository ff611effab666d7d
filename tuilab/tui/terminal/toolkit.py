"""Choose the app, screen, dialog and palette that the screens are built on.

If Textual has every part that we need, they draw frames at the pace of the terminal. Otherwise they
use Textual's own driver.
"""

from typing import TYPE_CHECKING

from tuilab.tui.terminal.known_textual import why_unknown

if TYPE_CHECKING or not why_unknown():
    from tuilab.tui.terminal.frame_app import FrameScreen as TerminalScreen
    from tuilab.tui.terminal.frame_app import PacedApp as TerminalApp
    from tuilab.tui.terminal.textual_parts import TextualModal as TerminalModal
    from tuilab.tui.terminal.textual_parts import TextualPalette as TerminalPalette
else:
    from tuilab.tui.terminal.plain_app import PlainApp as TerminalApp
    from tuilab.tui.terminal.plain_app import PlainModal as TerminalModal
    from tuilab.tui.terminal.plain_app import PlainPalette as TerminalPalette
    from tuilab.tui.terminal.plain_app import PlainScreen as TerminalScreen

__all__ = ["TerminalApp", "TerminalModal", "TerminalPalette", "TerminalScreen"]
