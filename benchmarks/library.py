"""All lessons with --quick, one after another, beside the sum of their bare times: their own, and an import of torch each.

The own time of a lesson is what its worker's journal has, from the first record to the last; to it comes an import of torch in
a fresh interpreter for each worker, the median of several that are measured behind the lessons. What a lesson does before its
first record is left out of its own time, and so is held against tuilab.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.pairs import Row
from benchmarks.processes import PYTHON, command, counted, output
from tuilab.record.events import Event
from tuilab.record.journal.reader import Reader

FULL = {"lessons": 1000, "imports": 5}
TINY = {"lessons": 2, "imports": 1}
ENDS_WITH = (0, 1, 3, 4)  # what came of the lessons


def rows(place: Path, *, lessons: int, imports: int) -> Iterator[Row]:
    tuilab = command("tuilab")
    names = [
        one["scenario"]
        for one in json.loads(output([tuilab, "list", "--json"], place))["scenarios"]
    ][:lessons]
    with counted() as taken:
        output([tuilab, "run", *names, "--quick", "--headless"], place, ends_with=ENDS_WITH)
    own_s = [own_time_s(stream) for stream in (place / "runs").glob("*/journal/worker-*.jsonl")]
    torch_s = []
    for _ in range(imports):
        with counted() as bare:
            output([PYTHON, "-c", "import torch"], place)
        torch_s.append(bare["s"])
    what, beside = f"{len(names)} lessons --quick", f"bare, {len(own_s)} workers"
    yield Row(what, "s", [taken["s"]], beside, [sum(own_s) + len(own_s) * median(torch_s)])
    yield Row(what, "processor s", [taken["processor s"]])
    yield Row(beside, "s of their own", [sum(own_s)])
    yield Row("import torch", "s", torch_s)


def own_time_s(stream: Path) -> float:
    """Return how long it is from the first record of a worker to its last."""
    reader, times = Reader(stream), []
    while items := reader.read():
        times += [item.t for item in items if isinstance(item, Event)]
    return (max(times) - min(times)) / 1e9
