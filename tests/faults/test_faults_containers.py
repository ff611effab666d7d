"""A container that ends with its front, as by `docker run IMAGE tuilab ...`: what runs in it comes to an end that is told."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import look, write_scenario
from tests.faults.fronts import Open
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, reach_stage
from tuilab.record import presence

pytestmark = pytest.mark.faults

WAITS = 'lab.stage("on")\ntime.sleep(600)'
CONTAIN = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
PASSES_ON = 'trap "kill -TERM \\$front" TERM; "$@" & front=$!; wait; wait $front'


@pytest.fixture
def alone() -> list[str]:
    """What stands before a command line to make it the first process of a pid namespace."""
    if subprocess.run([*CONTAIN, "true"], capture_output=True).returncode:
        pytest.skip("a pid namespace cannot be made here")
    return CONTAIN


@pytest.fixture
def with_init(alone: list[str], tmp_path: Path) -> list[str]:
    """The same behind an init that passes SIGTERM on, and ends with the one process that it starts."""
    init = tmp_path / "tini"
    init.symlink_to(shutil.which("sh") or "/bin/sh")
    return [*alone, str(init), "-c", PASSES_ON, "-"]


@pytest.mark.parametrize("before", ["alone", "with_init"])
def test_the_end_of_a_container_stops_the_run_that_its_front_follows(
    site: Site, request: pytest.FixtureRequest, before: str
) -> None:
    """SIGTERM is what `docker stop` sends to the first process, from which the kernel keeps what it does not handle."""
    path = write_scenario(site.folder, WAITS)
    front = site.start(
        "run", str(path), "--headless", command=[*request.getfixturevalue(before), TUILAB]
    )
    run_dir = reach_stage(site, "on")

    os.kill(presence.descendants(front.pid)[0], signal.SIGTERM)
    out, err = front.communicate(timeout=60)

    assert front.returncode == 130 and "Traceback" not in err
    assert "stopped: stop requested" in out
    check(site, run_dir, "stopped")


def test_a_terminal_that_goes_away_stops_the_run_of_a_container_too(
    site: Site, screens: Open, alone: list[str]
) -> None:
    """What was called from it dies of that, but for the first process, which cannot write there any more."""
    outlives = [word for word in alone if word != "--kill-child"]
    term = screens(
        "run", str(write_scenario(site.folder, WAITS)), "--headless", command=(*outlives, TUILAB)
    )
    run_dir = reach_stage(site, "on")

    term.hang_up()

    check(site, run_dir, "stopped")


def test_no_run_is_left_to_itself_where_it_would_end_at_once(site: Site, alone: list[str]) -> None:
    path = write_scenario(site.folder, WAITS)

    said = [
        site.run(*words, command=[*alone, TUILAB])
        for words in (("run", str(path), "--detach"), ("queue", "again"))
    ]

    assert [done.returncode for done in said] == [2, 2] and all(map(is_well, said))
    assert all("tuilab is the first process of this container" in done.stderr for done in said)
    assert not site.root.exists()


def test_whoever_leaves_the_screens_of_a_container_is_asked_and_its_runs_are_stopped(
    site: Site, screens: Open, alone: list[str]
) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)), command=(*alone, TUILAB))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "on")
    term.type("q")
    term.wait_for("Quit and stop these runs?")
    was_going_on = not look(run_dir).summary.is_over
    term.type("y")

    assert term.wait() == 0
    assert was_going_on
    assert b"continues" not in term.sent
    check(site, run_dir, "stopped")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("alone", "warn: tuilab is the first process of this container"),
        ("within", "pass: in a container"),
    ],
)
def test_the_doctor_says_what_a_container_takes_along(
    alone: list[str], before: str, told: str
) -> None:
    prefix = [*alone, "sh", "-c", '"$@"; exit', "-"] if before == "within" else alone
    ask = "from tuilab.doctor.ask_all import ask_group as a; one = a('session', 60)['session.container']; print(one.status, one.found, sep=': ')"

    done = subprocess.run(
        [*prefix, sys.executable, "-c", ask], capture_output=True, text=True, cwd="/"
    )

    assert done.stdout.startswith(told), done.stderr
