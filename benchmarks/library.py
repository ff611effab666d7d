"""Time all lessons with --quick, one after another, next to the sum of their bare times.

The bare time of a lesson is the time from the first to the last record of its workers, plus an
import of torch for each worker. An import takes the median of several ones in fresh interpreters,
which are timed after the lessons. So the work of a lesson before its first record counts as a cost
of tuilab.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.pairs import Row
from benchmarks.processes import PYTHON, find_program, run_command, timed
from tuilab.record.events import Event
from tuilab.record.journal.reader import Reader

FULL = {"lessons": 1000, "imports": 5}
TINY = {"lessons": 2, "imports": 1}
ENDS_WITH = (0, 1, 3, 4)  # the exit code depends on the verdicts


def rows(place: Path, *, lessons: int, imports: int) -> Iterator[Row]:
    """Yield the time of all lessons, and the parts of their bare times."""
    tuilab = find_program("tuilab")
    listed = json.loads(run_command([tuilab, "list", "--json"], place))
    all_names = [scenario["scenario"] for scenario in listed["scenarios"]]
    names = all_names[:lessons]
    with timed() as times:
        run_command([tuilab, "run", *names, "--quick", "--headless"], place, ends_with=ENDS_WITH)
    streams = (place / "runs").glob("*/journal/worker-*.jsonl")
    worker_s = [recorded_time_s(stream) for stream in streams]
    import_s = []
    for _ in range(imports):
        with timed() as import_times:
            run_command([PYTHON, "-c", "import torch"], place)
        import_s.append(import_times["s"])
    bare_s = sum(worker_s) + len(worker_s) * median(import_s)
    subject = f"{len(names)} lessons --quick"
    reference = f"bare, {len(worker_s)} workers"
    yield Row(subject, "s", [times["s"]], reference, [bare_s])
    yield Row(subject, "processor s", [times["processor s"]])
    yield Row(reference, "s of their own", [sum(worker_s)])
    yield Row("import torch", "s", import_s)


def recorded_time_s(stream: Path) -> float:
    """Return the time from the first record of a worker to the last one."""
    reader = Reader(stream)
    times_ns: list[int] = []
    items = reader.read()
    while items:
        times_ns.extend(item.t for item in items if isinstance(item, Event))
        items = reader.read()
    return (max(times_ns) - min(times_ns)) / 1e9
