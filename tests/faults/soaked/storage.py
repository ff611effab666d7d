"""Faults: the disk, the folder of a run, and what is kept there between runs."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engine import newest, until
from tests.faults.oracle import check, view
from tests.faults.soaked.place import HOLDS, ExpectedRun, Place
from tests.file_damage import GARBAGE, damage
from tuilab.runs import store
from tuilab.runs.index import FILE

SMALL_FILES = (FILE,)
SHARED_MEMORY = """
from multiprocessing.shared_memory import SharedMemory
held = [SharedMemory(create=True, size=1 << 20) for _ in range(4)]
"""


@contextmanager
def small_disk(place: Place) -> Iterator[Path]:
    """Mount a disk of 1 MiB for a folder of runs, until its runs have ended."""
    disk = place.folder("small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", disk], check=True)
    try:
        yield disk
        until(lambda: not place.site.living())
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill_disk(place: Place) -> list[ExpectedRun]:
    """Fill the disk during a run, and maybe free it again: the losses are reported."""
    with small_disk(place) as disk:
        run_dir = begin_there(place, disk)
        with contextlib.suppress(OSError), (disk / ".filler").open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        if place.chance.random() < 0.5:
            place.open_gate()
            until(lambda: place.logged(run_dir) > 20)
            (disk / ".filler").unlink()
        place.open_gate()
        check(place.site, run_dir, "failed", "lost", "succeeded", "killed", is_whole=None)
    return []


def seal_disk(place: Place) -> list[ExpectedRun]:
    """Make the file system read-only during a run, if possible: written records stay readable."""
    with small_disk(place) as disk:
        run_dir = begin_there(place, disk)
        # The kernel refuses this while a file is open for writing.
        subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True)
        place.open_gate()
        until(lambda: not place.site.living())
        subprocess.run(["mount", "-o", "remount,rw", disk], capture_output=True)
        check(place.site, run_dir, is_whole=None)
    return []


def begin_there(place: Place, disk: Path) -> Path:
    """Start a run on a small disk and wait until it waits at its gate."""
    code, text = view("run", str(place.scenario(HOLDS)), "--detach", "--root", str(disk))
    assert code == 0, text
    run_dir = until(lambda: newest(disk))
    place.wait_at_gate(run_dir)
    return run_dir


def limit_files(place: Place) -> list[ExpectedRun]:
    """Limit the size of the files of a worker."""
    size = place.chance.choice([0, 100, 5000, 20_000])
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    run_dir = place.begin(place.scenario(f"{limit}\nprint('x' * 100_000)"))
    return [ExpectedRun(run_dir, ("failed", "succeeded"), is_whole=None)]


def remove_folder(place: Place) -> list[ExpectedRun]:
    """Move the folder of a run away: the run stops, and does not make the folder again."""
    run_dir = place.begin(place.scenario(HOLDS))
    if place.chance.random() < 0.7:
        place.wait_at_gate(run_dir)
    aside = place.folder("aside") / run_dir.name
    run_dir.rename(aside)
    place.open_gate()
    until(lambda: not place.site.living())
    assert not run_dir.exists()
    shutil.rmtree(aside)
    return []


def garble_journal(place: Place) -> list[ExpectedRun]:
    """Cut, overwrite or remove a stream: all views work, and `verify` fails."""
    run_dir = place.begin(place.scenario())
    until(lambda: not place.site.living())
    stream = place.chance.choice(sorted((run_dir / "journal").iterdir()))
    garble(place, stream)
    view("attach", run_dir.name, "--quiet")
    view("runs")
    view("report", run_dir.name, "-o", "-", "--as", "md")
    code, text = view("verify", run_dir.name)
    assert code != 0, (stream, text)
    # For some seconds, a run without a first record counts as a run that begins.
    until(lambda: is_deleted(run_dir))
    return []


def is_deleted(run_dir: Path) -> bool:
    """Delete a run. Return whether it is gone.

    If tuilab does not know whether the run is still running, the user has to remove the folder.
    """
    code, text = view("rm", run_dir.name, "--yes")
    if "is not known" in text:
        shutil.rmtree(run_dir)
    return code == 0 or not run_dir.exists()


def garble(place: Place, stream: Path) -> None:
    """Cut a stream anywhere, write anything over a part of it, or take it away."""
    data = stream.read_bytes()
    at = place.chance.randrange(len(data) - 1)
    match place.chance.randrange(4):
        case 0:
            stream.write_bytes(data[:at])
        case 1:
            stream.write_bytes(data[:at] + place.chance.randbytes(50) + data[at + 50 :])
        case 2:
            damage(stream, place.chance.choice(list(GARBAGE)))
        case _:
            stream.unlink()


def garble_small_files(place: Place) -> list[ExpectedRun]:
    """Replace the index of the runs by garbage: it is made again, and nothing is lost."""
    run_dir = place.begin(place.scenario())
    until(lambda: not place.site.living())
    view("runs")
    for name in SMALL_FILES:
        path = place.site.root / name
        if path.is_file():
            damage(path, place.chance.choice([*GARBAGE, "cut"]))
    return [ExpectedRun(run_dir, ("succeeded",))]


def delete_others(place: Place) -> list[ExpectedRun]:
    """Delete older runs during a run, which cannot be deleted itself."""
    run_dir = place.begin(place.scenario(HOLDS))
    place.wait_at_gate(run_dir)
    kept = place.chance.randint(1, 30)
    code, text = view("rm", "--keep", str(kept), "--yes")
    assert code == 0, text
    others = [run for run in store.list_runs(place.site.root) if run != run_dir]
    assert (
        len(others) <= kept
    )  # beside the one that goes on: a clock may have made others newer than that
    code, text = view("rm", run_dir.name)
    assert code == 2 and "stop it first" in text, text
    place.open_gate()
    return [ExpectedRun(run_dir, ("succeeded",))]


def fill_shared_memory(place: Place) -> list[ExpectedRun]:
    """Stop a run that holds shared memory."""
    run_dir = place.begin(place.scenario(f"{SHARED_MEMORY}{HOLDS}"))
    place.wait_at_gate(run_dir)
    view("stop", run_dir.name, *place.chance.choice([(), ("--now",)]))
    return [ExpectedRun(run_dir, ("stopped",))]


_ANYWHERE: tuple[Callable[[Place], list[ExpectedRun]], ...] = (
    limit_files, remove_folder, garble_journal, garble_small_files, delete_others, fill_shared_memory,
)  # fmt: skip
FAULTS = _ANYWHERE
if os.getuid() == 0:  # only root may mount a disk
    FAULTS += (fill_disk, seal_disk)
