"""What stays in the scrollback when the screens close: what goes on, and the commands that come back to it.

Where nothing can go on without the screens, it is stopped before it is told, so that its record has an end.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable
from functools import partial

from tuilab.engine import launch
from tuilab.errors import ExitCode, TuilabError
from tuilab.record.live_run import Watch
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.runs import queue, store
from tuilab.runs.command_line import hint
from tuilab.text import is_utf8_terminal, plural, show
from tuilab.tui.state.session import Desk
from tuilab.tui.terminal.guardian import open_again
from tuilab.wrapping import cells

_MOST = 8  # runs that have a line
_PATIENCE_S = 8.0


def say_goodbye(desk: Desk) -> None:
    """Print what became of the runs that were started from the screens; a terminal that takes nothing does not hold us."""
    width = terminal_columns()
    lines = lines_of(desk)
    if desk.calibration and desk.calibration.is_running:
        end = hint(desk.root, "stop", "last")
        lines.append(f"the calibration continues.  When it is finished: tuilab calibrate --show   stop it: {end}")
    text = "".join(f"{fitted(line, width)}\n" for line in lines)
    if text:
        with contextlib.suppress(OSError):
            os.write(open_again(1), text.encode("utf-8" if is_utf8_terminal() else "ascii", "replace"))


def code_of_first(desk: Desk, code_of: Callable[[RunSummary, str], int]) -> int:
    """Return the exit code of the run that the screens were opened for; 0 while it goes on."""
    seen = _seen(desk, desk.started[0]) if desk.started else None
    return code_of(*seen) if seen and seen[1] not in RUNNING_STATES else ExitCode.DONE


def stop_all(desk: Desk) -> None:
    """Stop in order what was started here, those that wait first, for less time than `docker stop` gives."""
    deadline = time.monotonic() + _PATIENCE_S
    if desk.calibration:
        desk.calibration.stop()
    for entry in reversed(desk.going_on()):
        with contextlib.suppress(TuilabError):  # it has just ended
            launch.stop(desk.root / entry.run)
    while time.monotonic() < deadline and (desk.is_running() or (desk.calibration and desk.calibration.is_running)):
        time.sleep(0.05)


def lines_of(desk: Desk) -> list[str]:
    """Return a line for each run that was started here, or was looked at and goes on, which is seen last; a few of many."""
    watched = (name for name in desk.watched if name not in desk.started and desk.is_going_on(desk.root / name))
    found = (_told(desk, name) for name in [*desk.started, *watched])
    told = sorted((one for one in found if one), key=lambda one: _place(one[0]))
    states, lines = [state for state, _ in told], [line for _, line in told]
    if len(lines) > _MOST:
        lines = [f"{plural(len(lines) - _MOST, 'more run')}.  Show all: {hint(desk.root, 'runs')}", *lines[-_MOST:]]
    waiting = max(len(queue.look(desk.root).waiting), states.count(RunState.QUEUED)) if queue.is_paused(desk.root) else 0
    if waiting:
        step = hint(desk.root, "queue", "resume")
        lines.append(f"The queue is paused: {plural(waiting, 'run')} in it cannot start.  Resume: {step}")
    return lines


def _place(state: str) -> int:
    return 1 if state == RunState.QUEUED else 2 if state in RUNNING_STATES else 0


def fitted(line: str, width: int) -> str:
    """Return a line whose parts stand apart by two spaces; where it is too long each has a line, so that no command is cut."""
    return line if cells(line) <= width else re.sub(" {2,}", "\n  ", line)


def terminal_columns() -> int:
    """Return how wide the terminal is; what is none is as wide as most are."""
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def _told(desk: Desk, name: str) -> tuple[str, str] | None:
    """Return the state of a run and what is told of it; None where its record cannot be read."""
    seen = _seen(desk, name)
    if seen is None:
        return None
    summary, state = seen
    run, id = summary.run, store.short_id(name)
    title = f"{show(run.topic)}/{show(run.scenario)} {id}" if run else id
    return state, _line(title, state, id, partial(hint, desk.root))


def _seen(desk: Desk, name: str) -> tuple[RunSummary, str] | None:
    """Return what is in the record of a run, and its state; None where it cannot be read."""
    try:
        watch = Watch(desk.root / name)
        watch.catch_up()
        state = watch.state()
        watch.close()
    except TuilabError:
        return None
    return watch.summary, state


def _line(title: str, state: str, id: str, command: Callable[..., str]) -> str:
    if state == RunState.QUEUED:
        return f"{title} is queued.  Show the queue: {command('queue')}   remove it: {command('queue', 'cancel', id)}"
    if state in RUNNING_STATES:
        return f"{title} is running.  Come back: {command('attach', id)}   stop it: {command('stop', id)}"
    return f"{title} {state}.  Show its result: {command('attach', id, '--headless')}"
