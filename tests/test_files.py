"""Files that are replaced at once, and the small files of our own in which anything may be found."""

import errno
import os
import stat
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.file_damage import damage, obeying_permissions
from tuilab.storage.files import Fault, Unusable, json_as, read_small, replace

LIMIT = 4096


def put(path: str, content: bytes, times: int) -> None:
    """Replace a file again and again, as one of several processes does."""
    for _ in range(times):
        replace(path, content)


# ---- replacing


@pytest.mark.parametrize("name", ["kept", "k" * 255, "-", " "])
def test_a_file_is_put_in_the_place_of_another_for_its_owner_alone(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"older and longer")
    (tmp_path / name).chmod(0o644)

    replace(tmp_path / name, b"newer")
    assert (tmp_path / name).read_bytes() == b"newer"
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [name]


def test_a_file_of_the_folder_one_is_in_needs_no_other_name(tmp_path: Path) -> None:
    replace("here", [b"in ", b"pieces"])

    assert (tmp_path / "here").read_bytes() == b"in pieces"


def test_what_fails_half_way_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "kept").write_bytes(b"before")

    with pytest.raises(OSError, match="No space"):
        replace(tmp_path / "kept", pieces())
    assert (tmp_path / "kept").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["kept"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()

    with pytest.raises(IsADirectoryError):
        replace(tmp_path / "kept", b"newer")
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path, is_there: bool) -> None:
    other = tmp_path / "other"
    if is_there:
        other.write_bytes(b"somebody's")
    (tmp_path / "kept").symlink_to(other)

    replace(tmp_path / "kept", b"ours")
    assert not (tmp_path / "kept").is_symlink() and (tmp_path / "kept").read_bytes() == b"ours"
    assert other.exists() == is_there and (not is_there or other.read_bytes() == b"somebody's")


def test_who_reads_while_several_replace_sees_one_of_them_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    contents = [bytes([letter]) * 300_000 for letter in b"abc"]
    replace(path, contents[0])
    processes = [
        get_context("fork").Process(target=put, args=(str(path), content, 30))
        for content in contents
    ]
    for process in processes:
        process.start()

    seen = set()
    while any(process.is_alive() for process in processes):
        seen.add(path.read_bytes())
    for process in processes:
        process.join()
    assert seen <= set(contents)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["kept"]


# ---- reading


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("folder", Fault.CLOSED),
        ("fifo", Fault.CLOSED),
        ("device", Fault.CLOSED),
        ("sealed", Fault.CLOSED),
        ("huge", Fault.LARGE),
        ("cut", Fault.BROKEN),
        ("noise", Fault.BROKEN),
        ("number", Fault.BROKEN),
        ("deep", Fault.LARGE),
    ],
)
def test_the_reader_tells_in_one_way_why_a_file_is_of_no_use(
    tmp_path: Path, kind: str, fault: Fault
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b'{"a": 1}')
    damage(path, kind)

    with pytest.raises(Unusable) as told, obeying_permissions():
        read_small(path, json_as(dict[str, int]), LIMIT)
    assert told.value.fault is fault and str(told.value)


def test_a_file_that_is_not_there_is_no_broken_one(tmp_path: Path) -> None:
    with pytest.raises(Unusable) as told:
        read_small(tmp_path / "none", json_as(dict[str, int]), LIMIT)

    assert told.value.fault is Fault.ABSENT


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"1" + b" " * (LIMIT - 1))

    assert read_small(tmp_path / "kept", json_as(int), LIMIT) == 1
