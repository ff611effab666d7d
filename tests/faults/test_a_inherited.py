"""What a run gets from where it is started: signals, descriptors, a folder, a namespace of its own."""

import subprocess
import sys

import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, reach_stage

pytestmark = pytest.mark.faults


HOSTILE_START = """
import os, signal, sys
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_29_ignored_and_blocked_signals_are_not_inherited_by_the_run(site: Site) -> None:
    body = """
deaf = [s.name for s in signal.Signals if s not in (signal.SIGPIPE, signal.SIGXFSZ) and signal.getsignal(s) == signal.SIG_IGN]
lab.claim("it-ignores-nothing", " ".join(deaf), equals="")
lab.claim("it-blocks-nothing", len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), equals=0)
lab.stage("on")
time.sleep(600)
"""
    path = write_scenario(site.folder, body)
    site.run("run", str(path), "--detach", command=[sys.executable, "-c", HOSTILE_START, TUILAB])
    run_dir = reach_stage(site, "on")

    site.run("stop", "last")

    summary = check(site, run_dir, "stopped").summary
    assert [claim.verdict.verdict for claim in summary.claims.values() if claim.verdict] == [
        "SUPPORTED",
        "SUPPORTED",
    ]


def test_29_a_current_folder_that_was_deleted_is_no_problem(site: Site) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    gone = site.folder / "gone"
    gone.mkdir()
    command = ["bash", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "-", str(gone), TUILAB]

    done = site.run("run", str(path), "--headless", "--quiet", command=command)

    assert done.returncode == 0 and is_well(done), done.stderr
    check(site, latest(site), "succeeded")
    for words in (
        ("run", "./probe.py"),
        ("run", str(path), "--root", "here", "--headless"),
        ("check", str(path)),
        ("list",),
    ):
        gone.mkdir()
        assert is_well(site.run(*words, command=command)), words


def test_29_closed_standard_streams_do_not_confuse_a_detached_run(site: Site) -> None:
    path = write_scenario(site.folder, 'print("hello")\nlab.log(0, half=0.0)')
    done = site.run(
        "run", str(path), "--detach", command=["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", TUILAB]
    )

    run_dir = latest(site)
    assert done.returncode == 0
    check(site, run_dir, "succeeded")
    assert (run_dir / "stdout.log").read_bytes() == b"hello\n"


def test_28_a_run_inside_a_container_ends_with_it_and_is_not_taken_for_one_of_ours(
    site: Site,
) -> None:
    """The front is PID 1 of a pid namespace of its own; from outside its pids mean nothing."""
    contain = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*contain, "true"], capture_output=True).returncode:
        pytest.skip("a pid namespace cannot be made here")
    inside = site.start(
        "run",
        str(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)')),
        "--headless",
        command=[*contain, TUILAB],
    )
    run_dir = reach_stage(site, "on")

    stop, rm = site.run("stop", "last"), site.run("rm", "last")
    inside.kill()

    assert stop.returncode == rm.returncode == 2
    assert "stop it there" in stop.stderr
    assert look(run_dir).state == "running"
    until(lambda: not site.living())
    finished = site.run(
        "run",
        str(write_scenario(site.folder, "lab.log(0, half=0.0)")),
        "--headless",
        command=[*contain, TUILAB],
    )
    assert finished.returncode == 0
    check(site, latest(site), "succeeded")
