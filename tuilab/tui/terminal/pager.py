"""Show a text in the user's pager, which uses the terminal until it ends."""

import os
import shlex
import tempfile

from tuilab.text.display import show
from tuilab.tui.terminal.foreground import Foreground


def show_in_pager(text: str, foreground: Foreground) -> str:
    """Show a text in $PAGER, or in `less` if that is not set.

    The text must be safe to show. Return a sentence about what failed; empty if nothing did.
    """
    pager = os.environ.get("PAGER") or "less"
    with tempfile.TemporaryFile() as file:
        file.write(text.encode(errors="replace"))
        file.seek(0)
        try:
            code = foreground.run(shlex.split(pager), stdin=file)
        except (OSError, ValueError, IndexError) as problem:
            return (
                f"cannot start the pager {show(pager, 60)} ({show(problem, 100)}); set PAGER to"
                " another one"
            )
    if code <= 0:
        return ""
    return f"the pager {show(pager, 60)} exited with code {code}"
