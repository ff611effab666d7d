"""Replay a run on the screens, as they would have shown it live.

RUN is an id, the unique start of one, or `last` (the default). Keys: space plays and pauses, `,`
and `.` seek, `[` and `]` change the speed.
"""

import click

from tuilab.cli import completion, options
from tuilab.errors import UsageError
from tuilab.runs import store
from tuilab.runs.command_line import hint


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], default="last", shell_complete=completion.runs),
        options.READ_ONLY,
        options.FPS,
        options.ROOT,
    ],
)
def command(run: str, fps: float, read_only: bool, root: str | None) -> int:
    from tuilab import tui

    folder = options.root_path(root)
    run_dir = store.find(run, folder)
    reason = tui.why_not()
    if reason:
        step = hint(folder, "attach", store.short_id(run_dir.name))
        raise UsageError(f"cannot open the screens: {reason}; print the result instead: {step}")
    return tui.start(folder, show=run_dir, is_replay=True, fps=fps, is_read_only=read_only)
