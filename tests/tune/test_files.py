"""Which files a script wrote, changed and deleted, and the copy of a folder for a tuning."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tuilab.commands.tune import files
from tuilab.errors import UsageError

NOTHING = Path("/nowhere")


def changes(folder: Path, act: Callable[[], None]) -> files.FileChanges:
    """Return what `act` did to the files of a folder."""
    before = files.list_files(str(folder), NOTHING)
    act()
    return files.changes_between(before, files.list_files(str(folder), NOTHING))


def test_written_changed_and_deleted_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "gone.txt").write_text("gone")

    def act() -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "new.txt").write_text("new")
        (tmp_path / "old.txt").write_text("longer than before")
        (tmp_path / "gone.txt").unlink()

    assert changes(tmp_path, act) == (["out/new.txt"], ["old.txt"], ["gone.txt"])


def test_a_file_replaced_by_one_of_equal_size_and_time_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    path.write_text("first")
    status = path.stat()

    def act() -> None:
        other = tmp_path / "other"
        other.write_text("other")
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(other, path)

    assert changes(tmp_path, act).changed == ["weights.pt"]


def test_caches_version_control_and_the_runs_do_not_count(tmp_path: Path) -> None:
    runs = tmp_path / "runs"

    def act() -> None:
        for name in ("__pycache__", ".git", "runs"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text("x")

    before = files.list_files(str(tmp_path), runs)
    act()
    after = files.list_files(str(tmp_path), runs)

    assert files.changes_between(before, after) == ([], [], [])


def test_a_listing_that_is_not_whole_proves_no_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("x")
    before = files.list_files(str(tmp_path), NOTHING)
    monkeypatch.setattr(files, "_MOST_FILES", 2)

    after = files.list_files(str(tmp_path), NOTHING)

    assert not after.is_whole
    assert files.changes_between(before, after) == ([], [], [])


def test_a_copy_keeps_links_and_leaves_out_pipes_and_sockets(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print()")
    (folder / "data").symlink_to("/somewhere/else")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
        files.copy_folder(str(folder), tmp_path / "copy", NOTHING)

    assert sorted(os.listdir(tmp_path / "copy")) == ["data", "train.py"]
    assert os.readlink(tmp_path / "copy" / "data") == "/somewhere/else"


def test_a_copy_is_refused_if_the_disk_has_no_room(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a copy of .* takes .* and .* has .* free"):
        files.check_room("/project", 2**60, tmp_path)


def test_paths_in_the_folder_are_moved_to_the_copy_and_others_are_named() -> None:
    words = ["python", "/work/train.py", "--out=/work/out", "--data", "/data", "-n", "1"]

    moved = files.move_words(words, "/work", "/runs/copy")

    assert moved == [
        "python", "/runs/copy/train.py", "--out=/runs/copy/out", "--data", "/data", "-n", "1",
    ]  # fmt: skip
    assert files.paths_outside(words, "/work") == ["/data"]


def test_changed_and_deleted_files_of_a_copy_are_restored(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "train.bin").write_text("data")
    (folder / "counter.txt").write_text("1")
    copy = tmp_path / "copy"
    files.copy_folder(str(folder), copy, NOTHING)
    (copy / "data" / "train.bin").unlink()
    (copy / "counter.txt").write_text("22")
    (copy / "new.txt").write_text("new")

    files.restore(str(folder), copy, NOTHING)

    assert (copy / "data" / "train.bin").read_text() == "data"
    assert (copy / "counter.txt").read_text() == "1"
    assert (copy / "new.txt").read_text() == "new"
