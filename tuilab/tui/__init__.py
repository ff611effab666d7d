"""The screens: `start` opens them in this terminal and returns when the user leaves.

This package is the only one that imports textual. It may import every package that comes before
it in the order of packages, except `lab`.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab import first_process
from tuilab.errors import ExitCode, ScenarioError

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder
    from tuilab.record.summary import RunSummary


_COLOURS = ("auto", "standard", "256", "truecolor", "windows")


def why_not() -> str:
    """Return why no screens can be shown here; empty if they can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "there is no terminal"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return "the terminal (TERM=dumb) cannot place text"
    return ""


def start(
    root: Path,
    folders: Sequence[str] = (),
    orders: "Sequence[RunOrder]" = (),
    *,
    show: Path | None = None,
    is_replay: bool = False,
    is_learning: bool = False,
    is_read_only: bool = False,
    fps: float = 2.0,
    code_of: "Callable[[RunSummary, str], int] | None" = None,
) -> int:
    """Open the screens, run the orders or show a run, and return the exit code.

    If the user is learning, the screens open at the next lesson. If the caller passes `code_of`, it
    computes the exit code from the first run. In read-only mode, the user can look, but change
    nothing.

    The guardian is forked before the app is imported, while this process is small and has one
    thread.

    Raise UsageError before the screens open if a folder of scenarios, the device or TUILAB_ALERTS
    is wrong. Raise ScenarioError if the screens crashed.
    """
    if os.environ.get("TEXTUAL_COLOR_SYSTEM", "auto") not in _COLOURS:
        del os.environ["TEXTUAL_COLOR_SYSTEM"]  # textual ends if rich does not know the word
    # Textual also ends at its first log message if it cannot write the log file.
    os.environ.pop("TEXTUAL_LOG", None)
    from tuilab import config
    from tuilab.catalogue import catalog
    from tuilab.tui.terminal import alerts

    # These three calls raise their UsageErrors now, while there is no screen yet.
    catalog.scenario_dirs(folders)
    config.device()
    alerts.chosen()
    # Blocked until the screens can quit cleanly.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    from tuilab.tui.terminal.guardian import Guardian

    guardian = Guardian(sys.stdout.fileno())
    from tuilab.tui.app import TuilabApp
    from tuilab.tui.state import settings
    from tuilab.tui.state.session import Session

    loaded_settings = settings.load(move_old=not is_read_only)
    desk = Session(root, folders, loaded_settings, fps, is_read_only=is_read_only)
    desk.is_learning = is_learning
    app = TuilabApp(desk, orders, show, is_replay=is_replay)
    app.on_terminal_taken = guardian.note
    gc.freeze()  # loaded modules stay, so that no collection has to visit them
    # The collector was off while modules were loaded. From here on it is needed: each screen that
    # the user leaves is a reference cycle of widgets, which takes megabytes.
    gc.enable()
    try:
        code = app.run()
    finally:
        guardian.dismiss()
    if first_process.is_container_main():
        from tuilab.tui.goodbye import stop_all

        stop_all(desk)
    if app.return_code and code is None:
        from tuilab.runs.command_line import hint

        raise ScenarioError(
            "the screens crashed (see above); this is a bug in tuilab. Runs continue; list them:"
            f" {hint(root, 'runs')}"
        )
    if app.was_interrupted:
        # The terminal may also have closed, or the user may have quit at the same time.
        code = ExitCode.INTERRUPTED
    has_shown_runs = desk.started or desk.calibration or desk.watched
    if app.is_terminal_given_back and has_shown_runs:
        from tuilab.tui.goodbye import say_goodbye

        say_goodbye(desk)
    if not code and code_of:
        from tuilab.tui.goodbye import code_of_first

        return code_of_first(desk, code_of)
    if code is None:
        return ExitCode.DONE
    return code
