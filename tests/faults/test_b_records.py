"""Damaged, odd and hostile records: what can be read is shown, what cannot is counted, and nothing is a traceback."""

import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.engine import look, read_stream, write_scenario
from tests.faults.fabricated_runs import fabricate_run, run_started
from tests.faults.oracle import check, items_of, view
from tests.faults.sites import Site, latest, make_site, reach_stage
from tuilab.drawings.glyphs import Style
from tuilab.errors import ExitCode
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.journal.lines import Corrupt, Gap
from tuilab.record.live_run import read_run
from tuilab.reports.result_text import render

pytestmark = pytest.mark.faults

VERBS = (
    ("attach", "--plot"),
    ("attach", "--json"),
    ("attach", "--jsonl"),
    ("verify",),
    ("runs",),
    ("runs", "--json"),
)


def view_all(run_dir: Path) -> str:
    """Look at a run with every verb and return what they printed; none may fail on it or print what steers a terminal."""
    said = []
    for verb, *options in VERBS:
        run = [] if verb == "runs" else [run_dir.name]
        code, text = view(verb, *run, *options, "--root", str(run_dir.parent))
        assert code in (
            ExitCode.DONE,
            ExitCode.REFUTED,
            ExitCode.USAGE,
            ExitCode.FAILED,
            ExitCode.BOX_LACKS,
        )
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
            return {
                field.encode_name: sample(field.type, text)
                for field in fields
                if field.name not in ("n", "t")
            }
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
            yield {
                name: chance.choice([value, value, chance.choice(HOSTILE)])
                for name, value in usual.items()
            }


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
def test_45_hostile_values_in_a_record_are_no_traceback(
    site: Site, kind: type[events.Event]
) -> None:
    records = [fields_of(kind, record) for record in apart(mutants(kind))]
    run_dir = fabricate_run(
        site, run_started(), *CONTEXT, *records, events.StateChanged(state="failed")
    )

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
def test_44_an_odd_line_with_a_right_checksum_is_passed_over_or_counted(
    site: Site, body: bytes
) -> None:
    run_dir = fabricate_run(site, run_started())
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
def test_45_a_newer_format_is_refused_with_a_sentence(site: Site, newer: str | int) -> None:
    run_dir = fabricate_run(site, run_started(format=newer) if isinstance(newer, int) else newer)
    root = ("--root", str(site.root))

    said = [view(verb, run_dir.name, *root) for verb in ("attach", "verify", "stop", "rm")]
    code, listed = view("runs", *root)

    assert [code for code, _ in said] == [ExitCode.USAGE] * 4
    assert all(
        "was recorded by a newer tuilab" in text and "upgrade this one" in text for _, text in said
    )
    assert code == ExitCode.DONE and "newer tuilab" in listed


def test_42_fuzzed_records_are_no_traceback(site: Site) -> None:
    """Valid records with bytes replaced, and a checksum that is right again."""
    chance = random.Random(7)
    usual = [fields_of(kind, next(mutants(kind))) for kind in KINDS]
    lines = []
    for number in range(6000):
        body = bytearray(chance.choice(usual).encode())
        for _ in range(chance.randrange(4)):
            body[chance.randrange(len(body))] = chance.choice(b'"0919-.eE{}[]:,ntf\\ \x1b\xff\x00/')
        lines.append(line(b'{"n":%d,"t":%d,%b}' % (number + 1, number, bytes(body))))
    run_dir = fabricate_run(site, run_started())
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
lab.claim("one-is-one", True)
lab.artifact("a.txt", "kept")
lab.record(events.ClaimDeclared(text="a is slower", over="a", under="b", op="at_least", bound=1.0))
for n in range(16): lab.record(events.BlockTimed(arm="ab"[n % 2], round=n // 2, slot=0, loops=1, wall_ns=1000 + n, cpu_ns=9))
raise ValueError("the end")
"""
    site.run(
        "run",
        str(write_scenario(site.folder, body, "from tuilab.record import events")),
        "--headless",
        "--quiet",
    )
    yield latest(site)
    site.end()


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


def test_41_a_real_run_that_is_cut_at_any_byte_is_read_up_to_there(
    recorded: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    whole = items_of(recorded)
    for name in whole:
        stream = copy / "journal" / name
        data = stream.read_bytes()
        for size in range(len(data) - 1, -1, -1 if len(data) < 6000 else -7):
            os.truncate(stream, size)
            items = read_stream(stream)
            assert [item.n for item in items if not isinstance(item, Corrupt | Gap)] == list(
                range(data[:size].count(b"\n"))
            )
            if size % 97 == 0:
                looks_the_same_or_less(copy, whole)
        stream.write_bytes(data)


def test_42_a_real_run_with_flipped_bits_and_shuffled_blocks_never_gains_a_record(
    recorded: Path, tmp_path: Path
) -> None:
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


def test_42_a_line_from_another_run_is_not_taken_for_one_of_this(
    recorded: Path, tmp_path: Path
) -> None:
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
    ids=[
        "1 GiB of nothing",
        "64 MiB without a line",
        "two million empty lines",
        "300,000 lines that are no records",
    ],
)
def test_44_a_huge_file_in_place_of_a_stream_is_read_in_bounded_memory(
    recorded: Path, tmp_path: Path, make: Any
) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    stream = copy / "journal" / "sampler.jsonl"
    stream.write_bytes(b"")
    make(stream)

    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (600 << 20,) * 2);"
        "from pathlib import Path; from tuilab.record.live_run import read_run; print(read_run(Path(sys.argv[1])).state)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(copy)], capture_output=True, text=True, timeout=100
    )

    assert (done.stdout, done.stderr) == ("failed\n", "")


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/proc/self/mem"), lambda path: path.symlink_to(path)],
    ids=["a pipe", "a folder", "a link to a device", "a link to memory", "a link to itself"],
)  # fmt: skip
@pytest.mark.parametrize(
    "place",
    [
        "journal/worker-0.jsonl",
        "scenario.py",
        "artifacts/a.txt",
        "stdout.log",
        "artifacts",
        "journal",
    ],
)
def test_44_83_something_else_in_place_of_a_file_is_seen_and_not_followed(
    recorded: Path, tmp_path: Path, place: str, make: Any
) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / recorded.name))
    path = copy / place
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    make(path)

    text = view_all(copy)

    if place == "journal" or (
        place == "stdout.log" or (place == "artifacts" and make is os.mkfifo)
    ):
        return  # not a run any more; nothing reads what was printed
    assert "problem: " in text


def test_38_a_live_journal_can_be_copied_and_read_at_any_time(site: Site) -> None:
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
