"""Says that a run continues when SIGTERM or SIGHUP ends the process that follows it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tuilab.runs import store
from tuilab.runs.command_line import hint
from tuilab.runs.run_name import RunName
from tuilab.text import show

_SHOW_CURSOR = "\x1b[?25h"  # the live line hides it


@contextmanager
def says_that_it_continues(run_dir: Path) -> Iterator[None]:
    """Within, a signal that ends this process also prints how to come back to the run.

    Signals that are ignored (nohup) or handled otherwise (exec passes SIGTERM on, in a container they stop the run) stay so.
    """
    name = RunName(run_dir.name)
    command = hint(run_dir.parent, "attach", store.short_id(run_dir.name))
    words = f"tuilab: {show(name.scenario or name.text)} continues; show it again: {command}\n"

    def leave(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # the terminal may be gone
            start = f"{_SHOW_CURSOR}\n" if sys.stderr.isatty() else ""
            os.write(sys.stderr.fileno(), f"{start}{words}".encode())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    replaced = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
