"""Copies text to the user's clipboard as far as that can be done from here, and says how far."""

import base64
import contextlib
import os
import subprocess
from collections.abc import Callable

from tuilab.text.display import plural, show


def copy(text: str, write: Callable[[str], None]) -> str:
    """Copy and return what was done, in a sentence.

    Inside tmux an escape sequence of ours is lost by default; tmux itself passes a buffer on to the outer terminal.
    """
    if os.environ.get("TMUX"):
        with contextlib.suppress(
            OSError, subprocess.SubprocessError
        ):  # no tmux on this side of a container, or one that hangs
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
    """Return what was copied; of many lines the first words, and how many they are."""
    count = text.count("\n") + 1
    return (
        text if count == 1 else f"{plural(count, 'line')}, starting with {show(text.strip(), 40)}"
    )
