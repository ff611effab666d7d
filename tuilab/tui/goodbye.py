"""What stays in the scrollback when the screens close: what goes on, and the commands that come back to it."""

import contextlib
import os
import re

from tuilab.errors import TuilabError
from tuilab.record.live_run import Watch
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.runs import store
from tuilab.text import is_utf8_terminal, show
from tuilab.tui.state.session import Desk
from tuilab.tui.terminal.guardian import open_again
from tuilab.wrapping import cells


def say_goodbye(desk: Desk) -> None:
    """Print a line for each run that was started from the screens; a terminal that takes nothing does not hold us."""
    width = terminal_columns()
    lines = [line for name in desk.started if (line := _line(desk, name))]
    if desk.calibrating and not desk.calibrating.is_over:
        lines.append("the calibration goes on.  When it is over: tuilab calibrate --show   end its run: tuilab stop last")
    text = "".join(f"{fitted(line, width)}\n" for line in lines)
    if text:
        with contextlib.suppress(OSError):
            os.write(open_again(1), text.encode("utf-8" if is_utf8_terminal() else "ascii", "replace"))


def fitted(line: str, width: int) -> str:
    """Return a line whose parts stand apart by two spaces; where it is too long each has a line, so that no command is cut."""
    return line if cells(line) <= width else re.sub(" {2,}", "\n  ", line)


def terminal_columns() -> int:
    """Return how wide the terminal is; what is none is as wide as most are."""
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def _line(desk: Desk, name: str) -> str:
    id = store.short_id(name)
    try:
        watch = Watch(desk.root / name)
        while watch.refresh():
            pass
        state = watch.state()
        watch.close()
    except TuilabError:
        return ""
    run = watch.summary.run
    title = f"{show(run.topic)}/{show(run.scenario)} {id}" if run else id
    if state == RunState.QUEUED:
        return f"{title} is queued.  All that waits: tuilab queue   take it out: tuilab queue cancel {id}"
    if state in RUNNING_STATES:
        return f"{title} goes on.  Come back: tuilab attach {id}   end it: tuilab stop {id}"
    return f"{title} {state}.  Its result: tuilab attach {id} --headless"
