"""Copy text to the user's clipboard, and report how far the copy got."""

import base64
import os
import subprocess
from collections.abc import Callable

from tuilab.text.display import plural, show


def copy(text: str, write: Callable[[str], None]) -> str:
    """Copy a text, and return a sentence that reports what was done.

    By default tmux drops our escape sequence. But tmux passes its own buffer on to the outer
    terminal.
    """
    data = text.encode(errors="replace")
    copied = _describe_text(text)
    if os.environ.get("TMUX") and _copy_to_tmux(data):
        return f"copied to tmux's buffer (prefix ] pastes it) and offered to the terminal: {copied}"
    encoded = base64.b64encode(data).decode()
    write(f"\x1b]52;c;{encoded}\x07")
    return f"offered to the terminal, which may refuse: {copied}"


def _copy_to_tmux(data: bytes) -> bool:
    """Copy to tmux's buffer and the outer terminal; return whether tmux did it."""
    try:
        subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=data,
            capture_output=True,
            timeout=2,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return False  # the `tmux` program may be missing inside a container, or may hang
    return True


def _describe_text(text: str) -> str:
    """Return the text; if it has several lines, their number and the first words."""
    count = text.count("\n") + 1
    if count == 1:
        return text
    return f"{plural(count, 'line')}, starting with {show(text.strip(), 40)}"
