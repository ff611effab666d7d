"""Check after each fault: records, states, views, archives, and that nothing is left behind."""

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
KEPT_RUNS = 40  # the screens keep data of each run, so only a bounded number may stay


def check_run(place: Place, left: ExpectedRun) -> None:
    """Check the state and the record of a run, and that it has all values logged before the fault."""
    check(place.site, left.run_dir, *left.states, is_whole=left.is_whole)
    stream = left.run_dir / "journal" / "worker-0.jsonl"
    records = raw_records(stream) if stream.exists() else []
    logged = [record for record in records if record["k"] == "logged"]
    count = len([record for record in logged if "half" in record["v"]])
    least = place.logged(left.run_dir)
    assert left.is_whole is None or count >= least, (left, count, least)


def check_leftovers(place: Place) -> None:
    """Check that no process of the place, temporary file, socket or shared memory is left."""
    until(lambda: not place.site.living())
    until(lambda: not temporary(place), patience_s=10)
    for path in place.site.folder.rglob("*"):
        assert not stat.S_ISSOCK(path.lstat().st_mode), path


def temporary(place: Place) -> list[str]:
    """Return the temporary files, and the shared memory if it is of this place alone."""
    files = os.listdir(place.folder("tmp"))
    if place.has_own_shared_memory:
        files += os.listdir("/dev/shm")
    return files


def check_list(place: Place) -> None:
    """Check that the list of runs has all folders, each in its present state."""
    code, text = view("runs", "--json", "--limit", "1000")
    listed = {run["run"]: run["state"] for run in json.loads(text)["runs"]}
    stored = {run.name: look(run).state for run in store.list_runs(place.site.root)}
    assert code == 0 and listed == stored, set(listed.items()) ^ set(stored.items())
    for entry in place.site.root.iterdir():
        assert entry.name in listed or entry.name.startswith("."), entry


def check_views(place: Place) -> None:
    """Check that some run can be shown, reported, compared, packed and unpacked."""
    runs = store.list_runs(place.site.root)
    if not runs:
        return
    run = place.chance.choice(runs)
    folder = place.folder("views")
    kind = place.chance.choice(FORMATS)
    commands: list[tuple[str, ...]] = [
        ("report", run.name, "-o", str(folder / "report"), "--as", kind),
        ("runs",),
        ("queue",),
        ("list",),
        ("compare", run.name, runs[0].name),
        ("show", str(run / "scenario.py")),
        ("advise",),
        ("learn",),
        ("note", run.name, "seen"),
    ]
    for command in commands:
        code, text = view(*command)
        assert code in (0, 2), (command, code, text)
    check_copy(run, folder)
    shutil.rmtree(folder)


def check_copy(run: Path, folder: Path) -> None:
    """Check that a packed and unpacked run is the same run.

    A run that was lost on this machine cannot be unpacked here.
    """
    code, text = view("export", run.name, "-o", str(folder / "run.tgz"))
    assert code == 0, text
    code, text = view("import", str(folder / "run.tgz"), "--root", str(folder / "runs"))
    if look(run).state == "lost":
        assert code == 2 and "without an end" in text, text
        return
    assert code == 0, text
    (copy,) = store.list_runs(folder / "runs")
    assert look(copy).state == look(run).state
    assert numbers_of_items(copy) == numbers_of_items(run)


def numbers_of_items(run_dir: Path) -> dict[str, list[int]]:
    """Return the numbers of the readable records of each stream."""
    return {stream: list(items) for stream, items in items_of(run_dir).items()}


def thin_out(place: Place) -> None:
    """Delete all but the newest runs, as a user does from time to time."""
    if len(store.list_runs(place.site.root)) > KEPT_RUNS:
        code, text = view("rm", "--keep", str(KEPT_RUNS // 2), "--yes")
        assert code == 0, text
        assert len(store.list_runs(place.site.root)) == KEPT_RUNS // 2
