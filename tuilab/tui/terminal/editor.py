"""Run the user's editor; the screens give the terminal back until the editor ends."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from tuilab.errors import UsageError
from tuilab.text.display import show
from tuilab.tui.terminal.foreground import lend_terminal

_TAKES_LINE = {
    "vi", "vim", "nvim", "view", "vis", "kak", "nano", "pico",
    "emacs", "emacsclient", "micro", "joe", "mg", "ne", "jed",
}  # fmt: skip
_TAKES_COLON = {"hx", "helix", "subl", "zed", "code", "codium", "cursor"}  # these take file:line
_WANTS_GOTO = {"code", "codium", "cursor"}


def command(path: str, line: int) -> list[str]:
    """Return the command line that opens a file at a line in the user's editor.

    The editor is VISUAL, else EDITOR, else vi. Raise UsageError if this program does not exist.
    """
    editor = os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip() or "vi"
    try:
        words = shlex.split(editor)
    except ValueError:
        words = []
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"editor {show(editor, 60)} not found; set EDITOR to an installed one, for example"
            " EDITOR=nano"
        )
    return [*words, *_place(os.path.basename(words[0]), os.path.abspath(path), line)]


def _place(editor: str, path: str, line: int) -> list[str]:
    """Return the arguments for a file and a line; an unknown editor gets only the file."""
    if editor in _TAKES_LINE and line > 1:
        return [f"+{line}", path]
    if editor in _TAKES_COLON and line > 1:
        return [*(["--goto"] if editor in _WANTS_GOTO else []), f"{path}:{line}"]
    return [path]


def run(words: Sequence[str]) -> int:
    """Run a program in the foreground of the terminal and return its exit code."""
    return lend_terminal(subprocess.Popen(words, process_group=0))
