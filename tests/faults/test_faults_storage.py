"""Disks and records: whatever happens to the files, what is left is read, what is lost is counted, nothing is invented."""

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.conftest import TUILAB
from tests.engine import look, read_stream, until, write_scenario
from tests.faults.oracle import (
    Site,
    check,
    fabricate,
    is_well,
    latest,
    make_site,
    order_for,
    reach_stage,
    run_started,
    supervise,
    supervisor_of,
    view,
)
from tuilab.drawings.glyphs import Style
from tuilab.errors import CannotRecord, ExitCode
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.journal import Corrupt, Gap, Writer
from tuilab.record.live_run import read_run
from tuilab.reports.plain import render
from tuilab.runs import store

pytestmark = pytest.mark.faults

VERBS = (("attach", "--plot"), ("attach", "--json"), ("attach", "--jsonl"), ("verify",), ("runs",), ("runs", "--json"))


def view_all(run_dir: Path) -> str:
    """Look at a run with every verb and return what they printed; none may fail on it or print what steers a terminal."""
    said = []
    for verb, *options in VERBS:
        run = [] if verb == "runs" else [run_dir.name]
        code, text = view(verb, *run, *options, "--root", str(run_dir.parent))
        assert code in (ExitCode.DONE, ExitCode.REFUTED, ExitCode.USAGE, ExitCode.FAILED, ExitCode.BOX_LACKS)
        said.append(text)
    view("list", "--json", "--root", str(run_dir.parent))
    return "".join(said)


# ---- records with a right checksum that nobody of ours has written

HOSTILE: list[Any] = [
    -1, 0, 2**31, -(2**63), 2**63, 2**64, 10**400, 1e-320, 1e308, -1e308, 0.5, "nan", "inf", "-inf", "", "x", "x" * 30_000,
    "\x1b[2J\x1b]0;title\x07\x9b\x85\u202e\u2028\r\b\x7f", "%s{0}[/x]<script>", "../../etc/passwd", "a\0b", "\ufeff\U0001f9ff",
    None, True, False, [], {}, [[]], [1.5] * 1000, {"a": {"b": [1]}}, {"": ""}, ["\x1b[31m"], {"\x1b[31m": 1.0},
    {"k": "nan"}, {"k": 1e308, "l": -1e308}, "running", "succeeded", "between", "equals", "at_most", "at_least", "text", 2, 3.5,
]  # fmt: skip


def sample(kind: msgspec.inspect.Type, text: str = "text") -> Any:
    """Return a usual value of a type."""
    match kind:
        case msgspec.inspect.StructType(fields=fields):
            return {field.encode_name: sample(field.type, text) for field in fields if field.name not in ("n", "t")}
        case msgspec.inspect.UnionType(types=types):
            return sample(types[0], text)
        case msgspec.inspect.ListType(item_type=item):
            return [sample(item, text)]
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            return {sample(key, text): sample(value, text)}
        case msgspec.inspect.LiteralType(values=values):
            return values[-1]
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return 1
        case msgspec.inspect.StrType():
            return text
        case msgspec.inspect.BoolType():
            return True
    return {}


def mutants(kind: type[events.Event]) -> Iterator[dict[str, Any]]:
    """Yield usual records of a kind, one for each hostile value in each place, and many with several of them."""
    info = msgspec.inspect.type_info(kind)
    chance = random.Random(kind.__name__)
    for usual in (sample(info), sample(info, "")):
        yield usual
        for name, value in usual.items():
            yield {key: value for key, value in usual.items() if key != name}
            for evil in HOSTILE:
                yield {**usual, name: evil}
                if isinstance(value, dict):
                    yield from ({**usual, name: {**value, inner: evil}} for inner in value)
                elif isinstance(value, list):
                    yield from ({**usual, name: [evil] * count} for count in (1, 2))
        for _ in range(300):
            yield {name: chance.choice([value, value, chance.choice(HOSTILE)]) for name, value in usual.items()}


def apart(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give each claim a text of its own, so that none hides another."""
    for number, record in enumerate(records):
        yield {**record, "text": f"{number}"} if record.get("text") in ("text", "") else record


def fields_of(kind: type[events.Event], record: dict[str, Any]) -> str:
    return json.dumps({"k": kind.__struct_config__.tag, **record}, ensure_ascii=False)[1:-1]


# So that hostile blocks are part of a ratio that is judged.
CONTEXT = [
    *(
        events.ClaimDeclared(text=op, over="text", under="", op=op, bound=2.0)
        for op in ("at_least", "at_most", "equals", "between")
    ),
    *(
        events.BlockTimed(arm=arm, round=number, slot=0, loops=1, wall_ns=1, cpu_ns=1)
        for arm in ("text", "")
        for number in range(3)
    ),
]
KINDS: list[type[events.Event]] = list(get_args(events.Record))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_hostile_values_in_a_record_are_no_traceback(site: Site, kind: type[events.Event]) -> None:
    records = [fields_of(kind, record) for record in apart(mutants(kind))]
    run_dir = fabricate(site, run_started(), *CONTEXT, *records, events.StateChanged(state="failed"))

    text = view_all(run_dir)

    assert "recorded by a newer tuilab" in text or "failed" in text


def line(body: bytes) -> bytes:
    return b"%08x %b\n" % (zlib.crc32(body), body)


DEEP = b"[" * 400 + b"]" * 400
ODD_LINES = [
    b'{"n":1,"t":1,"k":"stage_entered","name":"\xff\xfe"}', b'{"n":1,"t":1,"k":"\xff"}', b'{"n":1,"t":1,"k":"tea_brewed","x":"\xc3"}',
    b'{"n":-1,"t":1,"k":"stage_entered","name":"x"}', b'{"n":1,"t":-1,"k":"stage_entered","name":"x"}',
    b'{"n":' + b"9" * 400 + b',"t":1,"k":"tea_brewed"}', b'{"n":1,"t":' + b"9" * 400 + b',"k":"tea_brewed"}',
    b'{"n":1,"t":' + b"9" * 400 + b',"k":"stage_entered","name":"x"}', b'{"n":1.5,"t":1,"k":"tea_brewed"}', b'{"n":"1","t":"1","k":"tea"}',
    b'{"n":1,"t":1,"k":"tea_brewed","cups":' + b"9" * 4300 + b"}", b'{"n":1,"t":1,"k":"tea_brewed","cups":' + b"9" * 4301 + b"}",
    b'{"n":1,"t":1,"k":"tea_brewed","cups":' + DEEP + b"}", b'{"n":1,"t":1,"k":"environment_recorded","part":"box","facts":{"a":' + DEEP + b"}}",
    b'{"n":1,"t":1,"k":"logged","s":1,"v":{"x":1e999}}', b'{"n":1,"t":1,"k":"logged","s":1,"v":{"x":-1e-999}}',
    b'{"n":1,"t":1,"k":"logged","s":1,"v":{"x":NaN}}', b'{"n":1,"t":1,"k":null}', b'{"n":1,"t":1}', b"{}", b"null", b"", b"[]", b'""',
    b'{"n":1,"t":1,"k":"stage_entered","name":"a"},{"n":2,"t":2,"k":"stage_entered","name":"b"}', b'{"n":1,"t":1,"k":"stage_entered","name":"\\ud800"}',
    b'{"n":1,"n":1,"t":1,"k":"stage_entered","name":"x","name":"y"}', b'{"n":1,"t":1,"k":"stage_entered","name":"x"}garbage', b"\0" * 60_000,
    b'{"n":1,"t":1,"k":"stage_entered","name":"' + b"\\u001b" * 5000 + b'"}', b'{"n":9223372036854775807,"t":9223372036854775807,"k":"tea"}',
]  # fmt: skip


@pytest.mark.parametrize("body", ODD_LINES, ids=range(len(ODD_LINES)))
def test_an_odd_line_with_a_right_checksum_is_passed_over_or_counted(site: Site, body: bytes) -> None:
    run_dir = fabricate(site, run_started())
    with (run_dir / "journal" / "supervisor.jsonl").open("ab") as stream:
        stream.write(line(body) + line(b'{"n":2,"t":2,"k":"stage_entered","name":"after"}'))
        stream.write(line(b'{"n":3,"t":3,"k":"state_changed","state":"failed"}'))

    summary = look(run_dir).summary

    view_all(run_dir)
    assert summary.run is not None
    assert summary.state == "failed" or b"9223372036854775807" in body
    for stray in ("environment", "races"):
        assert not getattr(summary, stray)


@pytest.mark.parametrize(
    "newer",
    [
        '"k":"run_started","format":2,"run":"x"',
        '"k":"run_started","format":99,"run":{"id":"x"},"params":[]',
        events.FORMAT + 1,
    ],
    ids=["fields are missing", "fields have other shapes", "fields are the same"],
)
def test_a_newer_format_is_refused_with_a_sentence(site: Site, newer: str | int) -> None:
    run_dir = fabricate(site, run_started(format=newer) if isinstance(newer, int) else newer)
    root = ("--root", str(site.root))

    said = [view(verb, run_dir.name, *root) for verb in ("attach", "verify", "stop", "rm")]
    code, listed = view("runs", *root)

    assert [code for code, _ in said] == [ExitCode.USAGE] * 4
    assert all("was recorded by a newer tuilab" in text and "upgrade this one" in text for _, text in said)
    assert code == ExitCode.DONE and "newer tuilab" in listed


def test_fuzzed_records_are_no_traceback(site: Site) -> None:
    """Valid records with bytes replaced, and a checksum that is right again."""
    chance = random.Random(7)
    usual = [fields_of(kind, next(mutants(kind))) for kind in KINDS]
    lines = []
    for number in range(6000):
        body = bytearray(chance.choice(usual).encode())
        for _ in range(chance.randrange(4)):
            body[chance.randrange(len(body))] = chance.choice(b'"0919-.eE{}[]:,ntf\\ \x1b\xff\x00/')
        lines.append(line(b'{"n":%d,"t":%d,%b}' % (number + 1, number, bytes(body))))
    run_dir = fabricate(site, run_started())
    with (run_dir / "journal" / "supervisor.jsonl").open("ab") as stream:
        stream.write(b"".join(lines))

    view_all(run_dir)

    assert look(run_dir).summary.records > 1000


# ---- the files of a real run are cut, flipped and shuffled


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a run that was made for real: a race, claims, an artifact, output, a failure at the end."""
    site = make_site(tmp_path_factory.mktemp("recorded"))
    body = """
print("hello")
for step in range(8): lab.log(step, half=step / 2, odd=float("nan"))
lab.claim("one is one", True)
lab.artifact("a.txt", "kept")
lab.record(events.ClaimDeclared(text="a is slower", over="a", under="b", op="at_least", bound=1.0))
for n in range(16): lab.record(events.BlockTimed(arm="ab"[n % 2], round=n // 2, slot=0, loops=1, wall_ns=1000 + n, cpu_ns=9))
raise ValueError("the end")
"""
    site.run("run", str(write_scenario(site.folder, body, "from tuilab.record import events")), "--headless", "--quiet")
    yield latest(site)
    site.end()


def items_of(run_dir: Path) -> dict[str, dict[int, Any]]:
    """Return every record that is read, by stream and number."""
    found: dict[str, dict[int, Any]] = {}
    for stream in (run_dir / "journal").iterdir():
        found[stream.name] = {item.n: item for item in read_stream(stream) if not isinstance(item, Corrupt | Gap)}
    return found


def looks_the_same_or_less(run_dir: Path, whole: dict[str, dict[int, Any]]) -> None:
    """Nothing raises, and nothing is read that was not written."""
    found = items_of(run_dir)
    for stream, items in found.items():
        for n, item in items.items():
            assert repr(item) == repr(whole[stream][n])
    summary = read_run(run_dir)
    missing = sum(len(items) - len(found[stream]) for stream, items in whole.items())
    assert missing >= summary.damage.missing_count
    render(summary, summary.state, run_dir, Style(), 80, has_chart=False)
    judge(summary)


def test_a_real_run_that_is_cut_at_any_byte_is_read_up_to_there(recorded: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    whole = items_of(recorded)
    for name in whole:
        stream = copy / "journal" / name
        data = stream.read_bytes()
        for size in range(len(data) - 1, -1, -1 if len(data) < 6000 else -7):
            os.truncate(stream, size)
            items = read_stream(stream)
            assert [item.n for item in items if not isinstance(item, Corrupt | Gap)] == list(range(data[:size].count(b"\n")))
            if size % 97 == 0:
                looks_the_same_or_less(copy, whole)
        stream.write_bytes(data)


def test_a_real_run_with_flipped_bits_and_shuffled_blocks_never_gains_a_record(recorded: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    whole = items_of(recorded)
    chance = random.Random(42)
    for number in range(600):
        stream = copy / "journal" / chance.choice(sorted(whole))
        data = stream.read_bytes()
        a, b = sorted(chance.randrange(len(data)) for _ in range(2))
        b = min(b, a + chance.choice([1, 9, 100, 5000]))
        damaged = {
            0: data[:a] + bytes([data[a] ^ 1 << chance.randrange(8)]) + data[a + 1 :],
            1: data[:a] + data[b:],
            2: data[:a] + data[a:b] * 2 + data[b:],
            3: data[b:] + data[:b],
            4: data[:a] + bytes(b - a) + data[b:],
            5: data[:a] + chance.randbytes(b - a) + data[b:],
            6: b"".join(chance.sample(lines := data.splitlines(keepends=True), len(lines))),
        }[number % 7]
        stream.write_bytes(damaged)
        looks_the_same_or_less(copy, whole)
        stream.write_bytes(data)
    assert items_of(copy).keys() == whole.keys()


def test_a_line_from_another_run_is_not_taken_for_one_of_this(recorded: Path, tmp_path: Path) -> None:
    """A repeated number is counted and skipped, whatever its checksum says."""
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    stream = copy / "journal" / "supervisor.jsonl"
    with stream.open("ab") as file:
        file.write(line(b'{"n":3,"t":3,"k":"state_changed","state":"succeeded"}'))

    watch = look(copy)

    assert watch.state == "failed"
    assert watch.summary.damage.corrupt_count == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda path: os.truncate(path, 1 << 30),
        lambda path: path.write_bytes(b"x" * (64 << 20)),
        lambda path: path.write_bytes(b"\n" * (2 << 20)),
        lambda path: path.write_bytes(b"00000000 {}\n" * 300_000),
    ],
    ids=["1 GiB of nothing", "64 MiB without a line", "two million empty lines", "300,000 lines that are no records"],
)
def test_a_huge_file_in_place_of_a_stream_is_read_in_bounded_memory(recorded: Path, tmp_path: Path, make: Any) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    stream = copy / "journal" / "sampler.jsonl"
    stream.write_bytes(b"")
    make(stream)

    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (600 << 20,) * 2);"
        "from pathlib import Path; from tuilab.record.live_run import read_run; print(read_run(Path(sys.argv[1])).state)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(copy)], capture_output=True, text=True, timeout=100)

    assert (done.stdout, done.stderr) == ("failed\n", "")


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/proc/self/mem"), lambda path: path.symlink_to(path)],
    ids=["a pipe", "a folder", "a link to a device", "a link to memory", "a link to itself"],
)  # fmt: skip
@pytest.mark.parametrize(
    "place", ["journal/worker-0.jsonl", "scenario.py", "artifacts/a.txt", "stdout.log", "artifacts", "journal"]
)
def test_something_else_in_place_of_a_file_is_seen_and_not_followed(
    recorded: Path, tmp_path: Path, place: str, make: Any
) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    path = copy / place
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    make(path)

    text = view_all(copy)

    if place == "journal" or (place == "stdout.log" or (place == "artifacts" and make is os.mkfifo)):
        return  # not a run any more; nothing reads what was printed
    assert "wrong: " in text


def test_a_live_journal_can_be_copied_and_read_at_any_time(site: Site) -> None:
    go = site.folder / "go"
    body = f'lab.stage("on")\nfor step in range(10**6):\n    lab.log(step, half=step / 2)\n    time.sleep(0.0005)\n    if os.path.exists({str(go)!r}): break'
    run_dir = site.detach(write_scenario(site.folder, body))
    reach_stage(site, "on")
    counts = []
    for number in range(20):
        copy = Path(shutil.copytree(run_dir, site.folder / f"copy-{number}"))
        summary = read_run(copy)
        assert not summary.damage.is_any and summary.state == "running"
        counts.append(summary.records)
    go.touch()

    check(site, run_dir, "succeeded")
    assert counts == sorted(counts) and counts[-1] > counts[0]


# ---- the disk is full, read-only or broken


@pytest.fixture
def small_disk(site: Site) -> Iterator[Path]:
    """The site's folder of runs on a disk of 1 MiB."""
    site.root.mkdir(mode=0o700)
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", site.root]).returncode:
        pytest.skip("mounting a small disk takes root")
    yield site.root
    site.end()
    subprocess.run(["umount", "--lazy", site.root], check=True)


def fill(disk: Path) -> Path:
    """Fill a disk to its last byte and return the file that does."""
    filler = disk / ".filler"
    with filler.open("ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x")
    return filler


STEPS = """
from pathlib import Path
def wait_for(name):
    Path(os.environ["GATES"], os.environ["TUILAB_RUN"] + ".at." + name).touch()
    while not Path(os.environ["GATES"], name).exists(): time.sleep(0.005)
"""


def gates(site: Site) -> Path:
    """Return a folder in which a scenario and a test wait for each other's files."""
    folder = site.folder / "gates"
    folder.mkdir(exist_ok=True)
    site.environment["GATES"] = str(folder)
    return folder


def reaches(gates: Path, name: str) -> None:
    until(lambda: any(gates.glob(f"*.at.{name}")))


def test_a_disk_that_is_full_for_a_while_loses_what_was_written_then_and_says_so(site: Site, small_disk: Path) -> None:
    body = """
for step in range(100): lab.log(step, half=step / 2)
print("before", flush=True)
wait_for("full")
for step in range(100, 300): lab.log(step, half=step / 2)
print("x" * 5000, flush=True)
wait_for("free")
for step in range(300, 400): lab.log(step, half=step / 2)
print("after", flush=True)
"""
    at = gates(site)
    front = site.start("run", str(write_scenario(site.folder, body, STEPS)), "--headless", "--quiet")
    reaches(at, "full")
    filler = fill(small_disk)
    (at / "full").touch()
    reaches(at, "free")
    filler.unlink()
    (at / "free").touch()
    out, err = front.communicate(timeout=60)

    run_dir = latest(site)
    summary = check(site, run_dir, "failed", is_whole=False).summary
    (series,) = summary.series.values()
    lost = 400 - series.count
    assert front.returncode == 4 and "Traceback" not in err
    assert 150 < lost <= 200
    assert summary.damage.lost_count >= lost and summary.damage.missing_count >= lost
    assert f"{summary.damage.lost_count} records could not be written: No space left on device" in summary.reason + out
    printed = summary.outputs["stdout"]
    kept = (run_dir / "stdout.log").read_bytes()
    assert printed.bytes_total == len("before\n") + 5001 + len("after\n")
    assert len(kept) == printed.bytes_head + printed.bytes_tail
    assert kept.startswith(b"before\n") and kept.endswith(b"after\n")


def test_a_disk_that_stays_full_leaves_a_run_that_is_lost_and_no_process(site: Site, small_disk: Path) -> None:
    at = gates(site)
    path = write_scenario(
        site.folder, 'lab.log(0, half=0.0)\nwait_for("full")\nfor step in range(100): lab.log(step, half=1.0)', STEPS
    )
    front = site.start("run", str(path), "--headless", "--quiet")
    reaches(at, "full")
    filler = fill(small_disk)
    (at / "full").touch()
    out, err = front.communicate(timeout=60)
    filler.unlink()

    assert front.returncode == 4 and "Traceback" not in err
    summary = check(site, latest(site), "failed", "lost", is_whole=None).summary
    assert "lost" in out or "could not be written: No space left on device" in summary.reason


def test_a_full_disk_at_the_start_is_one_sentence_and_leaves_nothing(site: Site, small_disk: Path) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    filler = fill(small_disk)

    done = site.run("run", str(path), "--headless")

    assert done.returncode == 5
    assert done.stderr.count("tuilab: ") == 1 and "No space left on device" in done.stderr and is_well(done)
    assert [entry.name for entry in small_disk.iterdir()] == [filler.name]


def test_no_room_for_files_is_one_sentence(site: Site) -> None:
    """No inodes left: a disk may be full of files and yet have bytes."""
    site.root.mkdir(mode=0o700)
    if (
        os.getuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=5,mode=700", "none", site.root]).returncode
    ):
        pytest.skip("mounting a small disk takes root")
    try:
        done = site.run("run", str(write_scenario(site.folder, "lab.log(0, half=0.0)")), "--headless")
        assert list(site.root.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", site.root], check=True)

    assert done.returncode == 5 and is_well(done)
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(not shutil.which("mkfs.ext4") or os.getuid() != 0, reason="a disk to cut off takes root and mkfs.ext4")
def test_a_power_cut_keeps_what_the_disk_confirmed(site: Site) -> None:
    """An ext4 file system is shut down without a flush, as if the plug was pulled, and mounted again."""
    image = site.folder / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    site.root.mkdir(mode=0o700)
    subprocess.run(["mkfs.ext4", "-q", "-m0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, site.root]).returncode:
        pytest.skip("a file cannot be mounted here")
    try:
        (site.root / "lost+found").rmdir()
        body = 'wait_for("on")\nfor step in range(10**6):\n    lab.log(step, half=1.0)\n    time.sleep(0.001)'
        at = gates(site)
        run_dir = site.detach(write_scenario(site.folder, body, STEPS))
        reaches(at, "on")
        (at / "on").touch()
        disk = os.open(site.root, os.O_RDONLY)
        fcntl.ioctl(disk, 0x8004587D, struct.pack("I", 2))  # EXT4_IOC_SHUTDOWN, no log flush
        os.close(disk)
        site.run("stop", "last", "--now")
        until(lambda: not site.living())
        subprocess.run(["umount", site.root], check=True)
        subprocess.run(["mount", "-o", "loop", image, site.root], check=True)

        summary = check(site, run_dir, "lost", is_whole=None).summary
        assert [entered.state for entered in summary.states] == ["starting", "running"]
    finally:
        site.end()
        subprocess.run(["umount", "--lazy", site.root], check=True)


Moment = dict[str, tuple[int, int]]  # of each stream: the bytes that the disk has confirmed, and those that were written


def moments(calls: str) -> Iterator[Moment]:
    """Yield what was on the disk for sure, and what may have been, after each write and sync that strace has seen."""
    now: Moment = {}
    asked: dict[str, tuple[str, int]] = {}  # by thread: a call that has not returned, and what was written when it began
    for row in calls.splitlines():
        thread, _, call = row.partition(" ")
        if begun := re.match(r"(write|fdatasync)\(\d+<[^>]*/journal/([^>]*\.jsonl)>", call.strip()):
            asked[thread] = begun[0], now.get(begun[2], (0, 0))[1]
        done = re.search(r"= (\d+)$", call)
        if thread not in asked or not done:
            continue
        name, written = asked.pop(thread)
        stream = name.rpartition("/")[2].rstrip(">")
        kept, _ = now.get(stream, (0, 0))
        now[stream] = (written, now.get(stream, (0, 0))[1]) if name.startswith("fdata") else (kept, written + int(done[1]))
        yield dict(now)


def what_is_left(moment: Moment, data: dict[str, bytes], chance: random.Random) -> Iterator[dict[str, bytes]]:
    """Yield what a disk may hold after a power cut: of each stream all that was confirmed, and any part of the rest."""
    yield {stream: data[stream][:kept] for stream, (kept, _) in moment.items()}
    yield {stream: data[stream][:written] for stream, (_, written) in moment.items()}
    for _ in range(3):
        yield {stream: data[stream][: chance.randint(*span)] for stream, span in moment.items()}
    yield {stream: data[stream][:kept] + bytes(written - kept) for stream, (kept, written) in moment.items()}


@pytest.mark.usefixtures("has_strace")
@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)"], ids=["in order", "killed"])
def test_a_power_cut_at_any_moment_loses_only_what_the_disk_had_not_confirmed(site: Site, tmp_path: Path, end: str) -> None:
    body = f"""
for step in range(8): lab.log(step, half=step / 2)
lab.artifact("a.txt", "kept")
lab.claim("one is one", True)
time.sleep(0.6)
{end}
"""
    calls = site.folder / "calls"
    strace = ("strace", "-f", "-y", "-s", "0", "-o", str(calls), "-e", "trace=write,fdatasync")
    supervise(site, order_for(site, write_scenario(site.folder, body)), *strace)
    until(lambda: not site.living())
    run_dir = latest(site)
    whole = items_of(run_dir)
    data = {stream: (run_dir / "journal" / stream).read_bytes() for stream in whole}
    (*_, last) = every = list(moments(calls.read_text()))
    copy = Path(shutil.copytree(run_dir, tmp_path / "cut" / run_dir.name))
    chance = random.Random(7)

    assert {stream: written for stream, (_, written) in last.items()} == {stream: len(data[stream]) for stream in data}
    assert all(kept == written for kept, written in last.values())  # a run that has an end has lost nothing
    for moment in every:
        for left in what_is_left(moment, data, chance):
            check_what_is_left(copy, left, whole, {stream: kept for stream, (kept, _) in moment.items()}, data)


def check_what_is_left(
    copy: Path, left: dict[str, bytes], whole: dict[str, dict[int, Any]], kept: dict[str, int], data: dict[str, bytes]
) -> None:
    """All that was confirmed is read back and nothing else than was written; a run that has lost its end is lost."""
    shutil.rmtree(copy / "journal")
    (copy / "journal").mkdir(mode=0o700)
    for stream, content in left.items():
        (copy / "journal" / stream).write_bytes(content)
    found = items_of(copy)
    seen = look(copy)
    code, text = view("verify", copy.name, "--root", str(copy.parent))

    for stream, items in found.items():
        assert len(items) >= data[stream][: kept[stream]].count(b"\n")
        assert repr(items) == repr({n: whole[stream][n] for n in range(len(items))})
    has_end = seen.summary.is_over
    assert seen.state == (seen.summary.state if has_end else "lost")
    assert ("it is lost" in text) is not has_end
    assert code == (ExitCode.DONE if has_end and left == data else ExitCode.REFUTED), text


def test_a_read_only_folder_is_one_sentence_and_what_is_in_it_can_be_read(site: Site, small_disk: Path) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    site.run("run", str(path), "--headless", "--quiet")
    run_dir = latest(site)
    until(lambda: not site.living())
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    done = [site.run(*words) for words in (("run", str(path), "--headless"), ("rm", "last"), ("list",))]

    assert [front.returncode for front in done] == [5, 5, 0]
    assert all(map(is_well, done)), [front.stderr for front in done]
    check(site, run_dir, "succeeded")
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)


def test_a_limit_on_the_size_of_files_loses_what_is_beyond_and_says_so(site: Site) -> None:
    body = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\nfor step in range(1000): lab.log(step, half=step / 2)"

    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    summary = check(site, latest(site), "failed", is_whole=False).summary
    assert done.returncode == 4
    assert "records could not be written: File too large" in summary.reason


def test_a_limit_on_the_size_of_files_of_the_supervisor_is_no_traceback(site: Site) -> None:
    path = write_scenario(site.folder, 'print("x" * 100_000, flush=True)\nlab.log(0, half=0.0)')
    for blocks in (0, 1, 2, 8):
        done = site.run("run", str(path), "--headless", command=["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "-", TUILAB])
        assert is_well(done), done.stderr
    until(lambda: not site.living())
    for run_dir in site.root.iterdir():
        check(site, run_dir, is_whole=None)


@pytest.fixture(scope="module")
def has_strace() -> None:
    """Skip where strace is missing or may not trace."""
    if shutil.which("strace") is None or subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("strace is not installed, or may not trace here")


@pytest.mark.usefixtures("has_strace")
def test_a_write_that_fails_anywhere_is_no_traceback_and_no_lie(site: Site) -> None:
    """The nth write of every process of the run fails once: the supervisor, the worker, the sampler and the judge."""
    path = write_scenario(site.folder, 'for step in range(20): lab.log(step, half=step / 2)\nlab.claim("one is one", True)')

    order = order_for(site, path)

    def fail_at(n: int) -> None:
        error = ("ENOSPC", "EIO", "EDQUOT")[n % 3]
        supervise(
            site, order, "strace", "-f", "-o", os.devnull, "-e", "trace=write", "-e", f"inject=write:error={error}:when={n}"
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail_at, range(1, 28)))
    until(lambda: not site.living())
    states = {check(site, run_dir, is_whole=None).state for run_dir in site.root.iterdir()}

    assert states == {"succeeded", "failed", "stopped"}


@pytest.mark.usefixtures("has_strace")
def test_a_disk_that_cannot_keep_what_was_written_is_named(site: Site) -> None:
    """fdatasync fails, in every process of the run, and each time."""
    path = write_scenario(site.folder, 'lab.log(0, half=0.0)\nlab.claim("one is one", True)')

    supervise(
        site,
        order_for(site, path),
        "strace",
        "-f",
        "-o",
        os.devnull,
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:error=EIO:when=1+",
    )

    run_dir = latest(site)
    check(site, run_dir, "succeeded")
    _, text = view("attach", run_dir.name, "--root", str(site.root))
    assert "Input/output error" in text


# ---- the run folder goes away


@pytest.mark.parametrize("change", ["removed", "renamed", "replaced by a link", "replaced by another"])
def test_a_run_whose_folder_goes_away_is_stopped(site: Site, change: str) -> None:
    """Writing into a removed file succeeds silently; a run that nobody can see or stop must not go on."""
    at = gates(site)
    path = write_scenario(site.folder, 'lab.log(0, half=0.0)\nwait_for("gone")\ntime.sleep(600)', STEPS)
    front = site.start("run", str(path), "--headless")
    reaches(at, "gone")
    run_dir, aside, other = latest(site), site.folder / "aside", site.folder / "other"
    (other / "journal").mkdir(parents=True)
    if change == "removed":
        shutil.rmtree(run_dir)
    else:
        run_dir.rename(aside)
    if change == "replaced by a link":
        run_dir.symlink_to(other)
    elif change == "replaced by another":
        other.rename(run_dir)
    (at / "gone").touch()

    out, err = front.communicate(timeout=60)
    until(lambda: not site.living())

    assert front.returncode in (2, 4) and "Traceback" not in out + err
    if change != "removed":
        summary = read_run(aside)
        assert summary.state == "failed"
        assert summary.reason == "the folder of the run was removed or replaced"
    strangers = [entry for folder in (run_dir, other) if folder.exists() for entry in folder.rglob("*") if entry.is_file()]
    assert strangers == []


# ---- where runs are kept


HOMES = [
    b"with spaces",
    b"with\nnewline",
    b"not-utf-8-\xff\xfe",
    "ünïcödé-目".encode(),
    b"-rf",
    b"a" * 200,
    b"$(touch hit)",
    b"\x1b[2J",
]


@pytest.mark.parametrize("name", HOMES, ids=repr)
def test_a_home_with_any_name_holds_runs(site: Site, name: bytes) -> None:
    home = os.fsencode(site.folder) + b"/" + name
    os.mkdir(home)
    environment = {os.fsencode(key): os.fsencode(value) for key, value in site.environment.items()}
    for variable in (b"TUILAB_ROOT", b"XDG_STATE_HOME"):
        environment.pop(variable, None)
    scenario = write_scenario(Path(os.fsdecode(home)), 'lab.log(0, half=0.0)\nlab.claim("one is one", True)')
    everything = {**environment, b"HOME": home}

    def tuilab(*words: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([TUILAB, *words], env=everything, capture_output=True, timeout=60, cwd=home)

    ran = tuilab("run", str(scenario), "--headless")
    said = [
        ran,
        *(
            tuilab(*words)
            for words in (("runs",), ("attach",), ("verify",), ("attach", "--json"), ("stop", "last"), ("rm", "last"))
        ),
    ]

    assert [done.returncode for done in said] == [0] * 7, [done.stderr for done in said]
    assert b"Traceback" not in b"".join(done.stderr for done in said)
    assert not list(Path(os.fsdecode(home)).glob("hit"))
    until(lambda: not site.living())


@pytest.mark.parametrize("home", [None, "", "relative", "/proc/no", "/dev/null", "/nonexistent/x"])
def test_a_home_that_cannot_be_written_is_one_sentence(site: Site, home: str | None) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    unset = {name: value for name, value in site.environment.items() if name not in ("TUILAB_ROOT", "HOME", "XDG_STATE_HOME")}
    environment = unset if home is None else {**unset, "HOME": home}
    if home in (None, "", "/nonexistent/x"):  # root may make folders anywhere, and has a home without a variable
        environment["XDG_STATE_HOME"] = "/proc/no"

    done = subprocess.run([TUILAB, "run", str(path), "--headless"], env=environment, capture_output=True, text=True, timeout=60)
    listed = subprocess.run([TUILAB, "runs"], env=environment, capture_output=True, text=True, timeout=60)

    assert done.returncode == 5, done.stderr
    assert done.stderr.splitlines()[-1].startswith("tuilab: ") and is_well(done) and is_well(listed)


def test_twenty_runs_that_start_at_once_have_twenty_folders(site: Site) -> None:
    path = str(write_scenario(site.folder, 'lab.claim("one is one", True)'))

    fronts = [site.start("run", path, "--detach") for _ in range(20)]
    ids = {front.communicate(timeout=60)[0].strip() for front in fronts}

    assert len(ids) == len(list(site.root.iterdir())) == 20
    for run_dir in site.root.iterdir():
        check(site, run_dir, "succeeded")


def test_two_supervisors_cannot_share_a_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if both should draw the same name at the same second."""
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    monkeypatch.setattr(time, "time", lambda: 1.0)
    first = store.create("same", site.root)

    with pytest.raises(CannotRecord, match="File exists"):
        store.create("same", site.root)

    Writer(first / "journal" / "supervisor.jsonl").close()
    with pytest.raises(FileExistsError):
        Writer(first / "journal" / "supervisor.jsonl")


# ---- what a run prints and says


def test_a_gigabyte_without_a_line_break_is_kept_in_bounded_memory(site: Site) -> None:
    at = gates(site)
    body = 'chunk = bytes([65]) * 2**20\nfor _ in range(1024): os.write(1, chunk)\nos.write(1, b"the end")\nwait_for("printed")'
    run_dir = site.detach(write_scenario(site.folder, body, STEPS))
    reaches(at, "printed")
    pid, _ = supervisor_of(run_dir)
    until(lambda: (run_dir / "stdout.log").read_bytes().endswith(b"the end"))
    status = dict(row.split(":\t") for row in Path(f"/proc/{pid}/status").read_text().splitlines())
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    (at / "printed").touch()

    printed = check(site, run_dir, "succeeded").summary.outputs["stdout"]
    assert (printed.bytes_total, printed.bytes_head, printed.bytes_tail) == (2**30 + 7, 2**19, 2**19)
    assert (run_dir / "stdout.log").stat().st_size == 2**20
    assert int(status["VmHWM"].split()[0]) < 64 * 1024
    assert descriptors < 32


def test_any_bytes_are_kept_as_they_were_printed(site: Site) -> None:
    chance = random.Random(1)
    noise = chance.randbytes(300_000) + b"\xff\xfe\0\r\x1b[2J\xe7\x9b" * 1000
    (site.folder / "noise").write_bytes(noise)
    body = f"data = open({str(site.folder / 'noise')!r}, 'rb').read()\nfor fd in (1, 2):\n    for at in range(0, len(data), 4097): os.write(fd, data[at:at + 4097])"

    done = site.run("run", str(write_scenario(site.folder, body)), "--headless")

    run_dir = latest(site)
    check(site, run_dir, "succeeded")
    assert is_well(done)
    assert (run_dir / "stdout.log").read_bytes() == (run_dir / "stderr.log").read_bytes() == noise


EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x85\x00\x08\r\x7f\u202e\u2028\u2066\ufeff\ud800 [/bold] \U0001f469"
EVIL_BODIES = {
    "an exception": "raise type('E' + EVIL, (Exception,), {})(EVIL)",
    "an exit": "sys.exit(EVIL)",
    "a missing need": "lab.needs(False, EVIL.replace(chr(0xd800), ''))",
    "half a character": "lab.stage(EVIL)",
    "a long exception": "raise ValueError(chr(1) * 100_000)",
    "an exception without a text": "class E(Exception):\n    __str__ = None\nraise E",
    "names": """
EVIL = globals()["EVIL"].replace(chr(0xd800), "")
lab.stage(EVIL)
lab.progress(1, 2, unit=EVIL)
lab.text(EVIL, title=EVIL)
lab.image(EVIL, [[0.0, 1.0], [2.0, 3.0]]) if hasattr(__import__("torch"), "__version__") else None
for step in range(30):
    lab.log(step, arm=EVIL, **{EVIL: step})
    lab.log(step, **{EVIL: float("nan")})
lab.record(events.MemoryMeasured(name=EVIL, values={"peak_bytes": 1.0, EVIL: 2.0}))
lab.record(events.ArtifactSaved(name=EVIL, bytes_total=1, sha256=EVIL))
lab.record(events.GpuFound(uuid=EVIL, index=0, name=EVIL))
lab.record(events.Unavailable(what=EVIL, reason=EVIL))
lab.not_testable(EVIL, EVIL)
lab.claim(EVIL + "1", EVIL, equals=EVIL)
lab.claim(EVIL + "2", EVIL, equals="x")
lab.record(events.ClaimDeclared(text=EVIL + "3", over=EVIL, under="b", op="at_least", bound=1.0))
for n in range(20): lab.record(events.BlockTimed(arm=(EVIL, "b")[n % 2], round=n // 2, slot=0, loops=1, wall_ns=1000 + n, cpu_ns=9))
subprocess.Popen(["sleep", "600"], start_new_session=True, executable="/bin/sleep")
subprocess.Popen(["\x1b[2J\x9b", "600"], start_new_session=True, executable="/bin/sleep")
print(EVIL)
""",
}


@pytest.mark.parametrize("body", EVIL_BODIES.values(), ids=EVIL_BODIES.keys())
def test_nothing_that_a_scenario_says_steers_the_terminal(site: Site, body: str) -> None:
    path = write_scenario(site.folder, body, f"from tuilab.record import events\nEVIL = {EVIL!r}\n")

    fronts = [site.run("run", str(path), "--headless", "--plot"), site.run("attach", "--json"), site.run("attach", "--jsonl")]
    fronts += [site.run(*words) for words in (("runs",), ("verify",), ("attach", "--plot"), ("runs", "--json"), ("list",))]

    assert all(map(is_well, fronts)), [front for front in fronts if not is_well(front)]
    is_fine = body in (EVIL_BODIES["names"], EVIL_BODIES["a missing need"])
    watch = check(site, latest(site), "succeeded" if is_fine else "failed", is_forged=body == EVIL_BODIES["names"])
    assert "records could not be written" not in watch.summary.reason
    assert "before run() returned" not in watch.summary.reason


RAW = EVIL.translate({0: None, 0x0D: None, 0xD800: None, ord("/"): None})


@pytest.fixture
def evil_file(site: Site) -> Path:
    """A scenario whose title, lesson, labels, defaults, choices, claims, arms and folder try to steer the terminal."""
    folder = site.folder / "own" / f"topic{RAW}"
    folder.mkdir(parents=True)
    path = folder / "name.py"
    path.write_text(f'''"""Title {RAW}

Lesson {RAW}

## Predict
{RAW} how many?

## Look for
- claim {RAW}

## Source
{RAW}
"""
from typing import Literal
from tuilab import Lab

def run(
    lab: Lab,
    text: str = "default {RAW}",  # label {RAW}
    choice: Literal["a {RAW}", "b"] = "b",  # label {RAW}
    rows: int = 5,  # rows {RAW}, 1..9
) -> None:
    lab.claim("claim {RAW}", True)
    lab.race(**{{"arm {RAW}": lambda: 1}}) if rows > 5 else None
''')
    return path


def test_nothing_in_a_scenarios_source_or_path_steers_the_terminal(site: Site, evil_file: Path) -> None:
    raw, path, root = RAW, str(evil_file), f"{site.folder}/{RAW}"
    own = ("--scenarios", str(site.folder / "own"))
    words = [
        ("run", path, "--headless"), ("run", path, "--headless", "--root", root), ("run", path, "--headless", "--text", raw),
        ("run", path, "--rows", raw), ("run", path, "--choice", raw), ("run", path, raw), ("run", path, f"--{raw}"), ("run", raw),
        ("list", *own), ("list", "--json", *own), ("show", path, "--source"), ("show", raw), ("check", path), ("check", raw), (raw,),
        ("attach", raw), ("stop", raw), ("rm", raw), ("verify", raw), ("new", raw), ("runs",), ("attach", "--plot"), ("attach", "--json"),
        ("runs", "--root", raw), ("runs", "--limit", raw), ("runs", "--root", root), ("attach", "--root", root),
    ]  # fmt: skip
    fronts = [site.run(*line) for line in words]

    (evil_file.parent / f"name{raw}.py").write_text(evil_file.read_text())
    fronts += [site.run(*line, *own) for line in (("list",), ("show", "all"), ("check", "all"))]
    fronts += [site.run("run", str(evil_file.parent / f"name{raw}.py"), "--headless")]
    bad = [(front.args[1:], front.stdout, front.stderr) for front in fronts if not is_well(front)]
    assert not bad, ascii(bad)
    assert [front.returncode for front in fronts[:3]] == [0, 0, 0]
    until(lambda: not site.living())


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_help_and_verify_do_not_steer_the_terminal(site: Site, evil_file: Path, verb: str) -> None:
    root = f"{site.folder}/{RAW}"
    site.run("run", str(evil_file), "--headless", "--root", root)

    done = site.run(*(("run", str(evil_file), "--help") if verb == "run" else ("verify", "--root", root)))

    assert is_well(done)


@pytest.mark.parametrize(
    "value", ["x" * 100_000, "\ud800", "\udcff", "\x01" * 20_000], ids=["long", "half", "not UTF-8", "controls"]
)
def test_an_odd_parameter_runs_or_is_one_sentence(site: Site, value: str) -> None:
    path = site.folder / "form.py"
    path.write_text(
        '"""Form."""\nfrom tuilab import Lab\ndef run(lab: Lab, text: str = "x") -> None:\n    lab.log(0, size=len(text))\n'
    )

    done = site.run("run", str(path), "--headless", "--quiet", "--text", value if value != "\ud800" else "\udced\udca0\udc80")

    assert is_well(done), done.stderr
    assert done.returncode == 0 or (done.returncode in (2, 5) and done.stderr.count("\n") == 1)
    until(lambda: not site.living())
    for run_dir in site.root.iterdir() if site.root.exists() else []:
        check(site, run_dir, "succeeded")
