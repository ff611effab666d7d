"""A box on which others work, plant things, or take away what a run stands on."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.engine import look, until, write_scenario
from tests.faults.fronts import WAITS
from tests.faults.oracle import check, is_well, snapshot
from tests.faults.sites import Site, latest, reach_stage
from tests.faults.victims import is_suspended, kill, supervisor_of
from tuilab.runs.index import FILE

pytestmark = pytest.mark.faults


def test_78_a_supervisor_that_stands_still_is_not_taken_for_lost(site: Site, go: Path) -> None:
    run_dir = site.detach(write_scenario(site.folder, WAITS))
    reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    kill(supervisor, number=signal.SIGSTOP)
    until(lambda: is_suspended(supervisor[0]))
    go.touch()
    until(lambda: any(stage.name == "the last stage" for stage in look(run_dir).summary.stages))
    state, listed = look(run_dir).state, site.run("runs")
    kill(supervisor, number=signal.SIGCONT)

    assert state == "running" and " running " in listed.stdout and is_well(listed)
    check(site, run_dir, "succeeded")


def test_78_a_run_without_a_core_of_its_own_comes_to_its_end(site: Site) -> None:
    """Three that compute on one core, before which the run never comes unless they let it."""
    core = min(os.sched_getaffinity(0))
    alone = ["taskset", "--cpu-list", str(core)]
    if shutil.which("taskset") is None:
        pytest.skip("taskset is not installed")
    hogs = [subprocess.Popen([*alone, sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        path = write_scenario(site.folder, "for step in range(50): lab.log(step, half=step / 2)")
        done = site.run(
            "run",
            str(path),
            "--headless",
            "--quiet",
            command=[*alone, "nice", "-n", "5", sys.executable, "-P", "-m", "tuilab"],
        )
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()

    assert done.returncode == 0, done.stderr
    check(site, latest(site), "succeeded")


def test_80_nothing_is_kept_under_a_name_that_others_can_plant(site: Site) -> None:
    """Neither in the folder for temporary files, nor through a link in the place of what is kept in the folder of runs."""
    temporary = site.folder / "tmp"
    temporary.mkdir()
    victim = site.folder / "victim"
    victim.write_text("mine")
    site.root.mkdir(mode=0o700)
    for name in (FILE, ".queue"):
        (site.root / name).symlink_to(victim)
    path = str(write_scenario(site.folder, 'lab.claim("one-is-one", True)'))

    lines = (
        ("run", path, "--headless"),
        ("runs",),
        ("list",),
        ("queue",),
        ("report", "last", "-o", f"{site.folder}/r.html"),
    )
    said = [site.run(*words, env={"TMPDIR": str(temporary)}) for words in lines]

    assert all(map(is_well, said)), [done.stderr for done in said]
    assert victim.read_text() == "mine"
    assert list(temporary.iterdir()) == []
    check(site, latest(site), "succeeded")


def test_80_a_folder_of_runs_behind_a_link_holds_runs(site: Site) -> None:
    (site.folder / "real").mkdir(mode=0o700)
    site.root.symlink_to(site.folder / "real")

    done = site.run(
        "run", str(write_scenario(site.folder, "lab.log(0, half=0.0)")), "--headless", "--quiet"
    )

    assert done.returncode == 0 and is_well(done)
    check(site, latest(site), "succeeded")


def test_82_nothing_in_the_current_folder_is_taken_for_a_module_of_ours(site: Site) -> None:
    here = site.folder / "here"
    (here / "evil.egg-info").mkdir(parents=True)
    (here / "evil.egg-info" / "entry_points.txt").write_text(
        "[console_scripts]\ntuilab = evil:main\n"
    )
    hit = site.folder / "hit"
    for name in (
        "psutil",
        "torch",
        "sitecustomize",
        "usercustomize",
        "tuilab",
        "click",
        "msgspec",
        "pynvml",
        "scipy",
        "json",
        "numpy",
        "evil",
    ):
        (here / f"{name}.py").write_text(f"open({str(hit)!r}, 'a').write({name!r} + '\\n')\n")
    (here / "conftest.py").write_text(f"open({str(hit)!r}, 'a').write('conftest')\n")
    elsewhere = site.folder / "scenarios"
    elsewhere.mkdir()
    path = str(write_scenario(elsewhere, 'import psutil\nlab.claim("one-is-one", True)'))

    lines = (
        ("run", path, "--headless"),
        ("list",),
        ("runs",),
        ("verify",),
        ("check", path),
        ("attach", "last"),
        ("queue",),
    )
    said = [site.run(*words, cwd=here) for words in lines]

    assert [done.returncode for done in said[:4]] == [0] * 4, [done.stderr for done in said]
    assert not hit.exists(), hit.read_text()
    check(site, latest(site), "succeeded")


def test_85_programs_that_are_broken_are_no_part_of_a_run(site: Site) -> None:
    """Whatever could be asked along the way says nonsense and fails, and nobody asks systemd to run anything."""
    folder = site.folder / "bin"
    folder.mkdir()
    for name in (
        "systemd-run",
        "systemctl",
        "loginctl",
        "git",
        "nvidia-smi",
        "lscpu",
        "numactl",
        "ps",
        "stty",
        "tput",
        "uname",
    ):
        (folder / name).write_text(
            f"#!/bin/sh\necho {name} >>{site.folder}/asked\nprintf '\\033[2J\\377 nonsense'\nexit 42\n"
        )
        (folder / name).chmod(0o755)
    path = str(write_scenario(site.folder, 'lab.claim("one-is-one", True)'))
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}

    said = [
        site.run(*words, env=environment)
        for words in (("run", path, "--headless"), ("runs",), ("doctor",))
    ]

    assert all(map(is_well, said)) and said[0].returncode == 0, [
        done.stdout + done.stderr for done in said
    ]
    asked = site.folder / "asked"
    assert "systemd-run" not in (asked.read_text() if asked.exists() else "")
    check(site, latest(site), "succeeded")


@pytest.mark.parametrize("change", ["removed", "upgraded"])
def test_86_an_environment_that_goes_away_under_a_run_costs_what_was_still_to_be_loaded(
    site: Site, go: Path, change: str
) -> None:
    venv = site.folder / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(venv)], check=True
    )
    packages = next(venv.glob("lib/*/site-packages"))
    shutil.copytree(
        CHECKOUT / "tuilab", packages / "tuilab", ignore=shutil.ignore_patterns("__pycache__")
    )
    libraries = [entry for entry in sys.path if entry.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(libraries) + "\n")
    command = [str(venv / "bin" / "python"), "-P", "-m", "tuilab"]
    run_dir = site.detach(
        write_scenario(site.folder, f'lab.claim("one-is-one", True){WAITS}'), command=command
    )
    reach_stage(site, "on")
    if change == "removed":
        shutil.rmtree(
            venv.rename(site.folder / "gone")
        )  # at once: who still loads writes bytecode where it was
    else:
        for file in (packages / "tuilab").rglob("*.py"):
            file.write_text("raise SystemExit('another version')\n")
    go.touch()

    summary = check(site, run_dir, "succeeded", "failed").summary
    assert [stage.name for stage in summary.stages] == ["on", "the last stage"]
    assert summary.state == "succeeded" or summary.reason
    before = snapshot(run_dir)
    assert is_well(site.run("stop", "last")) and snapshot(run_dir) == before
