"""Alert a user who looks elsewhere: by bell, desktop notification (OSC 9), or terminal title.

TUILAB_ALERTS selects the kinds of alerts, for example `TUILAB_ALERTS=bell,title`, or `none`.
If it is not set, all kinds are used.
"""

import os
import subprocess

from tuilab.errors import UsageError
from tuilab.text.display import join, show, why_ascii

KINDS = ("bell", "notification", "title")
SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"


def chosen() -> tuple[str, ...]:
    """Return the kinds of alerts that the user wants.

    Raise UsageError if TUILAB_ALERTS names an unknown kind.
    """
    value = os.environ.get("TUILAB_ALERTS", ",".join(KINDS))
    words = [word.strip() for word in value.split(",")]
    for word in words:
        if word not in ("", "none", *KINDS):
            raise UsageError(
                f"TUILAB_ALERTS takes {join(KINDS)}, separated by commas, or none; not"
                f" {show(word, 60)}"
            )
    return tuple(kind for kind in KINDS if kind in words)


def alert(text: str) -> str:
    """Return the characters that make the terminal alert the user with a text.

    They are empty if the user wants no alerts. Raise UsageError as `chosen` does.
    """
    message = f"tuilab: {show(text, 100)}"
    if why_ascii():
        message = message.encode("ascii", "replace").decode()
    kinds = chosen()
    sequences = ""
    if "title" in kinds and not why_ascii().startswith("TERM"):
        sequences += f"\x1b]2;{message}\x07"
    if "notification" in kinds:
        sequences += _notification(message)
    if "bell" in kinds:
        sequences += "\x07"
    return sequences


def _notification(message: str) -> str:
    """Return the escape sequence of a desktop notification.

    It is empty if the terminal would print the sequence, or if tmux would not pass it on.
    """
    if why_ascii().startswith("TERM"):
        return ""
    if not os.environ.get("TMUX"):
        return f"\x1b]9;{message}\x07"
    if not _tmux_passes_on():
        return ""
    return f"\x1bPtmux;\x1b\x1b]9;{message}\x07\x1b\\"


def _tmux_passes_on() -> bool:
    """Return whether tmux is set to pass such sequences on to the outer terminal.

    Old versions of tmux lack the setting and always pass them on. They get no sequence, because
    they may not find where it ends.
    """
    try:
        done = subprocess.run(
            ["tmux", "show", "-gwv", "allow-passthrough"],
            capture_output=True,
            timeout=1,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.strip() in (b"on", b"all")
