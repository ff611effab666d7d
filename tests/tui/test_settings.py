"""What the screens remember lies with the user, not with a folder of runs that others may use, too."""

import json
from pathlib import Path

import pytest

from tuilab.tui.state import settings
from tuilab.tui.state.settings import Settings


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "shared" / "runs"))
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared" / "screens.json"


def test_settings_are_kept_in_the_state_folder_of_the_user(old: Path, tmp_path: Path) -> None:
    settings.save(Settings(theme="tuilab-light", is_zoomed=True))

    assert not settings.load().is_zoomed
    assert (
        json.loads((tmp_path / "state" / "tuilab" / "screens.json").read_text())["theme"]
        == "tuilab-light"
    )
    assert not old.exists()


def test_an_old_file_is_moved_once(old: Path, tmp_path: Path) -> None:
    old.write_text('{"theme": "tuilab-light"}')
    first = settings.load()
    was_moved = not old.exists()
    old.write_text('{"theme": "ansi-dark"}')

    assert was_moved
    assert [first.theme, settings.load().theme] == ["tuilab-light"] * 2
    assert old.exists()


def test_the_old_file_of_somebody_else_is_left_alone(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.write_text('{"theme": "tuilab-light"}')
    monkeypatch.setattr("os.geteuid", lambda: 1 + old.stat().st_uid)

    assert settings.load() == Settings()
    assert old.exists()


def test_each_of_two_screens_that_are_open_keeps_what_was_changed_on_it(old: Path) -> None:
    settings.save(Settings(charts={"both": ["", 0], "gone": ["", 1]}))
    first, second = settings.load(), settings.load()
    first.theme, first.charts["mine"] = "tuilab-light", ["loss", 0]
    del first.charts["gone"]
    second.symbols, second.charts["yours"] = "ascii", ["", 2]
    for one in (first, second):
        settings.save(one)

    found = settings.load()
    assert (found.theme, found.symbols) == ("tuilab-light", "ascii")
    assert found.charts == {"both": ["", 0], "mine": ["loss", 0], "yours": ["", 2]}
