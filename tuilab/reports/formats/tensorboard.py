"""The series of runs as events for TensorBoard, by torch's own writer, in a process of its own: nobody here loads torch."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuilab.errors import BoxLacks, CannotRecord
from tuilab.record.encoding import spell_out
from tuilab.reports.samples import samples
from tuilab.reports.subject import Subject
from tuilab.text import show

# Started with -P: nothing from the folder that this runs in is imported. A point is one line of JSON.
_WRITER = """
import json, sys
try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as problem:
    print(problem, file=sys.stderr)
    raise SystemExit(3)
writers = {}
for line in sys.stdin:
    folder, name, value, step, seconds = json.loads(line)
    if folder not in writers:
        writers[folder] = SummaryWriter(folder)
    writers[folder].add_scalar(name, float(value), step, walltime=seconds)
for writer in writers.values():
    writer.close()
"""


def export(subjects: Sequence[Subject], target: str) -> None:
    """Write a folder that TensorBoard reads: below it one for each run, arm and process."""
    folder = Path(target)
    is_new = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise CannotRecord(f"cannot make the folder {show(target, 300)}: {problem.strerror}; name another with -o") from problem
    lines = "".join(f"{json.dumps(point)}\n" for subject in subjects for point in _points(subject, folder))
    done = subprocess.run([sys.executable, "-P", "-c", _WRITER], input=lines, capture_output=True, text=True)
    if done.returncode and is_new:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode == 3:
        raise BoxLacks(
            f"torch's writer for TensorBoard needs a package ({show(done.stderr, 200).strip()}): pip install tensorboard"
        )
    if done.returncode:
        raise CannotRecord(f"cannot write {show(target, 300)}: {show(done.stderr.strip().splitlines()[-1:], 300)}")


def _points(subject: Subject, folder: Path) -> Iterator[tuple[str, str, object, int, float]]:
    run = subject.summary.run
    began_s = (run.wall_ns if run else 0) / 1e9
    for one in samples(subject.run_dir):
        parts = (subject.run_dir.name, one.writer, one.arm)
        below = folder.joinpath(*(_file_name(part) for part in parts if part))
        seconds = began_s + (one.t - subject.summary.first_t) / 1e9
        name = f"{one.kind}/{show(one.name, 100)}{' ' + one.note if one.note and one.kind == 'timed' else ''}"
        step = int(one.place) if one.number is None else one.number  # it knows whole steps alone
        yield str(below), name, spell_out(one.value), step, seconds


def _file_name(part: str) -> str:
    """Return a name that stays in its folder."""
    return "".join(c if c.isalnum() or c in "-_ ." else "_" for c in show(part, 80)).strip(". ") or "_"
