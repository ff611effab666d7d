"""A disk that becomes full under a run that goes on is told wherever the run is looked at, while it lasts."""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner

from tests.engine import until
from tests.made_runs import make_run, started
from tests.tui.screens import app_on, open_run, opened, shown, text
from tuilab.cli import subcommands
from tuilab.cli.headless import PlainProgress
from tuilab.drawings.glyphs import Style
from tuilab.record.events import Identity, StateChanged
from tuilab.record.live_run import Watch
from tuilab.runs import disk_room
from tuilab.runs.disk_room import DiskRoom, RunGrowth


class Disk:
    """A disk of 1000 blocks of 1 KiB, of which so many are free, for root and for others."""

    def __init__(self) -> None:
        self.blocks, self.free, self.free_for_others = 1000, 0, 0
        self.answers = Event()
        self.answers.set()

    def statvfs(self, _: object) -> os.statvfs_result:
        self.answers.wait()
        return os.statvfs_result(
            (1024, 1024, self.blocks, self.free, self.free_for_others, 0, 0, 0, 0, 255)
        )


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk that every folder is on; it is full."""
    found = Disk()
    monkeypatch.setattr(os, "statvfs", found.statvfs)
    yield found
    found.answers.set()


def going(root: Path, host: str = "") -> Path:
    """Make a run that goes on, here or on another box."""
    elsewhere = {"supervisor": Identity(host, "b", 1, 1)} if host else {}
    return make_run(root, started(is_alive=True, **elsewhere), StateChanged(state="running"))


def test_a_disk_is_full_where_whoever_owns_the_folder_has_no_room_for_a_record(
    root: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir()
    found = [disk_room.is_full(root)]
    disk.free = 50  # kept for root
    for owner in (0, 1000):
        monkeypatch.setattr(
            os, "stat", lambda _, uid=owner: os.stat_result((0, 0, 0, 0, uid, 0, 0, 0, 0, 0))
        )
        found.append(disk_room.is_full(root))
    disk.free_for_others = 4
    found.append(disk_room.is_full(root))
    monkeypatch.undo()

    assert found == [True, False, True, False]


def test_a_disk_that_tells_nothing_is_not_called_full(root: Path, disk: Disk) -> None:
    root.mkdir()
    disk.blocks = 0

    assert not disk_room.is_full(root)
    assert not disk_room.is_full(root / "gone")


def test_a_disk_that_hangs_holds_nobody_up_and_is_asked_once(root: Path, disk: Disk) -> None:
    root.mkdir()
    disk.answers.clear()
    room = DiskRoom(root)
    while_it_hangs = [room.is_full() for _ in range(3)]
    disk.answers.set()

    assert while_it_hangs == [False] * 3
    assert until(room.is_full)


async def test_the_page_of_a_run_tells_it_above_its_panes_until_there_is_room(
    root: Path, disk: Disk
) -> None:
    run_dir = going(root)
    async with opened(app_on(root), size=(160, 40)) as pilot:
        await open_run(pilot, run_dir)
        told = await shown(pilot, "no room in")
        disk.free = disk.free_for_others = 100
        page = pilot.app.screen
        while "no room in" in text(pilot):
            await pilot.pause(0.05)

        step = f"tuilab rm --older-than 30d --root {root}"
        assert (
            f"no room in {root}, so records of runs are lost; free some space, for example:"
            in " ".join(told.split())
        )
        assert step in " ".join(told.split()) and page is pilot.app.screen


async def test_history_tells_it_while_a_run_goes_on(root: Path, disk: Disk) -> None:
    going(root)
    async with opened(app_on(root), "h", size=(160, 40)) as pilot:
        assert "records of runs are lost" in await shown(pilot, "no room in")


def test_headless_talk_tells_it_once_and_again_when_the_disk_is_full_again(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Watch(going(root))
    watch.catch_up()
    talk = PlainProgress(Style())
    for warning in ("", "no room", "no room", "", "no room"):
        talk.update(watch, warning)
    watch.close()

    assert capsys.readouterr().err.splitlines().count("softmax: no room") == 2


@pytest.mark.parametrize(("host", "is_told"), [("", True), ("another", False)])
def test_the_list_of_runs_tells_it_where_one_goes_on_here(
    root: Path, disk: Disk, host: str, is_told: bool
) -> None:
    going(root, host)
    done = CliRunner().invoke(subcommands.tuilab, ["runs", "--root", str(root)])

    assert ("no room in" in done.output) == is_told


def test_a_run_that_is_over_or_elsewhere_is_not_warned_of(root: Path, disk: Disk) -> None:
    room = DiskRoom(root)
    here = Watch(going(root))
    over = Watch(
        make_run(root, started(is_alive=True), StateChanged(state="succeeded"), end="bbbbbb")
    )
    elsewhere = Watch(
        make_run(root, started(supervisor=Identity("another", "b", 1, 1)), end="cccccc")
    )
    for watch in (here, over, elsewhere):
        watch.catch_up()
    until(room.is_full)
    told = [bool(room.warning(watch)) for watch in (here, over, elsewhere)]
    for watch in (here, over, elsewhere):
        watch.close()

    assert told == [True, False, False]


def grow(bytes_per_s: float, seconds: int) -> RunGrowth:
    """Return the growth of a record that grows evenly, looked at each second."""
    growth = RunGrowth()
    for second in range(seconds):
        growth.read(second, round(1000 + bytes_per_s * second))
    return growth


def test_growth_of_a_record_is_known_after_a_minute() -> None:
    assert grow(1e6, 50).warning(10**9) == ""
    assert grow(1e6, 90).bytes_per_hour() == 3600e6


def test_fast_growth_is_a_warning_with_the_room_that_is_left() -> None:
    free = 50 * 1024**3

    assert grow(1024**2, 400).warning(free) == (
        "this run writes 3.516 GiB an hour; its disk has room for 14 hours. "
        "Log fewer values, or not in each step."
    )
    assert grow(1024, 400).warning(free) == ""
    assert grow(1024**2, 400).warning(None).startswith("this run writes 3.516 GiB an hour. ")


def test_slow_growth_is_a_warning_where_the_disk_is_full_within_a_day() -> None:
    assert "less than an hour" in grow(1024, 400).warning(900 * 1024)


def test_growth_is_that_of_the_last_minutes() -> None:
    growth = grow(1e6, 400)
    for second in range(400, 1000):
        growth.read(second, 400_000_000)

    assert growth.bytes_per_hour() == 0
    assert growth.warning(10**9) == ""
