"""Copy text to the user's clipboard, and report how far the copy got."""

import base64
import contextlib
import os
import subprocess
from collections.abc import Callable

from tuilab.text.display import plural, show


def copy(text: str, write: Callable[[str], None]) -> str:
    """Copy a text, and return a sentence that reports what was done.

    By default tmux drops our escape sequence. But tmux passes its own buffer on to the outer
    terminal.
    """
    if os.environ.get("TMUX"):
        # The `tmux` program may be missing inside a container, or may hang.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["tmux", "load-buffer", "-w", "-"],
                input=_bytes(text),
                capture_output=True,
                timeout=2,
                check=True,
            )
            return (
                "copied to tmux's buffer (prefix ] pastes it) and offered to the terminal:"
                f" {_told(text)}"
            )
    write(f"\x1b]52;c;{base64.b64encode(_bytes(text)).decode()}\x07")
    return f"offered to the terminal, which may refuse: {_told(text)}"


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def _told(text: str) -> str:
    """Return the copied text; if it has several lines, their number and the first words."""
    count = text.count("\n") + 1
    return (
        text if count == 1 else f"{plural(count, 'line')}, starting with {show(text.strip(), 40)}"
    )
