"""Finish after the screens have closed: print which runs continue, and find the exit code.

If the screens are the main process of a container, no run can continue without them. Then the runs
are stopped first, so that their records have an end.
"""

import contextlib
import os
import time
from collections.abc import Callable

from tuilab.engine import launch
from tuilab.errors import ExitCode, TuilabError
from tuilab.record.live_run import Watch
from tuilab.record.states import RUNNING_STATES
from tuilab.record.summary import RunSummary
from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.text.display import is_utf8_terminal, plural
from tuilab.tui.state.session import Session
from tuilab.tui.terminal.guardian import open_again

_PATIENCE_S = 8.0  # shorter than the 10 s after which `docker stop` kills


def say_goodbye(desk: Session) -> None:
    """Print which runs continue. If the terminal accepts no output, do not wait for it."""
    sentence = farewell(desk)
    if not sentence:
        return
    encoding = "utf-8" if is_utf8_terminal() else "ascii"
    data = f"{sentence}\n".encode(encoding, "replace")
    with contextlib.suppress(OSError):
        os.write(open_again(1), data)


def farewell(desk: Session) -> str:
    """Return how many runs continue, and the command that shows them; empty if none does.

    Only runs that were started or watched here count. A running calibration counts as a run.
    """
    names = dict.fromkeys([*desk.started, *desk.watched])
    runs = [name for name in names if desk.is_going_on(desk.root / name)]
    count = len(runs)
    if desk.calibration and desk.calibration.is_running:
        count += 1
    if count == 0:
        return ""
    if runs and count == 1:
        return f"1 run continues: {hint(desk.root, 'attach', store.short_id(runs[0]))}"
    continues = "continues" if count == 1 else "continue"
    return f"{plural(count, 'run')} {continues}: {hint(desk.root, 'runs')}"


def code_of_first(desk: Session, code_of: Callable[[RunSummary, str], int]) -> int:
    """Return the exit code of the run that the screens were opened for; 0 while it is running."""
    if not desk.started:
        return ExitCode.DONE
    try:
        watch = Watch(desk.root / desk.started[0])
        watch.catch_up()
        state = watch.state()
        watch.close()
    except TuilabError:
        return ExitCode.DONE
    if state in RUNNING_STATES:
        return ExitCode.DONE
    return code_of(watch.summary, state)


def stop_all(desk: Session) -> None:
    """Stop the calibration and the runs that were started here cleanly, queued runs first.

    Wait until they have ended, but only some seconds: then they may still be ending.
    """
    deadline = time.monotonic() + _PATIENCE_S
    if desk.calibration:
        desk.calibration.stop()
    for entry in reversed(desk.going_on()):
        with contextlib.suppress(TuilabError):  # the run has just ended
            launch.stop(desk.root / entry.run)
    while time.monotonic() < deadline:
        is_calibrating = desk.calibration is not None and desk.calibration.is_running
        if not desk.is_running() and not is_calibrating:
            return
        time.sleep(0.05)
