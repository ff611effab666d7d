"""What must hold after each fault: records, states, views, archives; and nothing left behind."""

import json
import os
import shutil
import stat
from pathlib import Path

from tests.engine import look, until
from tests.faults.oracle import check, items_of, raw_records, view
from tests.faults.soaked.place import ExpectedRun, Place
from tuilab.runs import store

FORMATS = ("html", "md", "json", "csv", "junit", "trace")
KEPT_RUNS = 40  # the folder holds no more, so that what is kept of each run by those who look on stays bounded


def check_run(place: Place, left: ExpectedRun) -> None:
    """A run has one true state, its record is read whole, and what was logged before the fault is in it."""
    check(place.site, left.run_dir, *left.states, is_whole=left.is_whole)
    stream = left.run_dir / "journal" / "worker-0.jsonl"
    records = raw_records(stream) if stream.exists() else []
    steps = [record["s"] for record in records if record["k"] == "logged" and "half" in record["v"]]
    noted = place.logged(left.run_dir)
    assert left.is_whole is None or len(steps) >= noted, (left, len(steps), noted)


def check_leftovers(place: Place) -> None:
    """No process with the mark of the place, no temporary file, no socket, no shared memory."""
    until(lambda: not place.site.living())
    until(lambda: not temporary(place), patience_s=10)
    strangers = [
        path for path in place.site.folder.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)
    ]
    assert strangers == []


def temporary(place: Place) -> list[str]:
    """Return what stands where temporary files do, and in shared memory, where that is ours alone."""
    shared = os.listdir("/dev/shm") if place.has_own_shared_memory else []
    return [*os.listdir(place.folder("tmp")), *shared]


def check_list(place: Place) -> None:
    """The list of runs has the folders that are there, each in the state that a look at it finds."""
    code, text = view("runs", "--json", "--limit", "1000")
    told = {run["run"]: run["state"] for run in json.loads(text)["runs"]}
    there = {run.name: look(run).state for run in store.list_runs(place.site.root)}
    assert code == 0 and told == there, set(told.items()) ^ set(there.items())
    strangers = {entry.name for entry in place.site.root.iterdir() if entry.name[0] != "."} - set(
        told
    )
    assert strangers == set()


def check_views(place: Place) -> None:
    """Some run of those that are left can be shown, reported, compared, packed and unpacked: the copy tells the same."""
    runs = store.list_runs(place.site.root)
    if not runs:
        return
    run = place.chance.choice(runs)
    folder = place.folder("views")
    kind = place.chance.choice(FORMATS)
    verbs = [
        ("report", run.name, "-o", str(folder / "report"), "--as", kind), ("runs",), ("queue",), ("list",), ("compare", run.name, runs[0].name),
        ("show", str(run / "scenario.py")), ("advise",), ("learn",), ("note", run.name, "seen"),
    ]  # fmt: skip
    codes = {words: view(*words) for words in verbs}
    assert all(code in (0, 2) for code, _ in codes.values()), codes
    check_copy(run, folder)
    shutil.rmtree(folder)


def check_copy(run: Path, folder: Path) -> None:
    """What is packed and unpacked is the same run, in the same state; one that was lost on this box is not unpacked here."""
    code, text = view("export", run.name, "-o", str(folder / "run.tgz"))
    assert code == 0, text
    code, text = view("import", str(folder / "run.tgz"), "--root", str(folder / "runs"))
    if look(run).state == "lost":
        assert code == 2 and "without an end" in text, text
        return
    assert code == 0, text
    (copy,) = store.list_runs(folder / "runs")
    assert look(copy).state == look(run).state
    assert {stream: list(items) for stream, items in items_of(copy).items()} == {
        stream: list(items) for stream, items in items_of(run).items()
    }


def thin_out(place: Place) -> None:
    """Delete all but the newest runs, as a user does from time to time."""
    if len(store.list_runs(place.site.root)) > KEPT_RUNS:
        code, text = view("rm", "--keep", str(KEPT_RUNS // 2), "--yes")
        assert code == 0, text
        assert len(store.list_runs(place.site.root)) == KEPT_RUNS // 2
