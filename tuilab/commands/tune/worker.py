"""The worker of a tuning: it reads the record of the run, and does the next part."""

from pathlib import Path

from tuilab.commands.tune.files import copy_folder
from tuilab.commands.tune.session import TuningSession
from tuilab.commands.tune.stages import go_on
from tuilab.commands.tune.study import study
from tuilab.engine.messages import CommandOrder, WorkerResult
from tuilab.engine.processes import become_subreaper
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import read_run
from tuilab.text.display import show


def tune(
    command: CommandOrder, run_dir: Path, writer: str, journal: Writer
) -> tuple[WorkerResult, int]:
    """Do the next part of a tuning; return the result of the worker and its exit code."""
    become_subreaper()
    session = TuningSession(command, run_dir, writer, journal, read_run(run_dir))
    if session.summary.tuning.plan is not None:
        return go_on(session)
    if session.order.is_in_copy:
        try:
            copy_folder(session.folder, session.copy, run_dir.parent)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            return WorkerResult(error=f"cannot copy {show(session.folder, 200)}: {reason}"), 1
    return study(session)
