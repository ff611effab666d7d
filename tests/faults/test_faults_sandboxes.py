"""Sandboxes whose /proc shows little, nothing, or the processes of others: what works there, and what is said where it cannot."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, TUILAB
from tests.engine import look, write_scenario
from tests.fakes.no_calls import PIDFDS
from tests.faults.fronts import Open
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, reach_stage

pytestmark = pytest.mark.faults

NEWER = (
    f"{PIDFDS},close_range,statx,memfd_create,copy_file_range,renameat2"  # than what tuilab needs
)
WAITS = 'lab.stage("on")\ntime.sleep(600)'
LITTLE = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t proc -o subset=pid none /proc && exec "$@"',
    "-",
]
NOTHING = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "-"]
OTHERS = ["unshare", "--pid", "--fork", "--kill-child"]  # with the /proc of the namespace outside
HIDES = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t proc -o hidepid=2 none /proc && exec "$@"',
    "-",
]
LATER = ["unshare", "--time", "--fork", "--boottime", "100000", "--monotonic", "50000"]


def there(prefix: list[str]) -> list[str]:
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip(f"{' '.join(prefix[:3])} takes root, or a newer kernel")
    return [*prefix, TUILAB]


@pytest.mark.parametrize("prefix", [NOTHING, OTHERS], ids=["no /proc", "that of others"])
def test_where_proc_does_not_show_a_run_none_begins_and_none_is_taken_for_lost(
    site: Site, prefix: list[str]
) -> None:
    inside = there(prefix)
    run_dir = site.detach(write_scenario(site.folder, WAITS))
    reach_stage(site, "on")

    refused = site.run(
        "run",
        str(write_scenario(site.folder, "lab.log(0, a=1.0)", name="other")),
        "--headless",
        command=inside,
    )
    stop, rm = (
        site.run("stop", "last", command=inside),
        site.run("rm", "last", "--yes", command=inside),
    )

    assert (
        refused.returncode == 3
        and "could not be looked after or stopped here: /proc " in refused.stderr
        and is_well(refused)
    )
    assert stop.returncode == rm.returncode == 2
    assert [*site.root.iterdir()] == [run_dir]
    assert look(run_dir).state == "running"
    site.run("stop", "last", "--now")
    check(site, run_dir, "stopped")


def test_a_proc_that_shows_processes_only_is_enough(site: Site) -> None:
    inside = there(LITTLE)
    run_dir = site.detach(write_scenario(site.folder, WAITS), command=inside)
    reach_stage(site, "on")

    assert look(run_dir).state == "running"  # from outside, where the boot is known
    assert site.run("stop", "last", command=inside).returncode == 0
    check(site, run_dir, "stopped")


@pytest.mark.parametrize("is_within", [True, False], ids=["made within", "made outside"])
def test_a_run_lives_whatever_time_it_is_in_another_namespace(
    site: Site, screens: Open, is_within: bool
) -> None:
    inside = there(LATER)
    path: Path = write_scenario(site.folder, WAITS)
    site.detach(path, command=inside if is_within else [TUILAB])
    reach_stage(site, "on")
    elsewhere = [TUILAB] if is_within else inside
    term = screens("attach", "last", command=tuple(elsewhere))
    term.wait_for("running", "on")
    heading = term.text.splitlines()[0].rstrip()
    term.type("q")
    term.wait()

    stop = site.run("stop", "last", command=elsewhere)

    assert re.search(r" \d+ s$", heading)  # which began some seconds ago
    assert stop.stdout.startswith("asked ")
    check(site, latest(site), "stopped")


def test_a_run_of_another_user_lives_where_proc_hides_it(
    open_site: Site, as_nobody: list[str]
) -> None:
    """hidepid=2, as on the login nodes of clusters: to others a process that is hidden looks like one that is gone."""
    site = open_site
    command = [*there(HIDES)[:-1], *as_nobody, TUILAB]
    run_dir = site.detach(write_scenario(site.folder, WAITS))
    reach_stage(site, "on")
    for path in (site.root, run_dir, *run_dir.rglob("*")):
        path.chmod(path.stat().st_mode | 0o055)  # whoever has a folder may open it to others

    runs, stop, rm = (
        site.run(*words, command=command, cwd="/")
        for words in (["runs"], ["stop", "last"], ["rm", "last"])
    )

    assert " running " in runs.stdout and is_well(runs)
    assert "it belongs to another user; ask that user to stop it" in stop.stderr and is_well(stop)
    assert rm.returncode == 2 and "is running; stop it first" in rm.stderr
    for path in (site.root, run_dir, *run_dir.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o055)
    site.run("stop", "last", "--now")
    check(site, run_dir, "stopped")


@pytest.mark.parametrize(
    ("says", "names"), [("ENOSYS", f"clone3,{NEWER}"), ("EPERM", NEWER)]
)  # a C library minds clone3's EPERM
def test_an_old_kernel_and_a_strict_profile_are_enough(site: Site, says: str, names: str) -> None:
    inside = [sys.executable, str(CHECKOUT / "tests/fakes/no_calls.py"), says, names, TUILAB]
    path = write_scenario(
        site.folder, 'print("hello")\nlab.log(0, a=1.0)\nlab.claim("one-is-one", True)'
    )
    there = str(site.folder / "there")
    verbs = (
        ("export", "last", "-o", f"{there}.tar.gz"),
        ("import", f"{there}.tar.gz", "--root", there),
        ("verify", "last"),
    )

    said = [
        site.run(*words, command=inside) for words in (("run", str(path), "--headless"), *verbs)
    ]

    assert [done.returncode for done in said] == [0] * 4, [done.stderr for done in said]
    check(site, latest(site), "succeeded")


@pytest.mark.parametrize(
    ("prefix", "status", "found"),
    [
        (NOTHING, "fail", "/proc is not mounted: runs cannot start here"),
        (OTHERS, "fail", "/proc belongs to another pid namespace: runs cannot start here"),
        (LITTLE, "warn", "/proc shows only processes: "),
        (HIDES, "pass", "/proc shows the processes of a run"),
        (LATER, "pass", "/proc shows the processes of a run"),
    ],
    ids=["nothing", "others", "little", "hides", "later"],
)
def test_the_doctor_says_what_proc_shows(prefix: list[str], status: str, found: str) -> None:
    told = asked([*there(prefix)[:-1]], "stopping.proc(Box())")

    assert told.startswith(f"{status}: {found}")


def test_the_doctor_says_that_others_are_hidden(as_nobody: list[str]) -> None:
    told = asked([*there(HIDES)[:-1], *as_nobody], "processor.others(Box())")

    assert told.startswith("n/a: processes of other users are hidden (hidepid=")


def asked(prefix: list[str], question: str) -> str:
    """Return the answer to a question of the doctor, asked behind a prefix."""
    ask = f"from tuilab.doctor import Box, processor, stopping; found = {question}; print(f'{{found.status}}: {{found.found}}')"
    done = subprocess.run(
        [*prefix, sys.executable, "-c", ask], capture_output=True, text=True, cwd="/"
    )
    return done.stdout + done.stderr
