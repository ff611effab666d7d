"""An archive costs little to take in, however much is packed in it, and one that is cut off in the making leaves nothing."""

import gc
import os
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.file_damage import obeying_permissions
from tests.test_archive import RUN, archive_of, make_run, member
from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Clean, clean_bytes
from tuilab.runs.archive import pack as packing
from tuilab.runs.archive import unpack as unpacking
from tuilab.runs.archive.pack import pack
from tuilab.runs.archive.unpack import RefusedArchive, unpack
from tuilab.storage.files import new_file, replace
from tuilab.storage.scratch import scratch

Tuilab = Callable[..., "CompletedProcess[str]"]
WORDS = events.Measured(words="a")
FLOODS: dict[str, Callable[[int], Iterator[events.Event]]] = {
    "names of values": lambda n: (
        events.Logged(s=at, v={f"{at}-{one}": 1.0 for one in range(500)}) for at in range(n // 500)
    ),
    "claims": lambda n: (
        events.ClaimMeasured(text=f"{at}", got=WORDS, op="equals", want=WORDS)
        for at in range(n // 2)
    ),
    "what a run will claim": lambda n: (
        events.RunDescribed(claims=[f"{at}" * 50]) for at in range(n // 2)
    ),
}


def flooded(root: Path, kind: str, count: int) -> Path:
    """Make a run with a stream of many small records of a kind, no two of them about the same."""
    run_dir = make_run(root)
    writer = Writer(run_dir / "journal" / "worker-9.jsonl")
    for record in FLOODS[kind](count):
        writer.append(record)
    writer.close()
    return run_dir


def peak_of(act: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.first(2)
def test_what_is_unpacked_is_looked_through_in_the_same_memory_however_much_it_is(
    tmp_path: Path, kind: str
) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.tgz"
        pack(flooded(tmp_path / f"{count}", kind, count), path, keeps_private=True)
        return peak_of(lambda: unpack(path, tmp_path / f"{count}-there"))

    assert peak(8000) < peak(1000) + 1_000_000


def test_a_text_that_is_packed_in_pieces_is_whole_and_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "one")
    lines = [f"line {at} {'-' * (at % 50)}\n".encode() for at in range(300)]
    (run_dir / "stdout.log").write_bytes(
        b"".join([*lines, b"password: hunter22\n", b"\xff no line feed"])
    )
    monkeypatch.setattr(packing, "_PIECE", 1000)

    packed = pack(run_dir, tmp_path / "run.tgz")
    found = unpack(tmp_path / "run.tgz", tmp_path / "two").run_dir / "stdout.log"
    assert found.read_bytes() == b"".join([*lines, b"password: (removed)\n", b"\xff no line feed"])
    assert packed.secrets.places == {"output": 1}


@pytest.mark.parametrize("name", ["journal/worker-0.jsonl", "notes.jsonl"])
def test_lines_without_end_that_are_no_records_are_cleaned_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run_dir = make_run(tmp_path / "one")
    nonsense, texts = b"no record\n" * 1000, list[bytes]()
    with open(run_dir / name, "ab") as file:
        file.write(nonsense + b"password: hunter22\n")
    monkeypatch.setattr(packing, "BARREN_LINES", 10)

    def clean_noted(data: bytes, clean: Clean) -> bytes:
        texts.append(data)
        return clean_bytes(data, clean)

    monkeypatch.setattr(packing, "clean_bytes", clean_noted)

    pack(run_dir, tmp_path / "run.tgz")
    found = unpack(tmp_path / "run.tgz", tmp_path / "two").run_dir / name
    assert found.read_bytes().endswith(nonsense + b"password: (removed)\n")
    assert len(texts) < 20


def test_what_could_not_be_unpacked_again_is_not_packed(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    (run_dir / "stdout.log").touch()
    os.truncate(run_dir / "stdout.log", 5 << 40)

    with pytest.raises(
        UsageError, match=r"has \d+ files of 5 TiB, and tuilab import takes 10000 of 4 GiB at most"
    ):
        pack(run_dir, tmp_path / "run.tgz")
    assert os.listdir(tmp_path) == ["one"]


def test_a_file_that_cannot_be_read_is_told(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    run_dir = make_run(root)
    (run_dir / "stderr.log").write_text("x")
    (run_dir / "stderr.log").chmod(0)

    with obeying_permissions():
        assert pack(run_dir, tmp_path / "run.tgz").unread == ["stderr.log"]


def test_source_larger_than_any_that_runs_is_left_out(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    source = make_run(root) / "scenario.py"
    source.touch()
    os.truncate(source, 1 << 40)
    archive = tmp_path / "run.tgz"

    with pytest.raises(UsageError):
        pack(source.parent, archive)
    os.truncate(source, SOURCE_LIMIT + 1)
    done = tuilab("export", "last", "-o", str(archive))

    limit = "larger than 1 MiB, the limit of a source"
    assert done.returncode == 0
    assert done.stderr == f"left out 1 name {limit}: scenario.py\n"
    assert not (unpack(archive, tmp_path / "two").run_dir / "scenario.py").exists()


def test_source_of_the_greatest_size_is_packed(root: Path, tmp_path: Path) -> None:
    source = make_run(root) / "scenario.py"
    source.write_bytes(b"#" * (SOURCE_LIMIT - 1) + b"\n")

    packed = pack(source.parent, tmp_path / "run.tgz")

    assert (packed.too_large, packed.is_source_whole) == ([], True)


# ---- ended in the middle

ENDINGS = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


def ended_by(act: Callable[[], object]) -> int | None:
    """Do something in a process of its own that is ended there, and return its exit code."""
    process = get_context("fork").Process(target=act)
    process.start()
    process.join()
    return process.exitcode


def end(number: int) -> None:
    os.kill(os.getpid(), number)


def half(number: int) -> Iterator[bytes]:
    yield b"half" * 100_000
    end(number)
    yield b"the other half"


def write_new(path: Path, number: int) -> None:
    with new_file(path) as file:
        file.writelines(half(number))


@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_is_ended_in_the_making_leaves_nothing(
    tmp_path: Path, number: int, is_replaced: bool
) -> None:
    act = (
        (lambda: replace(tmp_path / "a", half(number)))
        if is_replaced
        else (lambda: write_new(tmp_path / "a", number))
    )

    assert ended_by(act) == -number
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "is_named", [True, False], ids=["where files must have names", "where they need none"]
)
def test_a_new_file_is_there_when_it_is_whole_and_takes_no_ones_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    if is_named:
        monkeypatch.setattr(
            os, "O_TMPFILE", 0
        )  # as on a file system that cannot, a folder is then no file
    with new_file(tmp_path / "a") as file:
        file.write(b"whole")
        file.flush()
        assert not (tmp_path / "a").exists()
    with pytest.raises(FileExistsError), new_file(tmp_path / "a") as file:
        raise AssertionError("it is there already")
    with pytest.raises(FileExistsError), new_file(tmp_path / "b") as file:
        (tmp_path / "b").touch()  # by another process
    with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "c") as file:
        raise KeyboardInterrupt

    assert (tmp_path / "a").read_bytes() == b"whole" and (
        tmp_path / "a"
    ).stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("number", ENDINGS)
def test_an_import_that_is_ended_leaves_nothing_or_nothing_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    pack(make_run(tmp_path / "one"), tmp_path / "run.tgz")
    with monkeypatch.context() as patch:
        patch.setattr(unpacking, "_examine", lambda found: end(number))  # when all of it is there
        code = ended_by(lambda: unpack(tmp_path / "run.tgz", tmp_path / "two"))

    left = os.listdir(tmp_path / "two")
    assert (code, len(left)) == (-number, number == signal.SIGKILL)
    assert os.listdir(unpack(tmp_path / "run.tgz", tmp_path / "two").run_dir.parent) == [
        make_run(tmp_path / "x").name
    ]


def test_what_another_process_is_making_is_left_to_it(tmp_path: Path) -> None:
    with scratch(tmp_path) as one:
        (one / "kept").touch()
        with scratch(tmp_path) as other:
            assert (one / "kept").exists() and other != one
        assert os.listdir(tmp_path) == [one.name]
    assert os.listdir(tmp_path) == []


def test_what_stands_where_scratch_is_made_and_is_no_folder_of_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / ".tuilab-scratch-a").symlink_to(tmp_path / "else")
    (tmp_path / ".tuilab-scratch-b").touch()

    with scratch(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert len(os.listdir(tmp_path)) == 3


def test_an_archive_with_names_without_end_is_refused(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "x.tgz", (member(f"{RUN}/{'x' * 5000}"), b"x"))

    with pytest.raises(RefusedArchive, match="a header of 50"):
        unpack(path, tmp_path / "runs")
