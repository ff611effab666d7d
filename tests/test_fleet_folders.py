"""The folders of runs on a node: what somebody keeps stays, what nobody keeps is ended and removed by who comes next."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import until, wait_for_stage, write_scenario
from tuilab.engine import launch
from tuilab.fleet import folders
from tuilab.record import presence

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_a_folder_goes_when_the_last_who_holds_it_has_gone(place: Path) -> None:
    folder, held = folders.make()
    (folder / "source").mkdir()
    keeper = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held]
    )
    os.close(held)
    folders.clear()
    assert folder.is_dir()

    keeper.communicate(b"\n")
    folders.clear()

    assert [*place.iterdir()] == []


def test_what_may_be_somebody_elses_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, held = folders.make()
    os.close(held)
    made = name.rename(f"{name}-new")  # and not held yet
    others, own, booted = Path(f"{name}-a"), place / "mine", place / f"{folders.PREFIX}00000000-a"
    for folder in (others, own, booted):
        folder.mkdir()
    (booted / "of another boot").touch()
    (own / "kept").touch()
    Path(f"{name}-link").symlink_to(own)
    (others / "theirs").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    folders.clear()
    assert (others / "theirs").exists()

    monkeypatch.undo()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folders.clear()

    assert not others.exists() and made.is_dir() and (own / "kept").exists() and [*booted.iterdir()]


def test_a_folder_stays_while_what_runs_there_has_not_ended(
    tuilab: Tuilab, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, held = folders.make()
    begun = tuilab(
        "exec",
        "--detach",
        "--watch",
        "nothing",
        "--",
        "sleep",
        "600",
        env={"TUILAB_ROOT": str(folder / "runs")},
    )
    assert begun.returncode == 0
    (run_dir,) = until(lambda: [*(folder / "runs").glob("2*")])
    until(lambda: presence.marked(run_dir.name))
    os.close(held)
    with monkeypatch.context() as patch:
        patch.setattr(
            launch, "stop", lambda *_, **__: "asked"
        )  # which a driver may not let it heed
        patch.setattr(folders, "_PATIENCE_S", 0.0)
        folders.clear()
    assert run_dir.is_dir()

    folders.clear()

    assert not folder.exists()


def test_a_run_that_goes_on_where_nobody_keeps_it_is_ended(
    tuilab: Tuilab, place: Path, tmp_path: Path
) -> None:
    folder, held = folders.make()
    path = write_scenario(tmp_path, 'lab.stage("asleep")\ntime.sleep(600)')
    assert (
        tuilab("run", str(path), "--detach", env={"TUILAB_ROOT": str(folder / "runs")}).returncode
        == 0
    )
    run_dir = wait_for_stage(folder / "runs", "asleep")
    os.close(held)

    folders.clear()

    assert not folder.exists()
    until(lambda: presence.marked(run_dir.name) == [] or None)
