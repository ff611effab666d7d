"""The journal: what is written is read, what is damaged is seen."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import read_stream, rest_of
from tuilab.record import events
from tuilab.record.encoding import LINE_LIMIT
from tuilab.record.events import Logged, StageEntered, Unknown
from tuilab.record.journal import reader
from tuilab.record.journal.follower import Follower
from tuilab.record.journal.lines import Corrupt, Gap, Item, last_number
from tuilab.record.journal.reader import Reader
from tuilab.record.journal.writer import Writer


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


def names(items: list[Item]) -> list[str]:
    return [item.name for item in items if isinstance(item, StageEntered)]


def test_records_come_back_in_order_with_sequence_and_time(path: Path) -> None:
    """Every record carries its number in the stream and a time that never goes back."""
    write_stages(path, 3)

    items = read_stream(path)

    assert names(items) == ["stage 0", "stage 1", "stage 2"]
    assert [item.n for item in items if isinstance(item, StageEntered)] == [0, 1, 2]
    times = [item.t for item in items if isinstance(item, StageEntered)]
    assert times == sorted(times) and times[0] > 0


def test_numbers_that_are_not_finite_come_back_as_floats(path: Path, writer: Writer) -> None:
    writer.append(Logged(s=1, v={"a": math.nan, "b": math.inf, "c": -math.inf, "d": 0.5}))

    (item,) = read_stream(path)

    assert isinstance(item, Logged)
    assert math.isnan(item.v["a"])
    assert (item.v["b"], item.v["c"], item.v["d"]) == (math.inf, -math.inf, 0.5)


def test_a_text_that_reads_nan_stays_a_text(path: Path, writer: Writer) -> None:
    writer.append(events.TextShown(text="nan"))

    (item,) = read_stream(path)

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
        items = rest_of(reader)

    lines = whole[: len(whole) - cut].count(b"\n")
    assert names(items) == [f"stage {number}" for number in range(lines)]
    assert not [item for item in items if isinstance(item, Corrupt | Gap)]
    assert (reader.pending_bytes > 0) == (cut > 0 and not whole[: len(whole) - cut].endswith(b"\n"))


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_never_passes_for_a_record(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "worker-0.jsonl"
    whole = bytearray(write_stages(path, 5))
    whole[at % len(whole)] ^= 1 << bit
    path.write_bytes(whole)

    items = read_stream(path)

    assert set(names(items)) <= {f"stage {number}" for number in range(5)}
    assert len(names(items)) < 5 or not [item for item in items if isinstance(item, Corrupt)]
    assert len(names(items)) >= 3


@pytest.mark.parametrize("rest", [b"", b"0123", b"garbage\n" * 9, b'bcd8aa1f {"k":"x"', b"\n\n"])
def test_the_number_of_the_last_record_is_known_without_reading_all_of_them(
    path: Path, rest: bytes
) -> None:
    write_stages(path, 9_000)
    with path.open("ab") as stream:
        stream.write(rest)

    assert last_number(path) == 8_999


@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 300_000])
def test_a_stream_without_a_record_has_no_last_number(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    assert last_number(path) == -1


def test_a_line_that_is_missing_is_a_gap(path: Path) -> None:
    lines = write_stages(path, 4).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[3]]))

    items = read_stream(path)

    assert names(items) == ["stage 0", "stage 3"]
    assert items[1] == Gap("worker-0", 2)


def test_a_line_that_is_there_twice_is_counted_once(path: Path) -> None:
    lines = write_stages(path, 2).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[0], lines[1]]))

    items = read_stream(path)

    assert names(items) == ["stage 0", "stage 1"]
    assert [item.reason for item in items if isinstance(item, Corrupt)] == [
        "sequence number 0 again"
    ]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line[:8].upper() + line[8:],
        lambda line: line[:8] + b"\t" + line[9:],
        lambda line: b" " + line[:7] + line[8:],
        lambda line: b"+" + line[1:],
        lambda line: b"\xff" + line[1:],
        lambda line: b"00000000" + line[8:],
    ],
    ids=[
        "upper case",
        "a tab",
        "a digit less",
        "a sign",
        "no text",
        "another sum",
    ],
)
def test_among_many_lines_one_with_a_bad_checksum_is_found(
    path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    """Checksums are asked many at once: what one line would be refused for must be refused there too."""
    lines = write_stages(path, 50).splitlines()
    while not lines[20][:8].islower():  # a sum without letters has no upper case
        lines[20] = lines[20][:9] + lines[20][9:].replace(b'"name":"', b'"name":"x')
        lines[20] = b"%08x %b" % (crc32(lines[20][9:]), lines[20][9:])
    path.write_bytes(b"\n".join([*lines[:20], spoil(lines[20]), *lines[21:]]) + b"\n")

    items = read_stream(path)

    assert names(items) == [f"stage {number}" for number in range(50) if number != 20]
    assert [type(item) for item in items if not isinstance(item, StageEntered)] == [Corrupt, Gap]


def test_a_kind_from_the_future_is_kept_and_passed_over(path: Path, writer: Writer) -> None:
    class TeaBrewed(events.Event):
        cups: int

    writer.append(TeaBrewed(cups=2))
    writer.append(StageEntered(name="after"))

    first, second = read_stream(path)

    assert isinstance(first, Unknown)
    assert (first.k, first.fields) == ("tea_brewed", {"cups": 2})
    assert names([second]) == ["after"]


def test_a_known_kind_that_cannot_be_read_is_damage(path: Path) -> None:
    """Whoever wrote it, nothing here can show what it says: that is not for a newer version to know."""
    whole = write_stages(path, 3).splitlines(keepends=True)
    body = whole[1][9:-1].replace(b'"stage 1"', b"5")
    path.write_bytes(whole[0] + b"%08x %b\n" % (crc32(body), body) + whole[2])

    items = read_stream(path)

    assert names(items) == ["stage 0", "stage 2"]
    assert items[1] == Corrupt(
        "worker-0", len(whole[0]), "a record of the known kind stage_entered that cannot be read"
    )
    assert len(items) == 3  # it has its number: nothing else is missing


def test_the_start_of_a_run_in_a_newer_format_is_no_damage(path: Path) -> None:
    body = b'{"k":"run_started","n":0,"t":1,"format":2,"run":["other","fields"]}'
    path.write_bytes(b"%08x %b\n" % (crc32(body), body))

    (item,) = read_stream(path)

    assert isinstance(item, Unknown) and events.is_newer(item)


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
    "body",
    [
        b"[" * 30_000,
        b'{"n":' + b"9" * 5000 + b',"t":1,"k":"x"}',
        b'{"n":0,"t":1}',
        b'{"n":"a","t":1,"k":"x"}',
        b"[]",
        b'{"n":0,"t":1,"k":"logged","s":0,"v":{"loss":1.0},"x":"nan"}',
        b'{"n":0,"t":1,"k":"logged","s":0,"v":{"loss":1.0},"x":"-inf"}',
        b'{"n":0,"t":1,"k":"span_shown","lane":"a","began":0,"ended":"inf"}',
    ],
)
def test_hostile_json_with_a_right_checksum_is_no_record(path: Path, body: bytes) -> None:
    path.write_bytes(b"%08x %b\n" % (crc32(body), body))

    (item,) = read_stream(path)

    assert isinstance(item, Corrupt)


@pytest.mark.parametrize(
    "make", [lambda p: os.mkfifo(p), lambda p: p.symlink_to("/dev/zero"), lambda p: p.mkdir()]
)
def test_only_regular_files_are_read(tmp_path: Path, make: Callable[[Path], object]) -> None:
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
    with (
        closing(Writer(tmp_path / "journal" / "a.jsonl")) as one,
        closing(Writer(tmp_path / "journal" / "b.jsonl")) as two,
    ):
        for number in range(4):
            (one, two)[number % 2].append(StageEntered(name=str(number)))

    with closing(Follower(tmp_path)) as follower:
        items = follower.read()

    assert names([item for _, item in items]) == ["0", "1", "2", "3"]


def test_a_full_disk_loses_only_what_did_not_fit_and_says_so(
    path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """write(2) is short when the disk fills up; the next record begins a new line."""
    writer.append(StageEntered(name="before"))
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
    assert writer.append(StageEntered(name="torn")) is False
    monkeypatch.setattr(os, "write", real)
    assert writer.append(StageEntered(name="after")) is True

    items = read_stream(path)

    assert names(items) == ["before", "after"]
    assert [item for item in items if not isinstance(item, StageEntered)] == [Gap("worker-0", 1)]
    assert (writer.lost, writer.trouble) == (1, "the disk is full")


def test_record_cut_at_any_byte_is_missing_and_nothing_worse(path: Path, writer: Writer) -> None:
    values = {'ä "{" \\': -0.5, "tiny": 2.5e-300, "huge": 1e300}
    writer.append(StageEntered(name="before"))
    writer.append(Logged(s=57, v=values, a="arm"))
    writer.append(StageEntered(name="after"))
    first, line, last = path.read_bytes().splitlines(keepends=True)

    for size in range(1, len(line) - 1):
        path.write_bytes(first + line[:size] + b"\n" + last)
        items = read_stream(path)

        assert names(items) == ["before", "after"], line[:size]
        assert items[1:-1] == [Gap("worker-0", 1)], line[:size]


def test_cut_line_and_gap_around_it_count_each_record_once(path: Path) -> None:
    lines = write_stages(path, 6).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:30] + b"\n", lines[4], lines[5]]))

    gaps = [item for item in read_stream(path) if isinstance(item, Gap)]

    assert sum(gap.missing for gap in gaps) == 3


def test_cut_line_that_is_no_missing_record_is_corrupt(path: Path) -> None:
    lines = write_stages(path, 6).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:30] + b"\n", *lines[1:3], *lines[4:]]))

    items = read_stream(path)

    assert names(items) == ["stage 0", "stage 1", "stage 2", "stage 4", "stage 5"]
    damage = [item for item in items if not isinstance(item, StageEntered)]
    assert damage == [Corrupt("worker-0", len(lines[0]), "cut short"), Gap("worker-0", 1)]


def test_cut_line_at_the_end_is_pending(path: Path) -> None:
    first, second = write_stages(path, 2).splitlines(keepends=True)
    path.write_bytes(first + second[:30] + b"\n" + second[:20])

    with closing(Reader(path)) as reader:
        assert names(reader.read()) == ["stage 0"]
        assert reader.pending_bytes == 51


def test_writer_that_continues_a_cut_stream_loses_only_the_cut_record(path: Path) -> None:
    first, second = write_stages(path, 2).splitlines(keepends=True)
    path.write_bytes(first + second[:30])

    with closing(Writer(path, goes_on=True)) as writer:
        writer.append(StageEntered(name="after"))

    items = read_stream(path)
    assert names(items) == ["stage 0", "after"]
    assert items[1] == Gap("worker-0", 1)


def test_a_record_that_cannot_be_cut_is_counted_as_lost(path: Path, writer: Writer) -> None:
    assert (
        writer.append(Logged(s=0, v={f"scalar number {number}": 1.0 for number in range(5000)}))
        is False
    )
    writer.append(StageEntered(name="next"))

    assert writer.lost == 1
    assert read_stream(path)[0] == Gap("worker-0", 1)


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "\x01" * 100_000, "\ud800" * 100_000], ids=["long", "controls", "half"]
)
def test_of_what_tuilab_says_at_length_the_beginning_is_kept(
    path: Path, writer: Writer, text: str
) -> None:
    """Whatever a scenario made long: a reason, an environment, a command line, the names of what it left behind."""
    table = {f"NAME_{number}": text[:2000] for number in range(200)}
    said = [
        events.StateChanged(state="failed", reason=text),
        events.WorkerStarted(
            writer="worker-0", pid=1, start=1, arm=text, env=table, prefix=[text[:2000]] * 200
        ),
        events.WorkerExited(writer="worker-0", reason=text, fault=text),
        events.LeftoversEnded(processes=[text[:2000]] * 200, count=200),
        events.EnvironmentRecorded(
            part="box", facts={"deep": {"er": [text, 1, None]}, "words": [text[:2000]] * 200}
        ),
        events.VerdictReached(
            text="x" * events.CLAIM_LIMIT, verdict="SUPPORTED", rule="tuilab-1", why=text
        ),
    ]

    assert all(writer.append(event) for event in said)

    found = read_stream(path)
    assert [type(item) for item in found] == [type(event) for event in said] and writer.lost == 0
    state, started, exited, left, box, verdict = found
    assert isinstance(state, events.StateChanged) and state.reason.endswith("0 characters more")
    assert (
        isinstance(started, events.WorkerStarted)
        and started.env["…"] == f"{201 - len(started.env)} more"
    )
    assert started.prefix[-1] == f"… {201 - len(started.prefix)} more"
    assert isinstance(exited, events.WorkerExited) and exited.fault.endswith("characters more")
    assert (
        isinstance(left, events.LeftoversEnded) and left.count == 200 and len(left.processes) > 10
    )
    assert isinstance(box, events.EnvironmentRecorded) and box.facts["deep"]["er"][1:] == [1, None]
    assert isinstance(verdict, events.VerdictReached) and verdict.text == "x" * events.CLAIM_LIMIT


def test_names_that_are_alike_once_cut_are_counted(path: Path, writer: Writer) -> None:
    long_name = "N" * 5000
    env = {f"{long_name}1": "first", f"{long_name}2": "second", "TEXT": "x" * 100_000}

    writer.append(events.WorkerStarted(writer="worker-0", pid=1, start=1, env=env))

    (started,) = read_stream(path)
    assert isinstance(started, events.WorkerStarted)
    assert sorted(started.env.values())[0] == "1 more"
    assert "first" in started.env.values()
    assert "second" not in started.env.values()


def test_what_fits_is_not_cut(path: Path, writer: Writer) -> None:
    text, table = "x" * 30_000, {str(number): "y" * 20 for number in range(800)}

    writer.append(events.StateChanged(state="failed", reason=text))
    writer.append(events.WorkerStarted(writer="worker-0", pid=1, start=1, env=table))

    state, started = read_stream(path)
    assert isinstance(state, events.StateChanged) and state.reason == text
    assert isinstance(started, events.WorkerStarted) and started.env == table


def test_threads_do_not_mix_their_records(path: Path, writer: Writer) -> None:
    from threading import Thread

    threads = [
        Thread(target=lambda: [writer.append(StageEntered(name="x" * 500)) for _ in range(200)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    items = read_stream(path)

    assert len(names(items)) == 800 == len(items)


def test_the_child_of_a_fork_cannot_write_into_its_parents_stream(
    path: Path, writer: Writer
) -> None:
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


def close_stream(path: Path) -> int:
    """Close the descriptor of an open file, as a scenario does that closes all of them, and return its number."""
    (number,) = [fd for fd in map(int, os.listdir("/proc/self/fd")) if is_open_as(fd, path)]
    os.close(number)
    return number


def is_open_as(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


@pytest.mark.parametrize("other", ["mine", os.devnull, ""], ids=["a file", "a device", "nothing"])
def test_a_stream_that_was_closed_is_opened_again_and_no_other_file_gets_its_number(
    path: Path, writer: Writer, other: str
) -> None:
    """As after `os.closerange(3, 4096)` and an `open` of the scenario's own."""
    writer.append(StageEntered(name="before"))
    number = close_stream(path)
    mine = os.open(other, os.O_RDWR | os.O_CREAT) if other else -1
    assert mine < number

    is_written = [writer.append(StageEntered(name=name)) for name in ("after", "and on")]

    assert is_written == [True, True] and writer.sync() and writer.lost == 0
    assert names(read_stream(path)) == ["before", "after", "and on"]
    if other:
        assert os.read(mine, 1) == b""
        os.close(mine)


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_stream_that_is_not_there_to_be_opened_again_loses_what_it_is_given_and_says_so(
    path: Path, writer: Writer, what: str
) -> None:
    writer.append(StageEntered(name="before"))
    close_stream(path)
    path.unlink()
    if what == "replaced":
        path.write_bytes(b"somebody's\n")

    assert not writer.append(StageEntered(name="after"))
    assert not writer.sync()

    assert writer.lost == 1
    assert writer.trouble == (
        "No such file or directory" if what == "removed" else "the file of the stream was replaced"
    )
    assert what == "removed" or path.read_bytes() == b"somebody's\n"


LOG_FOREVER = """
import sys
from pathlib import Path
from tuilab.record.events import Logged
from tuilab.record.journal.writer import Writer
from tuilab.record.encoding import encode_finite
writer = Writer(Path(sys.argv[1]))
step = 0
while True:
    writer.append(Logged(s=step, v={"loss": 0.5}), encode_finite)
    if step % 1000 == 0:
        print(step, flush=True)
    step += 1
"""


def test_sigkill_in_the_middle_of_a_hot_loop_loses_nothing_that_was_written(path: Path) -> None:
    """What the writer reported done before the kill is on disk, whole."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOG_FOREVER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    reported = [int(process.stdout.readline()) for _ in range(5)][-1]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    items = read_stream(path)

    assert all(isinstance(item, Logged) for item in items)
    assert [item.s for item in items if isinstance(item, Logged)] == list(range(len(items)))
    assert len(items) > reported


@pytest.mark.parametrize("line", [b"", b"x"], ids=["empty", "corrupt"])
def test_a_stream_of_lines_that_are_no_records_is_not_read_to_its_end(
    path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(reader, "BARREN_LINES", 1000)
    with closing(Writer(path)) as writer:
        writer.append(Logged(s=0, v={"a": 1.0}))
    with path.open("ab") as stream:
        stream.write((line + b"\n") * 500_000)

    items = read_stream(path)
    assert isinstance(items[0], Logged) and len(items) < 100_000
    assert (
        isinstance(items[-1], Corrupt)
        and items[-1].reason == "more than 1000 lines are no records; the rest is not read"
    )
