"""A box that gives little: no folder, few descriptors, few processes, another user, a container."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, make_site, reach_stage

pytestmark = pytest.mark.faults


def test_a_current_folder_that_was_deleted_is_no_problem(site: Site) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    gone = site.folder / "gone"
    gone.mkdir()
    command = ["bash", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "-", str(gone), TUILAB]

    done = site.run("run", str(path), "--headless", "--quiet", command=command)

    assert done.returncode == 0 and is_well(done), done.stderr
    check(site, latest(site), "succeeded")
    for words in (("run", "./probe.py"), ("run", str(path), "--root", "here", "--headless"), ("check", str(path)), ("list",)):
        gone.mkdir()
        assert is_well(site.run(*words, command=command)), words


def test_closed_standard_streams_do_not_confuse_a_detached_run(site: Site) -> None:
    path = write_scenario(site.folder, 'print("hello")\nlab.log(0, half=0.0)')
    done = site.run("run", str(path), "--detach", command=["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", TUILAB])

    run_dir = latest(site)
    assert done.returncode == 0
    check(site, run_dir, "succeeded")
    assert (run_dir / "stdout.log").read_bytes() == b"hello\n"


def test_few_descriptors_are_a_sentence_or_a_failed_run_but_never_a_traceback(site: Site) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    for limit in (4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32):
        done = site.run(
            "run", str(path), "--headless", "--quiet", command=["bash", "-c", f'ulimit -n {limit}; exec "$@"', "-", TUILAB]
        )
        if limit > 6:  # with less, Python itself does not start
            assert is_well(done), (limit, done.stdout + done.stderr)

    assert done.returncode == 0
    until(lambda: not site.living())
    for run_dir in site.root.iterdir():
        assert "supervisor failed" not in check(site, run_dir).summary.reason


AS_NOBODY = """
mount --bind "$1" /mnt && mount -t tmpfs -o mode=755 none "$0" && mkdir -p "$1" && mount --bind /mnt "$1" && umount /mnt || exit 9
shift && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


@pytest.fixture(scope="module")
def as_nobody() -> list[str]:
    """What stands before a command line to run it without rights, or skip; a Python in a closed home is made visible."""
    if os.getuid() != 0:
        pytest.skip("becoming another user takes root")
    base = Path(sys.base_prefix)
    closed = [str(folder) for folder in reversed(base.parents) if not folder.stat().st_mode & 0o001]
    prefix = ["unshare", "--mount", "sh", "-c", AS_NOBODY, closed[0], str(base)] if closed else []
    prefix = prefix or ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*prefix, sys.executable, "-c", "import tuilab"], cwd="/", capture_output=True).returncode:
        pytest.skip("another user cannot read this environment")
    return prefix


@pytest.fixture
def open_site() -> Iterator[Site]:
    """A site that another user may enter and write into."""
    with tempfile.TemporaryDirectory(prefix="tuilab-faults-") as folder:
        os.chmod(folder, 0o777)
        made = make_site(Path(folder))
        made.environment["HOME"] = folder
        yield made
        made.end()


@pytest.mark.parametrize("processes_allowed", [1, 2, 3, 4, 8])
def test_without_room_for_processes_the_run_says_so(open_site: Site, as_nobody: list[str], processes_allowed: int) -> None:
    """RLIMIT_NPROC, which root does not have: it counts every process and thread of that user."""
    site = open_site
    path = write_scenario(
        site.folder,
        "children = []\nwhile len(children) < 50:\n    if (child := os.fork()) == 0: time.sleep(600)\n    children.append(child)",
    )
    limit = f'ulimit -u {processes_allowed}; exec "$@"'

    done = site.run("run", str(path), "--headless", "--quiet", command=[*as_nobody, "bash", "-c", limit, "-", TUILAB], cwd="/")

    assert is_well(done), done.stdout + done.stderr
    assert done.returncode in (4, 5)
    until(lambda: not site.living())
    for run_dir in site.root.iterdir() if site.root.exists() else []:
        assert "supervisor failed" not in check(site, run_dir, "failed").summary.reason


def test_another_users_runs_are_not_touched_and_not_a_traceback(open_site: Site, as_nobody: list[str]) -> None:
    site = open_site
    site.root.mkdir(mode=0o777)
    site.root.chmod(0o777)
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    verbs = [
        ("runs",),
        ("list",),
        ("attach", "last"),
        ("verify", "last"),
        ("stop", "last"),
        ("rm", "last"),
        ("stop", run_dir.name),
    ]

    said = [site.run(*words, command=[*as_nobody, TUILAB], cwd="/") for words in verbs]

    assert all(map(is_well, said)), [done.stderr for done in said]
    assert [done.returncode for done in said[2:]] == [2] * 5
    assert look(run_dir).state == "running"
    site.run("stop", "last", "--now")
    check(site, run_dir, "stopped")


def test_a_run_inside_a_container_ends_with_it_and_is_not_taken_for_one_of_ours(site: Site) -> None:
    """The front is PID 1 of a pid namespace of its own; from outside its pids mean nothing."""
    contain = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*contain, "true"], capture_output=True).returncode:
        pytest.skip("a pid namespace cannot be made here")
    inside = site.start(
        "run", str(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)')), "--headless", command=[*contain, TUILAB]
    )
    run_dir = reach_stage(site, "on")

    stop, rm = site.run("stop", "last"), site.run("rm", "last")
    inside.kill()

    assert stop.returncode == rm.returncode == 2
    assert "stop it there" in stop.stderr
    assert look(run_dir).state == "running"
    until(lambda: not site.living())
    finished = site.run(
        "run", str(write_scenario(site.folder, "lab.log(0, half=0.0)")), "--headless", command=[*contain, TUILAB]
    )
    assert finished.returncode == 0
    check(site, latest(site), "succeeded")
