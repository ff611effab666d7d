"""Find the user's editor, and the arguments that open a file at a line in it."""

import os
import shlex
import shutil

from tuilab.errors import UsageError
from tuilab.text.display import show

_TAKES_LINE = {
    "vi", "vim", "nvim", "view", "vis", "kak", "nano", "pico",
    "emacs", "emacsclient", "micro", "joe", "mg", "ne", "jed",
}  # fmt: skip
_TAKES_COLON = {"hx", "helix", "subl", "zed"}  # these take file:line
_WANTS_GOTO = {"code", "codium", "cursor"}  # these take file:line after --goto


def command(path: str, line: int) -> list[str]:
    """Return the command line that opens a file at a line in the user's editor.

    The editor is VISUAL, else EDITOR, else vi. Raise UsageError if this program does not exist.
    """
    visual = os.environ.get("VISUAL", "").strip()
    editor = visual or os.environ.get("EDITOR", "").strip() or "vi"
    try:
        words = shlex.split(editor)
    except ValueError:
        words = []
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"editor {show(editor, 60)} not found; set EDITOR to an installed one, for example"
            " EDITOR=nano"
        )
    program = os.path.basename(words[0])
    return [*words, *_name_place(program, os.path.abspath(path), line)]


def _name_place(editor: str, path: str, line: int) -> list[str]:
    """Return the arguments for a file and a line; an unknown editor gets only the file."""
    if line <= 1:
        return [path]
    if editor in _TAKES_LINE:
        return [f"+{line}", path]
    if editor in _WANTS_GOTO:
        return ["--goto", f"{path}:{line}"]
    if editor in _TAKES_COLON:
        return [f"{path}:{line}"]
    return [path]
