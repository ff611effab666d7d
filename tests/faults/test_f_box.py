"""A box that gives little: no folder, few descriptors, few processes, another user, a container."""

import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, reach_stage

pytestmark = pytest.mark.faults


def test_76_few_descriptors_are_a_sentence_or_a_failed_run_but_never_a_traceback(
    site: Site,
) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    for limit in (4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32):
        done = site.run(
            "run",
            str(path),
            "--headless",
            "--quiet",
            command=["bash", "-c", f'ulimit -n {limit}; exec "$@"', "-", TUILAB],
        )
        if limit > 6:  # with less, Python itself does not start
            assert is_well(done), (limit, done.stdout + done.stderr)

    assert done.returncode == 0
    until(lambda: not site.living())
    for run_dir in site.root.iterdir():
        assert "supervisor failed" not in check(site, run_dir).summary.reason


@pytest.mark.parametrize("processes_allowed", [1, 2, 3, 4, 8])
def test_21_77_without_room_for_processes_the_run_says_so(
    open_site: Site, as_nobody: list[str], processes_allowed: int
) -> None:
    """RLIMIT_NPROC, which root does not have: it counts every process and thread of that user."""
    site = open_site
    path = write_scenario(
        site.folder,
        "children = []\nwhile len(children) < 50:\n    if (child := os.fork()) == 0: time.sleep(600)\n    children.append(child)",
    )
    limit = f'ulimit -u {processes_allowed}; exec "$@"'

    done = site.run(
        "run",
        str(path),
        "--headless",
        "--quiet",
        command=[*as_nobody, "bash", "-c", limit, "-", TUILAB],
        cwd="/",
    )

    assert is_well(done), done.stdout + done.stderr
    assert done.returncode in (4, 5)
    until(lambda: not site.living())
    for run_dir in site.root.iterdir() if site.root.exists() else []:
        assert "supervisor failed" not in check(site, run_dir, "failed").summary.reason


def test_81_another_users_runs_are_not_touched_and_not_a_traceback(
    open_site: Site, as_nobody: list[str]
) -> None:
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


def test_79_the_widest_umask_opens_nothing(site: Site) -> None:
    path = write_scenario(
        site.folder, 'print("hello")\nlab.artifact("a.txt", "kept")\nlab.claim("one-is-one", True)'
    )

    done = site.run(
        "run", str(path), "--headless", command=["bash", "-c", 'umask 000; exec "$@"', "-", TUILAB]
    )
    site.run("list", command=["bash", "-c", 'umask 000; exec "$@"', "-", TUILAB])

    assert done.returncode == 0
    check(site, latest(site), "succeeded")
    assert site.root.stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o777 for entry in site.root.iterdir() if entry.is_file()} <= {
        0o600
    }
