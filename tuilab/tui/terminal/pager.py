"""Show a text in the user's pager, which uses the terminal until it ends."""

import os
import shlex
import subprocess
import tempfile

from tuilab.text.display import show
from tuilab.tui.terminal.foreground import lend_terminal


def show_in_pager(text: str) -> str:
    """Show a text in $PAGER, or in `less` if that is not set.

    The text must be safe to show. Return a sentence about what failed; empty if nothing did.
    """
    pager = os.environ.get("PAGER") or "less"
    with tempfile.TemporaryFile() as file:
        file.write(text.encode(errors="replace"))
        file.seek(0)
        try:
            process = subprocess.Popen(shlex.split(pager), stdin=file, process_group=0)
        except (OSError, ValueError, IndexError) as problem:
            return (
                f"cannot start the pager {show(pager, 60)} ({show(problem, 100)}); set PAGER to"
                " another one"
            )
        code = lend_terminal(process)
    if code <= 0:
        return ""
    return f"the pager {show(pager, 60)} exited with code {code}"
