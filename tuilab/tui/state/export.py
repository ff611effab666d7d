"""Writes a page about runs into the current folder: a key that does what `tuilab report` does."""

import os
from collections.abc import Sequence
from pathlib import Path

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import CannotRecord
from tuilab.runs.run_name import RunName
from tuilab.text import plural, show
from tuilab.tui.state.following import Whole


def export(run_dirs: Sequence[Path], known: Sequence[Scenario], in_hand: Sequence[Whole] = ()) -> str:
    """Write the page and say where it is; TuilabError when it cannot be written. Runs that are `in_hand` are not read again."""
    from tuilab.reports import files
    from tuilab.reports.subject import subject_of

    try:
        target = os.path.join(os.getcwd(), _name(run_dirs))
    except FileNotFoundError as problem:
        raise CannotRecord("the folder that tuilab was started in is gone; use tuilab report RUN -o FILE") from problem
    subjects = [subject_of(*whole) for whole in in_hand] or files.read_subjects(run_dirs)
    files.write(subjects, target, files.check_target(target), known=known)
    return f"wrote {show(target, 300)} about {plural(len(run_dirs), 'run')}"


def _name(run_dirs: Sequence[Path]) -> str:
    first = RunName(run_dirs[0].name)
    about = f"{len(run_dirs)}-runs" if len(run_dirs) > 1 else first.scenario[:60] or "run"
    return f"tuilab-{about}-{first.id}.html"
