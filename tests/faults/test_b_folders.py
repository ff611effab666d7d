"""Folders that go away, have odd names, or are wanted by many at once; output of any size."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, TUILAB
from tests.engine import until, write_scenario
from tests.faults.gates import STEPS, gates, reaches
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest
from tuilab.errors import CannotRecord, ExitCode
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import read_run
from tuilab.runs import store

pytestmark = pytest.mark.faults

# ---- the run folder goes away


@pytest.mark.parametrize(
    "change", ["removed", "renamed", "replaced by a link", "replaced by another"]
)
def test_36_a_run_whose_folder_goes_away_is_stopped(site: Site, change: str) -> None:
    """Writing into a removed file succeeds silently; a run that nobody can see or stop must not go on."""
    at = gates(site)
    path = write_scenario(
        site.folder, 'lab.log(0, half=0.0)\nwait_for("gone")\ntime.sleep(600)', STEPS
    )
    front = site.start("run", str(path), "--headless")
    reaches(at, "gone")
    run_dir, aside, other = latest(site), site.folder / "aside", site.folder / "other"
    until(
        (run_dir / "journal" / "sampler.jsonl").exists
    )  # it begins beside the worker, and would open it in another folder
    (other / "journal").mkdir(parents=True)
    if change == "removed":
        shutil.rmtree(run_dir)
    else:
        run_dir.rename(aside)
    if change == "replaced by a link":
        run_dir.symlink_to(other)
    elif change == "replaced by another":
        other.rename(run_dir)
    (at / "gone").touch()

    out, err = front.communicate(timeout=60)
    until(lambda: not site.living())

    assert front.returncode == 4 and "Traceback" not in out + err
    if change != "removed":
        summary = read_run(aside)
        assert summary.state == "failed"
        assert summary.reason == "the folder of the run was removed or replaced"
    strangers = [
        entry
        for folder in (run_dir, other)
        if folder.exists()
        for entry in folder.rglob("*")
        if entry.is_file()
    ]
    assert strangers == []


# ---- where runs are kept


HOMES = [
    b"with spaces",
    b"with\nnewline",
    b"not-utf-8-\xff\xfe",
    "ünïcödé-目".encode(),
    b"-rf",
    b"a" * 200,
    b"$(touch hit)",
    b"\x1b[2J",
]


@pytest.mark.parametrize("name", HOMES, ids=repr)
def test_40_a_home_with_any_name_holds_runs(site: Site, name: bytes) -> None:
    home = os.fsencode(site.folder) + b"/" + name
    os.mkdir(home)
    environment = {os.fsencode(key): os.fsencode(value) for key, value in site.environment.items()}
    for variable in (b"TUILAB_ROOT", b"XDG_STATE_HOME"):
        environment.pop(variable, None)
    scenario = write_scenario(
        Path(os.fsdecode(home)), 'lab.log(0, half=0.0)\nlab.claim("one-is-one", True)'
    )
    everything = {**environment, b"HOME": home}

    def tuilab(*words: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [TUILAB, *words], env=everything, capture_output=True, timeout=60, cwd=home
        )

    ran = tuilab("run", str(scenario), "--headless")
    said = [
        ran,
        *(
            tuilab(*words)
            for words in (
                ("runs",),
                ("attach",),
                ("verify",),
                ("attach", "--json"),
                ("stop", "last"),
                ("rm", "last"),
            )
        ),
    ]

    assert [done.returncode for done in said] == [0] * 7, [done.stderr for done in said]
    assert b"Traceback" not in b"".join(done.stderr for done in said)
    assert not list(Path(os.fsdecode(home)).glob("hit"))
    until(lambda: not site.living())


@pytest.mark.parametrize("home", [None, "", "relative", "/proc/no", "/dev/null", "/nonexistent/x"])
def test_40_a_home_that_cannot_be_written_is_one_sentence(site: Site, home: str | None) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    unset = {
        name: value
        for name, value in site.environment.items()
        if name not in ("TUILAB_ROOT", "HOME", "XDG_STATE_HOME")
    }
    environment = unset if home is None else {**unset, "HOME": home}
    if home in (
        None,
        "",
        "/nonexistent/x",
    ):  # root may make folders anywhere, and has a home without a variable
        environment["XDG_STATE_HOME"] = "/proc/no"

    done = subprocess.run(
        [TUILAB, "run", str(path), "--headless"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    listed = subprocess.run(
        [TUILAB, "runs"], env=environment, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 5, done.stderr
    assert done.stderr.splitlines()[-1].startswith("tuilab: ") and is_well(done) and is_well(listed)


# Verbs without what belongs to another, and with names in it, which may be longer than any name.
HOMELESS = [
    *((verb, ()) for verb in [("list",), ("runs",), ("queue",), ("queue", "pause"), ("queue", "resume"), ("verify",), ("advise",), ("learn",), ("config",)]),
    *(((verb, "last"), ()) for verb in ("attach", "stop", "rm", "verify", "export", "show")),
    (("compare",), ("{}/a", "{}/b")), (("compare", "x" * 300, "y" * 5000), ()), (("compare",), ("{}/" + "x" * 300, "y")),
    (("run",), ("{}/x",)), (("run",), ("{}/x.py",)), (("show",), ("{}/x.py",)), (("check",), ("{}/x.py",)), (("new",), ("{}/x",)),
    (("report",), ("{}/a", "-o", "{}/y.html")), (("runs", "--root"), ("{}/x",)), (("list", "--scenarios"), ("{}/x",)), (("note", "last", "x"), ()),
]  # fmt: skip
# All in one process, which a verb ends with no exception but those that are a sentence.
EACH_VERB = """
import ast, sys
import click
from tests.faults.oracle import view
for words in ast.literal_eval(sys.argv[1]):
    try: print(view(*words)[0].value)
    except click.ClickException as problem: print(problem.exit_code)
"""


def test_40_a_home_that_belongs_to_another_user_is_one_sentence(
    open_site: Site, as_nobody: list[str]
) -> None:
    """As after `sudo -u`, which leaves HOME as it was."""
    site = open_site
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    home = site.folder / "home"
    home.mkdir(mode=0o700)
    environment = {
        "HOME": str(home),
        "TUILAB_ROOT": "",
        "XDG_STATE_HOME": "",
        "XDG_CACHE_HOME": "",
        "XDG_CONFIG_HOME": "",
    }

    done = site.run(
        "run", str(path), "--headless", command=[*as_nobody, TUILAB], cwd="/", env=environment
    )
    verbs = [(*words, *(end.format(home) for end in ends)) for words, ends in HOMELESS]
    told = [*as_nobody, sys.executable, "-c", EACH_VERB, repr(verbs)]
    seen = site.run(command=told, cwd=CHECKOUT, env={**environment, "PYTHONPATH": str(CHECKOUT)})

    assert (
        done.returncode == 5
        and done.stderr.splitlines()[-1].startswith("tuilab: ")
        and is_well(done)
    ), done.stderr
    assert seen.returncode == 0 and set(map(int, seen.stdout.split())) <= set(ExitCode), seen.stderr
    assert list(home.iterdir()) == []


def test_47_twenty_runs_that_start_at_once_have_twenty_folders(site: Site) -> None:
    path = str(write_scenario(site.folder, 'lab.claim("one-is-one", True)'))

    fronts = [site.start("run", path, "--detach") for _ in range(20)]
    ids = {front.communicate(timeout=60)[0].strip() for front in fronts}

    assert len(ids) == len(list(site.root.iterdir())) == 20
    for run_dir in site.root.iterdir():
        check(site, run_dir, "succeeded")


def test_47_two_supervisors_cannot_share_a_folder(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if both should draw the same name at the same second."""
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    monkeypatch.setattr(time, "time", lambda: 1.0)
    first = store.create("same", site.root)

    with pytest.raises(CannotRecord, match="File exists"):
        store.create("same", site.root)

    Writer(first / "journal" / "supervisor.jsonl").close()
    with pytest.raises(FileExistsError):
        Writer(first / "journal" / "supervisor.jsonl")


# ---- what a run prints and says
