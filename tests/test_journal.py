"""The journal: what is written is read, what is damaged is seen."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuilab import events
from tuilab.events import Logged, StageEntered, Unknown
from tuilab.journal import LINE_LIMIT, Corrupt, Follower, Gap, Item, Reader, Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "worker-0.jsonl"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    with closing(Writer(path)) as writer:
        yield writer


def write_stages(path: Path, count: int) -> bytes:
    writer = Writer(path)
    for number in range(count):
        writer.append(StageEntered(name=f"stage {number}"))
    writer.close()
    return path.read_bytes()


def read(path: Path) -> list[Item]:
    with closing(Reader(path)) as reader:
        return list(reader.read_all())


def names(items: list[Item]) -> list[str]:
    return [item.name for item in items if isinstance(item, StageEntered)]


def test_records_come_back_in_order_with_sequence_and_time(path: Path) -> None:
    """Every record carries its number in the stream and a time that never goes back."""
    write_stages(path, 3)

    items = read(path)

    assert names(items) == ["stage 0", "stage 1", "stage 2"]
    assert [item.n for item in items if isinstance(item, StageEntered)] == [0, 1, 2]
    times = [item.t for item in items if isinstance(item, StageEntered)]
    assert times == sorted(times) and times[0] > 0


def test_numbers_that_are_not_finite_come_back_as_floats(path: Path, writer: Writer) -> None:
    writer.append(Logged(s=1, v={"a": math.nan, "b": math.inf, "c": -math.inf, "d": 0.5}))

    (item,) = read(path)

    assert isinstance(item, Logged)
    assert math.isnan(item.v["a"])
    assert (item.v["b"], item.v["c"], item.v["d"]) == (math.inf, -math.inf, 0.5)


def test_a_text_that_reads_nan_stays_a_text(path: Path, writer: Writer) -> None:
    writer.append(events.TextShown(text="nan"))

    (item,) = read(path)

    assert isinstance(item, events.TextShown)
    assert item.text == "nan"


def test_a_stream_is_made_once_and_for_its_owner_alone(path: Path) -> None:
    write_stages(path, 1)

    with pytest.raises(FileExistsError):
        Writer(path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_file_cut_anywhere_keeps_every_whole_record(path: Path, cut: int) -> None:
    """A kill can only cut the last line; what is before it is read, what is after is pending."""
    whole = write_stages(path, 3)
    path.write_bytes(whole[: len(whole) - cut])

    with closing(Reader(path)) as reader:
        items = list(reader.read_all())

    lines = whole[: len(whole) - cut].count(b"\n")
    assert names(items) == [f"stage {number}" for number in range(lines)]
    assert not [item for item in items if isinstance(item, Corrupt | Gap)]
    assert (reader.pending_bytes > 0) == (cut > 0 and not whole[: len(whole) - cut].endswith(b"\n"))


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_never_passes_for_a_record(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int) -> None:
    path = tmp_path_factory.mktemp("journal") / "worker-0.jsonl"
    whole = bytearray(write_stages(path, 5))
    whole[at % len(whole)] ^= 1 << bit
    path.write_bytes(whole)

    items = read(path)

    assert set(names(items)) <= {f"stage {number}" for number in range(5)}
    assert len(names(items)) < 5 or not [item for item in items if isinstance(item, Corrupt)]
    assert len(names(items)) >= 3


def test_a_line_that_is_missing_is_a_gap(path: Path) -> None:
    lines = write_stages(path, 4).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[3]]))

    items = read(path)

    assert names(items) == ["stage 0", "stage 3"]
    assert items[1] == Gap("worker-0", 2)


def test_a_line_that_is_there_twice_is_counted_once(path: Path) -> None:
    lines = write_stages(path, 2).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[0], lines[1]]))

    items = read(path)

    assert names(items) == ["stage 0", "stage 1"]
    assert [item.reason for item in items if isinstance(item, Corrupt)] == ["sequence number 0 again"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line[:8].upper() + line[8:],
        lambda line: line[:8] + b"\t" + line[9:],
        lambda line: b" " + line[:7] + line[8:],
        lambda line: b"+" + line[1:],
        lambda line: b"\xff" + line[1:],
        lambda line: line[:5],
        lambda line: line[:-1],
        lambda line: b"00000000" + line[8:],
    ],
    ids=["upper case", "a tab", "a digit less", "a sign", "no text", "a piece", "cut short", "another sum"],
)
def test_among_many_lines_one_with_a_bad_checksum_is_found(path: Path, spoil) -> None:  # type: ignore[no-untyped-def]
    """Checksums are asked many at once: what one line would be refused for must be refused there too."""
    lines = write_stages(path, 50).splitlines()
    while not lines[20][:8].islower():  # a sum without letters has no upper case
        lines[20] = lines[20][:9] + lines[20][9:].replace(b'"name":"', b'"name":"x')
        lines[20] = b"%08x %b" % (crc32(lines[20][9:]), lines[20][9:])
    path.write_bytes(b"\n".join([*lines[:20], spoil(lines[20]), *lines[21:]]) + b"\n")

    items = read(path)

    assert names(items) == [f"stage {number}" for number in range(50) if number != 20]
    assert [type(item) for item in items if not isinstance(item, StageEntered)] == [Corrupt, Gap]


def test_a_kind_from_the_future_is_kept_and_passed_over(path: Path, writer: Writer) -> None:
    class TeaBrewed(events.Event):
        cups: int

    writer.append(TeaBrewed(cups=2))
    writer.append(StageEntered(name="after"))

    first, second = read(path)

    assert isinstance(first, Unknown)
    assert (first.k, first.fields) == ("tea_brewed", {"cups": 2})
    assert names([second]) == ["after"]


def test_a_reader_follows_a_growing_stream(path: Path, writer: Writer) -> None:
    with closing(Reader(path)) as reader:
        writer.append(StageEntered(name="one"))
        first = reader.read()
        nothing = reader.read()
        writer.append(StageEntered(name="two"))

        second = reader.read()

    assert names(first) == ["one"]
    assert nothing == []
    assert names(second) == ["two"]


def test_a_line_that_never_ends_is_dropped_in_bounded_memory(path: Path) -> None:
    head = write_stages(path, 1)
    path.write_bytes(head + b"x" * (5 * LINE_LIMIT) + b"\n" + head.replace(b'"n":0', b'"n":1'))

    with closing(Reader(path)) as reader:
        items = [item for _ in range(10) for item in reader.read(LINE_LIMIT)]

    assert names(items) == ["stage 0"]
    reasons = [item.reason for item in items if isinstance(item, Corrupt)]
    assert reasons == ["line longer than 65536 bytes", "checksum does not match"]
    assert reader.pending_bytes == 0


@pytest.mark.parametrize(
    "body", [b"[" * 30_000, b'{"n":' + b"9" * 5000 + b',"t":1,"k":"x"}', b'{"n":0,"t":1}', b'{"n":"a","t":1,"k":"x"}', b"[]"]
)
def test_hostile_json_with_a_right_checksum_is_no_record(path: Path, body: bytes) -> None:
    path.write_bytes(b"%08x %b\n" % (crc32(body), body))

    (item,) = read(path)

    assert isinstance(item, Corrupt)


@pytest.mark.parametrize("make", [lambda p: os.mkfifo(p), lambda p: p.symlink_to("/dev/zero"), lambda p: p.mkdir()])
def test_only_regular_files_are_read(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    """A FIFO must not block a view, a link must not lead it out of the run's folder."""
    (tmp_path / "journal").mkdir()
    write_stages(tmp_path / "journal" / "worker-0.jsonl", 1)
    make(tmp_path / "journal" / "evil.jsonl")

    with closing(Follower(tmp_path)) as follower:
        items = follower.read()

    assert names([item for _, item in items]) == ["stage 0"]
    assert list(follower.unreadable) == ["evil"]


def test_streams_are_merged_by_time(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with closing(Writer(tmp_path / "journal" / "a.jsonl")) as one, closing(Writer(tmp_path / "journal" / "b.jsonl")) as two:
        for number in range(4):
            (one, two)[number % 2].append(StageEntered(name=str(number)))

    with closing(Follower(tmp_path)) as follower:
        items = follower.read()

    assert names([item for _, item in items]) == ["0", "1", "2", "3"]


def test_a_full_disk_loses_only_what_did_not_fit_and_says_so(
    path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """write(2) is short when the disk fills up; the torn line is repaired once there is room again."""
    writer.append(StageEntered(name="before"))
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
    assert writer.append(StageEntered(name="torn")) is False
    monkeypatch.setattr(os, "write", real)
    assert writer.append(StageEntered(name="after")) is True

    items = read(path)

    assert names(items) == ["before", "after"]
    assert [type(item) for item in items if not isinstance(item, StageEntered)] == [Corrupt, Gap]
    assert (writer.lost, writer.trouble) == (1, "the disk is full")


def test_a_record_that_is_too_long_is_refused_and_counted(path: Path, writer: Writer) -> None:
    assert writer.append(StageEntered(name="x" * LINE_LIMIT)) is False
    writer.append(StageEntered(name="next"))

    assert writer.lost == 1
    assert read(path)[0] == Gap("worker-0", 1)


def test_threads_do_not_mix_their_records(path: Path, writer: Writer) -> None:
    from threading import Thread

    threads = [Thread(target=lambda: [writer.append(StageEntered(name="x" * 500)) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    items = read(path)

    assert len(names(items)) == 800 == len(items)


def test_the_child_of_a_fork_cannot_write_into_its_parents_stream(path: Path, writer: Writer) -> None:
    child = os.fork()
    if child == 0:
        try:
            writer.append(StageEntered(name="from the child"))
        except RuntimeError:
            os._exit(7)
        os._exit(0)

    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    assert path.read_bytes() == b""


LOG_FOREVER = """
import sys
from pathlib import Path
from tuilab.events import Logged
from tuilab.journal import Writer
writer = Writer(Path(sys.argv[1]))
step = 0
while True:
    writer.append(Logged(s=step, v={"loss": 0.5}), is_finite=True)
    if step % 1000 == 0:
        print(step, flush=True)
    step += 1
"""


def test_sigkill_in_the_middle_of_a_hot_loop_loses_nothing_that_was_written(path: Path) -> None:
    """What the writer reported done before the kill is on disk, whole."""
    process = subprocess.Popen([sys.executable, "-c", LOG_FOREVER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    reported = [int(process.stdout.readline()) for _ in range(5)][-1]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    items = read(path)

    assert all(isinstance(item, Logged) for item in items)
    assert [item.s for item in items if isinstance(item, Logged)] == list(range(len(items)))
    assert len(items) > reported
