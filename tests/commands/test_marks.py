"""Marks of programs that follow each other under one PID, and of a disk without room: nothing is lost without a word."""

import errno
import os
from pathlib import Path

import pytest

from tuilab.commands.marks import Mark, MarksFolder
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring


def read_values(marks: MarksFolder, *, is_last: bool = False) -> list[float]:
    return [mark.value for _, news in marks.read(is_last=is_last) for mark in news]


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)


def let_roll_again(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the disk give room again, and have a ring ask for it at once."""
    monkeypatch.undo()
    monkeypatch.setattr(ring, "_retry_at_s", 0.0)


def test_programs_that_follow_each_other_under_one_pid_lose_no_mark(tmp_path: Path) -> None:
    marks = MarksFolder(tmp_path)

    values = []
    for at in range(31):
        Ring(str(tmp_path)).mark(layout.LOGGED, 0, 0, float(at))
        values += read_values(marks)
    values += read_values(marks, is_last=True)

    assert values == list(map(float, range(31)))
    assert len(list(tmp_path.iterdir())) == 1


def test_losses_of_programs_under_one_pid_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = layout.SIZE // layout.SLOT - layout.FIRST
    marks = MarksFolder(tmp_path)
    for lost in (3, 5, 2):
        ring = Ring(str(tmp_path))
        fill_disk(monkeypatch)
        for _ in range(room + lost):
            ring.mark(layout.WAITED, 1, 2)
        monkeypatch.undo()
        read_values(marks)
    read_values(marks, is_last=True)

    (process,) = marks.processes.values()
    assert process.lost == 10


def test_a_name_without_room_is_kept_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubles: list[OSError] = []
    fill_disk(monkeypatch)
    ring = Ring(str(tmp_path), troubles.append)
    ring.text(layout.NAME, "loss\nlogger " * 10, 1)
    ring.mark(layout.LOGGED, 1, 1, 0.5, name=1)
    let_roll_again(ring, monkeypatch)
    ring.mark(layout.LOGGED, 2, 2, 0.25, name=1)

    marks = MarksFolder(tmp_path)
    ((process, news),) = marks.read(is_last=True)
    assert [problem.errno for problem in troubles[:1]] == [errno.ENOSPC]
    assert process.names == {1: "loss\nlogger " * 10}
    assert [mark.value for mark in news] == [0.25]
    assert process.lost == 1


def test_names_that_fill_a_file_go_on_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch)
    ring = Ring(str(tmp_path))
    for number in range(150):
        ring.text(layout.NAME, f"{number} " * 700, number)
    let_roll_again(ring, monkeypatch)
    for at in range(9000):
        ring.mark(layout.WAITED, at, at)

    marks = MarksFolder(tmp_path)
    news: list[Mark] = []
    for _, some in marks.read(is_last=True):
        news += some
    (process,) = marks.processes.values()
    assert (len(news), len(process.names), process.lost) == (9000, 150, 0)


class InterruptedRing(Ring):
    """A ring that a signal handler interrupts each time that it begins a file. The handler logs."""

    def _put_late_texts(self, new_file: object) -> int:
        self.mark(layout.LOGGED, 1, 1, 0.5)
        return super()._put_late_texts(new_file)


def test_logging_while_a_file_begins_loses_no_other_mark(tmp_path: Path) -> None:
    ring = InterruptedRing(str(tmp_path))
    marks = MarksFolder(tmp_path)
    values = []
    for step in range(20_000):  # three files
        ring.mark(layout.WAITED, step, step, value=step)
        if step % 1000 == 0:
            values += read_values(marks)
    values += read_values(marks, is_last=True)

    (process,) = marks.processes.values()
    assert values == list(range(20_000))
    assert process.lost == 3


def test_trouble_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "7.trouble").touch()

    marks = MarksFolder(tmp_path)
    assert list(marks.read(is_last=True)) == []
    assert "may be full" in marks.processes[7].trouble
