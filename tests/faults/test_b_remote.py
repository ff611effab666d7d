"""A folder of runs on another machine: its server hangs, or dies."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.engine import until, write_scenario
from tests.faults.conftest import Ssh
from tests.faults.gates import STEPS, gates, reaches
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site

pytestmark = pytest.mark.faults


@pytest.fixture
def remote(site: Site, ssh: Ssh) -> Iterator[Path]:
    """The site's folder of runs as sshfs shows it; returns the folder behind it, which the server has."""
    if shutil.which("sshfs") is None or not os.access("/dev/fuse", os.W_OK):
        pytest.skip("sshfs takes sshfs and /dev/fuse")
    behind = site.folder / "behind"
    behind.mkdir(mode=0o700)
    site.root.mkdir(mode=0o700)
    command = [
        "sshfs",
        "-o",
        f"ssh_command={' '.join(ssh.command)}",
        f"localhost:{behind}",
        str(site.root),
    ]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("sshfs may not mount here")
    yield behind
    for process in sessions(ssh):
        process.kill()
    site.end()
    while subprocess.run(["umount", "--lazy", site.root], capture_output=True).returncode == 0:
        pass


def sessions(ssh: Ssh) -> list[psutil.Process]:
    """Return what the server has started for who is connected."""
    return list(psutil.Process(ssh.server.pid).children(recursive=True))


BODY = """
for step in range(100): lab.log(step, half=step / 2)
wait_for("away")
for step in range(100, 200): lab.log(step, half=step / 2)
"""


def test_39_a_server_that_hangs_holds_up_the_run_and_loses_nothing(
    site: Site, ssh: Ssh, remote: Path
) -> None:
    at = gates(site)
    run_dir = site.detach(write_scenario(site.folder, BODY, STEPS))
    reaches(at, "away")
    for process in sessions(ssh):
        process.suspend()
    (at / "away").touch()
    watching = [
        site.start(*words)
        for words in (("runs",), ("attach", "last", "--headless"), ("verify", "last"))
    ]
    until(lambda: all(is_held(front.pid) for front in watching))
    for process in sessions(ssh):
        process.resume()

    said = [front.communicate(timeout=60) for front in watching]
    assert [front.returncode for front in watching[:2]] == [0, 0], said
    assert "Traceback" not in repr(said)
    assert check(site, run_dir, "succeeded").summary.series["half", "", "worker-0"].count == 200


def is_held(pid: int) -> bool:
    """Whether a process waits for a file system that is served by another."""
    return (
        "fuse" in Path(f"/proc/{pid}/wchan").read_text()
        or "request_wait" in Path(f"/proc/{pid}/wchan").read_text()
    )


def test_39_a_server_that_dies_costs_what_it_had_not_and_leaves_no_process(
    site: Site, ssh: Ssh, remote: Path
) -> None:
    at = gates(site)
    front = site.start(
        "run", str(write_scenario(site.folder, BODY, STEPS)), "--headless", "--quiet"
    )
    reaches(at, "away")
    for process in sessions(ssh):
        process.kill()
    (at / "away").touch()
    out, err = front.communicate(timeout=60)
    said = [site.run(*words) for words in (("runs",), ("list",), ("stop", "last"))]

    assert front.returncode in (2, 4, 5) and is_well(
        subprocess.CompletedProcess([], front.returncode, out, err)
    ), out + err
    assert all(map(is_well, said)), [done.stderr for done in said]
    until(lambda: not site.living())
    subprocess.run(
        ["umount", "--lazy", site.root], capture_output=True
    )  # sshfs may have gone, and its mount with it
    subprocess.run(["mount", "--bind", remote, site.root], check=True)
    (run_dir,) = (folder for folder in site.root.iterdir() if folder.name[0] != ".")
    summary = check(site, run_dir, "failed", "lost", is_whole=None).summary
    assert summary.series["half", "", "worker-0"].count >= 100
