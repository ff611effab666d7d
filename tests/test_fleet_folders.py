"""The folders of runs on a node: what somebody keeps stays, what nobody keeps is ended and removed by who comes next."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import until, wait_for_stage, write_scenario
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
    keeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held])
    os.close(held)
    folders.clear()
    assert folder.is_dir()

    keeper.communicate(b"\n")
    folders.clear()

    assert [*place.iterdir()] == []


def test_what_may_be_somebody_elses_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = place / "tuilab-carried-new"  # and not held yet
    others, own = place / "tuilab-carried-a", place / "mine"
    for folder in (made, others, own):
        folder.mkdir()
    (own / "kept").touch()
    (place / "tuilab-carried-link").symlink_to(own)
    (others / "theirs").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    folders.clear()
    assert (others / "theirs").exists()

    monkeypatch.undo()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folders.clear()

    assert not others.exists() and made.is_dir() and (own / "kept").exists()


def test_a_run_that_goes_on_where_nobody_keeps_it_is_ended(tuilab: Tuilab, place: Path, tmp_path: Path) -> None:
    folder, held = folders.make()
    path = write_scenario(tmp_path, 'lab.stage("asleep")\ntime.sleep(600)')
    assert tuilab("run", str(path), "--detach", env={"TUILAB_ROOT": str(folder / "runs")}).returncode == 0
    run_dir = wait_for_stage(folder / "runs", "asleep")
    os.close(held)

    folders.clear()

    assert not folder.exists()
    until(lambda: presence.marked(run_dir.name) == [] or None)
