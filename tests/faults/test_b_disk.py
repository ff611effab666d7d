"""A full, slow, read-only, failing or suddenly dead disk: what was confirmed is kept, what was lost is said."""

import contextlib
import fcntl
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.gates import STEPS, gates, reaches
from tests.faults.oracle import check, is_well, items_of, view
from tests.faults.sites import Site, latest, order_for, supervise
from tuilab.errors import ExitCode

pytestmark = pytest.mark.faults


@pytest.fixture
def small_disk(site: Site) -> Iterator[Path]:
    """The site's folder of runs on a disk of 1 MiB."""
    site.root.mkdir(mode=0o700)
    if (
        os.getuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", site.root]
        ).returncode
    ):
        pytest.skip("mounting a small disk takes root")
    yield site.root
    site.end()
    subprocess.run(["umount", "--lazy", site.root], check=True)


def fill(disk: Path) -> Path:
    """Fill a disk to its last byte and return the file that does."""
    filler = disk / ".filler"
    with filler.open("ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x")
    return filler


def test_30_a_disk_that_is_full_is_told_while_the_run_goes_on(site: Site, small_disk: Path) -> None:
    body = (
        'wait_for("full")\nfor step in range(300): lab.log(step, half=step / 2)\nwait_for("free")'
    )
    at = gates(site)
    front = site.start("run", str(write_scenario(site.folder, body, STEPS)), "--headless")
    reaches(at, "full")
    filler = fill(small_disk)
    (at / "full").touch()
    assert front.stderr
    told = next(line for line in front.stderr if "no room in" in line)
    listed = site.run("runs").stdout
    filler.unlink()
    (at / "free").touch()
    front.communicate(timeout=60)

    assert told.startswith(
        f"probe: no room in {small_disk}, so records of runs are lost; free some space"
    )
    assert f"no room in {small_disk}" in listed


def test_30_a_disk_that_is_full_for_a_while_loses_what_was_written_then_and_says_so(
    site: Site, small_disk: Path
) -> None:
    body = """
for step in range(100): lab.log(step, half=step / 2)
print("before", flush=True)
wait_for("full")
for step in range(100, 300): lab.log(step, half=step / 2)
print("x" * 5000, flush=True)
wait_for("free")
for step in range(300, 400): lab.log(step, half=step / 2)
print("after", flush=True)
"""
    at = gates(site)
    front = site.start(
        "run", str(write_scenario(site.folder, body, STEPS)), "--headless", "--quiet"
    )
    reaches(at, "full")
    filler = fill(small_disk)
    (at / "full").touch()
    reaches(at, "free")
    filler.unlink()
    (at / "free").touch()
    out, err = front.communicate(timeout=60)

    run_dir = latest(site)
    summary = check(site, run_dir, "failed", is_whole=False).summary
    (series,) = summary.series.values()
    lost = 400 - series.count
    assert front.returncode == 4 and "Traceback" not in err
    assert 150 < lost <= 200
    assert summary.damage.lost_count >= lost and summary.damage.missing_count >= lost
    assert (
        f"{summary.damage.lost_count} records could not be written: No space left on device"
        in summary.reason + out
    )
    printed = summary.outputs["stdout"]
    kept = (run_dir / "stdout.log").read_bytes()
    assert printed.bytes_total == len("before\n") + 5001 + len("after\n")
    assert len(kept) == printed.bytes_head + printed.bytes_tail
    assert kept.startswith(b"before\n") and kept.endswith(b"after\n")


def test_30_a_disk_that_stays_full_leaves_a_run_that_is_lost_and_no_process(
    site: Site, small_disk: Path
) -> None:
    at = gates(site)
    path = write_scenario(
        site.folder,
        'lab.log(0, half=0.0)\nwait_for("full")\nfor step in range(100): lab.log(step, half=1.0)',
        STEPS,
    )
    front = site.start("run", str(path), "--headless", "--quiet")
    reaches(at, "full")
    filler = fill(small_disk)
    (at / "full").touch()
    out, err = front.communicate(timeout=60)
    filler.unlink()

    assert front.returncode == 4 and "Traceback" not in err
    summary = check(site, latest(site), "failed", "lost", is_whole=None).summary
    assert "lost" in out or "could not be written: No space left on device" in summary.reason


def test_30_a_full_disk_at_the_start_is_one_sentence_and_leaves_nothing(
    site: Site, small_disk: Path
) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    filler = fill(small_disk)

    done = site.run("run", str(path), "--headless")

    assert done.returncode == 5
    assert (
        done.stderr.count("tuilab: ") == 1
        and "No space left on device" in done.stderr
        and is_well(done)
    )
    assert "nothing was started" in done.stderr and done.stderr.count(str(small_disk)) == 1
    assert [entry.name for entry in small_disk.iterdir()] == [filler.name]


def test_31_no_room_for_files_is_one_sentence(site: Site) -> None:
    """No inodes left: a disk may be full of files and yet have bytes."""
    site.root.mkdir(mode=0o700)
    if (
        os.getuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=5,mode=700", "none", site.root]
        ).returncode
    ):
        pytest.skip("mounting a small disk takes root")
    try:
        done = site.run(
            "run", str(write_scenario(site.folder, "lab.log(0, half=0.0)")), "--headless"
        )
        assert list(site.root.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", site.root], check=True)

    assert done.returncode == 5 and is_well(done)
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(
    not shutil.which("mkfs.ext4") or os.getuid() != 0,
    reason="a disk to cut off takes root and mkfs.ext4",
)
def test_37_a_power_cut_keeps_what_the_disk_confirmed(site: Site) -> None:
    """An ext4 file system is shut down without a flush, as if the plug was pulled, and mounted again."""
    image = site.folder / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    site.root.mkdir(mode=0o700)
    subprocess.run(["mkfs.ext4", "-q", "-m0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, site.root]).returncode:
        pytest.skip("a file cannot be mounted here")
    try:
        (site.root / "lost+found").rmdir()
        body = 'wait_for("on")\nfor step in range(10**6):\n    lab.log(step, half=1.0)\n    time.sleep(0.001)'
        at = gates(site)
        run_dir = site.detach(write_scenario(site.folder, body, STEPS))
        reaches(at, "on")
        (at / "on").touch()
        disk = os.open(site.root, os.O_RDONLY)
        fcntl.ioctl(disk, 0x8004587D, struct.pack("I", 2))  # EXT4_IOC_SHUTDOWN, no log flush
        os.close(disk)
        site.run("stop", "last", "--now")
        until(lambda: not site.living())
        until(
            lambda: not subprocess.run(["umount", site.root]).returncode
        )  # what is ending has its files open a little longer
        until(
            lambda: not subprocess.check_output(["losetup", "-j", image])
        )  # a namespace of another test may hold a copy
        subprocess.run(["mount", "-o", "loop", image, site.root], check=True)

        summary = check(site, run_dir, "lost", is_whole=None).summary
        assert [entered.state for entered in summary.states] == ["starting", "running"]
    finally:
        site.end()
        subprocess.run(["umount", "--lazy", site.root], check=True)


Moment = dict[
    str, tuple[int, int]
]  # of each stream: the bytes that the disk has confirmed, and those that were written


def moments(calls: str) -> Iterator[Moment]:
    """Yield what was on the disk for sure, and what may have been, after each write and sync that strace has seen."""
    now: Moment = {}
    asked: dict[
        str, tuple[str, int]
    ] = {}  # by thread: a call that has not returned, and what was written when it began
    for row in calls.splitlines():
        thread, _, call = row.partition(" ")
        if begun := re.match(r"(write|fdatasync)\(\d+<[^>]*/journal/([^>]*\.jsonl)>", call.strip()):
            asked[thread] = begun[0], now.get(begun[2], (0, 0))[1]
        done = re.search(r"= (\d+)$", call)
        if thread not in asked or not done:
            continue
        name, written = asked.pop(thread)
        stream = name.rpartition("/")[2].rstrip(">")
        kept, _ = now.get(stream, (0, 0))
        now[stream] = (
            (written, now.get(stream, (0, 0))[1])
            if name.startswith("fdata")
            else (kept, written + int(done[1]))
        )
        yield dict(now)


def what_is_left(
    moment: Moment, data: dict[str, bytes], chance: random.Random
) -> Iterator[dict[str, bytes]]:
    """Yield what a disk may hold after a power cut: of each stream all that was confirmed, and any part of the rest."""
    yield {stream: data[stream][:kept] for stream, (kept, _) in moment.items()}
    yield {stream: data[stream][:written] for stream, (_, written) in moment.items()}
    for _ in range(3):
        yield {stream: data[stream][: chance.randint(*span)] for stream, span in moment.items()}
    yield {
        stream: data[stream][:kept] + bytes(written - kept)
        for stream, (kept, written) in moment.items()
    }


@pytest.mark.usefixtures("has_strace")
@pytest.mark.parametrize(
    "end", ["", "os.kill(os.getpid(), signal.SIGKILL)"], ids=["in order", "killed"]
)
def test_37_a_power_cut_at_any_moment_loses_only_what_the_disk_had_not_confirmed(
    site: Site, tmp_path: Path, end: str
) -> None:
    body = f"""
for step in range(8): lab.log(step, half=step / 2)
lab.artifact("a.txt", "kept")
lab.claim("one-is-one", True)
time.sleep(0.6)
{end}
"""
    calls = site.folder / "calls"
    strace = ("strace", "-f", "-y", "-s", "0", "-o", str(calls), "-e", "trace=write,fdatasync")
    supervise(site, order_for(site, write_scenario(site.folder, body)), *strace)
    until(lambda: not site.living())
    run_dir = latest(site)
    whole = items_of(run_dir)
    data = {stream: (run_dir / "journal" / stream).read_bytes() for stream in whole}
    (*_, last) = every = list(moments(calls.read_text()))
    copy = Path(shutil.copytree(run_dir, tmp_path / "cut" / run_dir.name))
    chance = random.Random(7)

    assert {stream: written for stream, (_, written) in last.items()} == {
        stream: len(data[stream]) for stream in data
    }
    assert all(
        kept == written for kept, written in last.values()
    )  # a run that has an end has lost nothing
    for moment in every:
        for left in what_is_left(moment, data, chance):
            check_what_is_left(
                copy, left, whole, {stream: kept for stream, (kept, _) in moment.items()}, data
            )


def check_what_is_left(
    copy: Path,
    left: dict[str, bytes],
    whole: dict[str, dict[int, Any]],
    kept: dict[str, int],
    data: dict[str, bytes],
) -> None:
    """All that was confirmed is read back and nothing else than was written; a run that has lost its end is lost."""
    shutil.rmtree(copy / "journal")
    (copy / "journal").mkdir(mode=0o700)
    for stream, content in left.items():
        (copy / "journal" / stream).write_bytes(content)
    found = items_of(copy)
    seen = look(copy)
    code, text = view("verify", copy.name, "--root", str(copy.parent))

    for stream, items in found.items():
        assert len(items) >= data[stream][: kept[stream]].count(b"\n")
        assert repr(items) == repr({n: whole[stream][n] for n in range(len(items))})
    has_end = seen.summary.is_over
    assert seen.state == (seen.summary.state if has_end else "lost")
    assert ("the run is lost" in text) is not has_end
    assert code == (ExitCode.DONE if has_end and left == data else ExitCode.REFUTED), text


def test_35_a_read_only_folder_is_one_sentence_and_what_is_in_it_can_be_read(
    site: Site, small_disk: Path
) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    site.run("run", str(path), "--headless", "--quiet")
    run_dir = latest(site)
    until(lambda: not site.living())
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    done = [
        site.run(*words) for words in (("run", str(path), "--headless"), ("rm", "last"), ("list",))
    ]

    assert [front.returncode for front in done] == [5, 5, 0]
    assert all(map(is_well, done)), [front.stderr for front in done]
    check(site, run_dir, "succeeded")
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)


def test_32_a_limit_on_the_size_of_files_loses_what_is_beyond_and_says_so(site: Site) -> None:
    body = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\nfor step in range(1000): lab.log(step, half=step / 2)"

    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    summary = check(site, latest(site), "failed", is_whole=False).summary
    assert done.returncode == 4
    assert "records could not be written: File too large" in summary.reason


def test_32_a_limit_on_the_size_of_files_of_the_supervisor_is_no_traceback(site: Site) -> None:
    path = write_scenario(site.folder, 'print("x" * 100_000, flush=True)\nlab.log(0, half=0.0)')
    for blocks in (0, 1, 2, 8):
        done = site.run(
            "run",
            str(path),
            "--headless",
            command=["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "-", TUILAB],
        )
        assert is_well(done), done.stderr
    until(lambda: not site.living())
    for run_dir in site.root.iterdir():
        check(site, run_dir, is_whole=None)


@pytest.mark.usefixtures("has_strace")
def test_33_a_write_that_fails_anywhere_is_no_traceback_and_no_lie(site: Site) -> None:
    """The nth write of every process of the run fails once: the supervisor, the worker, the sampler and the judge."""
    path = write_scenario(
        site.folder,
        'for step in range(20): lab.log(step, half=step / 2)\nlab.claim("one-is-one", True)',
    )

    order = order_for(site, path)

    points = [(n, ("ENOSPC", "EIO", "EDQUOT")[n % 3]) for n in (*range(1, 10), *range(10, 28, 3))]
    points += [(n, "EINTR") for n in (3, 11)]

    def fail_at(point: tuple[int, str]) -> None:
        n, error = point
        supervise(
            site,
            order,
            "strace",
            "-f",
            "-o",
            os.devnull,
            "-e",
            "trace=write",
            "-e",
            f"inject=write:error={error}:when={n}",
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail_at, points))
    until(lambda: not site.living())
    states = {check(site, run_dir, is_whole=None).state for run_dir in site.root.iterdir()}

    assert states == {"succeeded", "failed", "stopped"}


@pytest.mark.usefixtures("has_strace")
@pytest.mark.parametrize("when", ["1", "1+"], ids=["once", "each time"])
def test_34_a_disk_that_cannot_keep_what_was_written_is_named(site: Site, when: str) -> None:
    """fdatasync fails, in every process of the run."""
    path = write_scenario(site.folder, 'lab.log(0, half=0.0)\nlab.claim("one-is-one", True)')

    supervise(
        site,
        order_for(site, path),
        "strace",
        "-f",
        "-o",
        os.devnull,
        "-e",
        "trace=fdatasync",
        "-e",
        f"inject=fdatasync:error=EIO:when={when}",
    )

    run_dir = latest(site)
    check(site, run_dir, "succeeded")
    _, text = view("attach", run_dir.name, "--root", str(site.root))
    assert "Input/output error" in text


@contextlib.contextmanager
def tiny_disk(site: Site, options: str) -> Iterator[None]:
    """Have the site's folder of runs on a disk of this size."""
    site.root.mkdir(mode=0o700)
    if (
        os.getuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"{options},mode=700", "none", site.root]
        ).returncode
    ):
        pytest.skip("mounting a small disk takes root")
    try:
        yield
    finally:
        site.end()
        subprocess.run(["umount", "--lazy", site.root], check=True)


@pytest.mark.parametrize("inodes", range(6, 17))
def test_31_a_command_on_a_disk_without_inodes_runs_or_says_why_not(
    site: Site, inodes: int
) -> None:
    with tiny_disk(site, f"size=8m,nr_inodes={inodes}"):
        done = site.run("exec", "--quiet", "--", "sh", "-c", "echo ran; exit 7")

    assert (done.returncode, done.stdout) in [(7, "ran\n"), (125, "")]
    if done.returncode == 125:
        assert done.stderr.startswith("tuilab: ") and "No space left on device" in done.stderr
    else:
        assert done.stderr == ""
    assert "Traceback" not in done.stderr


def test_30_values_of_a_command_without_room_for_marks_are_said_to_be_lost(site: Site) -> None:
    script = site.folder / "values.py"
    script.write_text("import tuilab\nfor at in range(3000): tuilab.log(at, x=at / 2)\n")
    with tiny_disk(site, "size=200k"):
        done = site.run("exec", "--headless", "--", sys.executable, str(script))

    assert done.returncode == 0
    assert "the watcher failed: OSError: [Errno 28] No space left on device" in " ".join(
        done.stderr.split()
    )


@pytest.mark.parametrize("inodes", range(8, 14))
def test_31_a_scenario_on_a_disk_without_inodes_runs_or_says_why_not(
    site: Site, inodes: int
) -> None:
    path = write_scenario(site.folder, "lab.log(1, loss=0.5)")
    with tiny_disk(site, f"size=8m,nr_inodes={inodes}"):
        done = site.run("run", str(path), "--headless")

    said = " ".join(done.stderr.split() + done.stdout.split())
    assert done.returncode == 0 or "No space left on device" in said
    assert "Traceback" not in said
