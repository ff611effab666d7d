"""Runs as files: packed, unpacked elsewhere, and archives that nobody honest made."""

import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from zlib import crc32

import pytest

from tests.engine import look, newest, write_scenario
from tuilab import doctor
from tuilab.doctor import lab as lab_checks
from tuilab.errors import TuilabError
from tuilab.judging.integrity import examine
from tuilab.record import presence
from tuilab.runs import past_runs, read_entry
from tuilab.runs.archive.names import list_left_out
from tuilab.runs.archive.pack import pack
from tuilab.runs.archive.unpack import RefusedArchive, unpack
from tuilab.runs.index import Index

Tuilab = Callable[..., "CompletedProcess[str]"]
JOURNAL = Path(__file__).parent / "journals" / "tour"
RUN = "20270115T080000000Z-tour-abc123"


def make_run(
    root: Path, name: str = RUN, *, is_over: bool = True, host: str = "box", node: str = ""
) -> Path:
    """Make a run from a recorded one, with a name of its own in its record."""
    run_dir = root / name
    shutil.copytree(JOURNAL, run_dir)
    stream = run_dir / "journal" / "supervisor.jsonl"
    bodies = [line.partition(" ")[2] for line in stream.read_text().splitlines()]
    bodies[0] = (
        bodies[0]
        .replace('"run":"tour"', f'"run":"{name}"')
        .replace('"host":"box"', f'"host":"{host}"')
    )
    bodies[0] = f'{bodies[0][:-1]},"node":"{node}"}}' if node else bodies[0]
    kept = bodies if is_over else [body for body in bodies if '"succeeded"' not in body]
    stream.write_text("".join(f"{crc32(body.encode()):08x} {body}\n" for body in kept))
    return run_dir


def archive_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as made:
        for about, data in members:
            about.size = len(data) or about.size
            made.addfile(about, io.BytesIO(data))
    return path


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(about, field, value)
    return about


def test_a_run_comes_back_as_it_was_for_its_owner_alone(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    (run_dir / "artifacts").mkdir()
    (run_dir / "artifacts" / ("long-" * 40 + ".bin")).write_bytes(os.urandom(100_000))
    pack(run_dir, tmp_path / "run.tgz")

    found = unpack(tmp_path / "run.tgz", tmp_path / "two")
    files = sorted(path.relative_to(run_dir) for path in run_dir.rglob("*") if path.is_file())
    unpacked = sorted(
        path.relative_to(found.run_dir) for path in found.run_dir.rglob("*") if path.is_file()
    )
    assert unpacked == sorted([*files, Path("imported")])
    assert all(
        (found.run_dir / path).read_bytes() == (run_dir / path).read_bytes() for path in files
    )
    assert (found.left_out, found.damage) == ([], "")
    assert {path.stat().st_mode & 0o777 for path in found.run_dir.rglob("*") if path.is_file()} == {
        0o600
    }
    assert examine(found.run_dir).wrong == examine(run_dir).wrong
    assert os.listdir(tmp_path / "two") == [RUN]


def test_a_run_goes_to_another_box_and_is_shown_there(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    tuilab(
        "run",
        str(write_scenario(tmp_path, 'lab.claim("one-is-one", True)')),
        "--headless",
        "--quiet",
    )

    packed = tuilab("export", "last", "-o", "run.tgz", cwd=tmp_path)
    again = tuilab("export", "last", "-o", "run.tgz", cwd=tmp_path)
    here = tuilab("import", "run.tgz", cwd=tmp_path)
    there = tuilab("import", "run.tgz", "--root", "box", cwd=tmp_path)
    shown = tuilab("attach", "last", "--headless", "--root", "box", cwd=tmp_path)
    assert [done.returncode for done in (packed, again, here, there, shown)] == [0, 2, 2, 0, 0]
    assert "already exists" in again.stderr and "already exists" in here.stderr
    assert "one is one" in shown.stdout


HOSTILE: dict[str, list[tuple[tarfile.TarInfo, bytes]]] = {
    "a path upwards": [(member(f"{RUN}/../../x"), b"x")],
    "an absolute path": [(member("/tmp/x"), b"x")],
    "another folder": [(member("etc/passwd"), b"x")],
    "the folder itself": [(member(".."), b"x")],
    "a link": [(member(f"{RUN}/scenario.py", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b"")],
    "a hard link": [
        (member(f"{RUN}/scenario.py", type=tarfile.LNKTYPE, linkname="/etc/passwd"), b"")
    ],
    "a device": [(member(f"{RUN}/stdout.log", type=tarfile.CHRTYPE, devmajor=1, devminor=5), b"")],
    "a fifo": [(member(f"{RUN}/journal/worker-0.jsonl", type=tarfile.FIFOTYPE), b"")],
    "two runs": [(member(f"{RUN}/stdout.log"), b"x"), (member(f"{RUN[:-1]}4/stdout.log"), b"x")],
    "a file twice": [(member(f"{RUN}/stdout.log"), b"x"), (member(f"{RUN}/stdout.log"), b"y")],
    "a name that steers a terminal": [(member(f"{RUN}/\x1b[2J"), b"x")],
    "no start of a run": [(member(f"{RUN}/journal/supervisor.jsonl"), b"\x00\xffgarbage\n" * 50)],
    "nothing": [],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_leaves_nothing_behind(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    path = archive_of(tmp_path / "run.tgz", *members)
    root = tmp_path / "runs"

    with pytest.raises(RefusedArchive) as refusal:
        unpack(path, root)
    assert os.listdir(root) == [] and sorted(os.listdir(tmp_path)) == ["run.tgz", "runs"]
    assert str(refusal.value).isprintable()


def test_a_bomb_ends_before_it_fills_the_disk(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.tgz", "wb", 1) as file:
        file.write(member(f"{RUN}/stdout.log", size=1 << 40).tobuf(tarfile.GNU_FORMAT))
        for _ in range(20):
            file.write(bytes(1 << 20))

    with pytest.raises(RefusedArchive, match=r"holds more than 10 MiB"):
        unpack(tmp_path / "bomb.tgz", tmp_path / "runs", most_bytes=10 << 20)
    assert os.listdir(tmp_path / "runs") == []


def test_files_and_headers_without_end_are_refused(tmp_path: Path) -> None:
    many = archive_of(
        tmp_path / "many.tgz", *((member(f"{RUN}/artifacts/{at}"), b"x") for at in range(30))
    )
    with gzip.open(tmp_path / "headers.tgz", "wb") as file:
        for _ in range(100):
            file.write(member("x", type=tarfile.XHDTYPE).tobuf(tarfile.GNU_FORMAT))
    with gzip.open(tmp_path / "header.tgz", "wb") as file:
        file.write(member("x", type=tarfile.XHDTYPE, size=1 << 35).tobuf(tarfile.GNU_FORMAT))

    for path, words in (
        (many, "more than 20 files"),
        (tmp_path / "headers.tgz", "without end"),
        (tmp_path / "header.tgz", "a header of"),
    ):
        with pytest.raises(RefusedArchive, match=words):
            unpack(path, tmp_path / "runs", most_files=20)


def test_modes_and_owners_of_an_archive_are_not_taken(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    members = [
        (member(f"{RUN}/{path.relative_to(run_dir)}", mode=0o6777, uid=12345), path.read_bytes())
        for path in run_dir.rglob("*")
        if path.is_file()
    ]
    members.append((member(f"{RUN}/evil.sh", mode=0o6777), b"x"))

    found = unpack(archive_of(tmp_path / "run.tgz", *members), tmp_path / "two")
    assert found.left_out == ["evil.sh"]
    seen = [path.stat() for path in found.run_dir.rglob("*") if path.is_file()]
    assert {(one.st_mode & 0o7777, one.st_uid) for one in seen} == {(0o600, os.getuid())}


def test_a_run_that_claims_to_go_on_here_is_refused(tmp_path: Path) -> None:
    """Else `tuilab stop` would signal whatever process it names."""
    pack(make_run(tmp_path / "one", is_over=False, host=os.uname().nodename), tmp_path / "here.tgz")
    pack(make_run(tmp_path / "two", is_over=False, host="elsewhere"), tmp_path / "elsewhere.tgz")

    with pytest.raises(RefusedArchive, match="an unfinished run of this machine"):
        unpack(tmp_path / "here.tgz", tmp_path / "runs")
    assert unpack(tmp_path / "elsewhere.tgz", tmp_path / "runs").run_dir.name == RUN


@pytest.fixture
def unfinished(root: Path, tmp_path: Path) -> Path:
    """A run of another box that was packed while it went on, and unpacked here."""
    pack(make_run(tmp_path / "there", is_over=False, host="elsewhere"), tmp_path / "run.tgz")
    return unpack(tmp_path / "run.tgz", root).run_dir


@pytest.fixture
def namesake() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of another run of that name: the run on the box where it went on, were it this one."""
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, presence.MARK: RUN})
    yield process
    process.kill()
    process.wait()


def test_a_run_without_an_end_does_not_go_on_where_it_was_unpacked(
    tuilab: Tuilab, unfinished: Path
) -> None:
    """Nobody here writes to it: every view says so, and none waits for its end."""
    listed = json.loads(tuilab("runs", "--json").stdout)["runs"]
    attached = tuilab("attach", "last", "--headless", "--quiet", "--json")
    reported = tuilab("report", "last", "-o", "-", "--as", "md")
    exported = tuilab("export", "last", "-o", str(unfinished.parent / "again.tgz"))
    watch = look(unfinished)

    assert [run["state"] for run in listed] == ["lost"]
    assert (attached.returncode, json.loads(attached.stdout)["runs"][0]["state"]) == (4, "lost")
    assert "Lost: its supervisor is gone" in reported.stdout
    assert (exported.returncode, exported.stderr) == (0, "")
    assert (
        watch.state
        == read_entry.read_entry(unfinished).state
        == past_runs.read_past_run(unfinished).state
        == "lost"
    )
    assert Index(unfinished.parent).running() == []
    assert "the record of its end is missing: the run is lost" in examine(unfinished).wrong


def test_to_stop_a_run_from_an_archive_is_one_sentence_and_ends_nothing(
    tuilab: Tuilab, unfinished: Path, namesake: "subprocess.Popen[bytes]"
) -> None:
    done = tuilab("stop", "last")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "abc123 comes from an archive, so nothing of it is running here; delete it: tuilab rm abc123\n"
    )
    assert namesake.poll() is None


@pytest.mark.parametrize("words", [["last"], ["--keep", "0", "--yes"]], ids=["by name", "with all"])
def test_a_run_from_an_archive_can_always_be_deleted(
    tuilab: Tuilab, unfinished: Path, namesake: "subprocess.Popen[bytes]", words: list[str]
) -> None:
    done = tuilab("rm", *words)

    assert (done.returncode, done.stderr) == (0, "")
    assert not unfinished.exists() and namesake.poll() is None


def test_a_run_from_an_archive_left_no_process_behind(
    unfinished: Path, namesake: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(unfinished.parent))

    assert doctor.answer(lab_checks.orphans, doctor.Box()).found == "no run was lost"


def test_a_run_of_this_boot_without_an_end_is_refused_under_whatever_name_it_ran(
    tmp_path: Path,
) -> None:
    run_dir = make_run(tmp_path / "one", is_over=False, host="renamed")
    me = presence.identify(os.getpid())
    assert me is not None
    stream = run_dir / "journal" / "supervisor.jsonl"
    bodies = [line.partition(" ")[2] for line in stream.read_text().splitlines()]
    bodies[0] = re.sub('"boot":"[^"]*"', f'"boot":"{me.boot}"', bodies[0])
    stream.write_text("".join(f"{crc32(body.encode()):08x} {body}\n" for body in bodies))
    pack(run_dir, tmp_path / "run.tgz")

    with pytest.raises(RefusedArchive, match="an unfinished run of this machine"):
        unpack(tmp_path / "run.tgz", tmp_path / "runs")


def test_a_run_under_another_name_is_refused(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    run_dir.rename(run_dir.with_name(RUN[:-1] + "4"))
    pack(run_dir.with_name(RUN[:-1] + "4"), tmp_path / "run.tgz")

    with pytest.raises(RefusedArchive, match="its record"):
        unpack(tmp_path / "run.tgz", tmp_path / "runs")


def test_garbage_in_a_journal_is_counted_and_told(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    with open(run_dir / "journal" / "worker-0.jsonl", "ab") as stream:
        stream.write(b"\x00\xff" * 100 + b"\n" + b"[" * 90_000 + b"\n")
    pack(run_dir, tmp_path / "run.tgz")

    assert unpack(tmp_path / "run.tgz", tmp_path / "runs").damage.startswith(
        "the recorded data is incomplete: 2 corrupt lines"
    )


def test_damaged_archives_are_one_sentence_whatever_the_damage(tmp_path: Path) -> None:
    chance = random.Random(5)
    pack(make_run(tmp_path / "one"), tmp_path / "run.tgz")
    packed = (tmp_path / "run.tgz").read_bytes()
    plain = gzip.decompress(packed)
    path = tmp_path / "damaged.tgz"

    for at in range(120):
        data = bytearray(packed if at % 2 else plain)
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(len(data) if at % 4 else min(len(data), 2048))] = (
                chance.randrange(256)
            )
        data = data[: chance.randrange(len(data))] if at % 5 == 0 else data
        path.write_bytes(bytes(data) if at % 2 else gzip.compress(bytes(data), 1))
        try:
            shutil.rmtree(unpack(path, tmp_path / "runs").run_dir)
        except TuilabError as problem:
            assert str(problem)
        assert os.listdir(tmp_path / "runs") == []


def test_links_in_a_run_are_not_packed(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    (run_dir / "stdout.log").symlink_to("/etc/passwd")
    os.mkfifo(run_dir / "stderr.log")

    pack(run_dir, tmp_path / "run.tgz")
    with tarfile.open(tmp_path / "run.tgz") as made:
        assert not [name for name in made.getnames() if name.endswith(".log")]


ODD = [
    "no\u00a0break",
    "shot at 1.23\u202fPM.png",
    "\U0001f469\u200d\U0001f4bb.txt",
    "a\nb",
    "\x1b[2J",
    " ",
    "-rf",
    "x" * 255,
    "é" * 127,
]


@pytest.mark.tools
def test_an_artifact_of_any_name_goes_to_another_box_and_is_verified_there(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = "\n".join(f"lab.artifact({name!r}, {name!r})" for name in ODD)
    tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")

    packed = tuilab("export", "last", "-o", "run.tgz", cwd=tmp_path)
    unpacked = tuilab("import", "run.tgz", "--root", "box", cwd=tmp_path)
    verified = tuilab("verify", "last", "--root", "box", cwd=tmp_path)
    assert (packed.returncode, packed.stderr, unpacked.returncode, unpacked.stderr) == (
        0,
        "",
        0,
        "",
    )
    assert verified.returncode == 0 and f"{len(ODD)} artifacts" in verified.stdout
    assert sorted(os.listdir(next((tmp_path / "box").glob("2*")) / "artifacts")) == sorted(ODD)


def test_what_an_archive_does_not_take_is_told(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    run_dir = make_run(root)
    for name in ("artifacts/sub", "more"):
        (run_dir / name).mkdir(parents=True)
    for name in ("artifacts/.hidden", "my\x1bnotes", "journal/odd.txt", "imported"):
        (run_dir / name).touch()
    (run_dir / "stderr.log").unlink(missing_ok=True)
    (run_dir / "stderr.log").symlink_to("/etc/passwd")

    done = tuilab("export", "last", "-o", str(tmp_path / "x.tgz"))
    names = "more, my\N{REPLACEMENT CHARACTER}notes, stderr.log, artifacts/.hidden, artifacts/sub"
    assert done.returncode == 0
    assert done.stderr == f"left out 6 names that cannot be packed: {names} and 1 more\n"


def test_a_folder_behind_a_link_is_not_packed(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "one")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    (run_dir / "artifacts").symlink_to(tmp_path / "private")

    pack(run_dir, tmp_path / "run.tgz")
    with tarfile.open(tmp_path / "run.tgz") as made:
        assert not [name for name in made.getnames() if name.endswith("key")]
    assert list_left_out(run_dir) == ["artifacts"]


@pytest.mark.parametrize(
    "name",
    [
        "artifacts/" + "x" * 120 + "\0b",
        "artifacts/" + "x" * 256,
        "artifacts/.x",
        "artifacts/..",
        "artifacts/sub/x",
    ],
)
def test_a_name_that_no_artifact_can_have_is_not_unpacked(tmp_path: Path, name: str) -> None:
    start = (
        (JOURNAL / "journal" / "supervisor.jsonl")
        .read_text()
        .replace('"run":"tour"', f'"run":"{RUN}"')
    )
    bodies = [line.partition(" ")[2].encode() for line in start.splitlines()]
    stream = b"".join(b"%08x %b\n" % (crc32(body), body) for body in bodies)
    path = archive_of(
        tmp_path / "x.tgz",
        (member(f"{RUN}/journal/supervisor.jsonl"), stream),
        (member(f"{RUN}/{name}"), b"x"),
    )

    try:
        found = unpack(path, tmp_path / "runs")
    except RefusedArchive:
        assert os.listdir(tmp_path / "runs") == []
    else:
        assert os.listdir(found.run_dir / "artifacts") == []


def test_what_is_no_file_is_one_sentence(tuilab: Tuilab, tmp_path: Path, root: Path) -> None:
    os.mkfifo(tmp_path / "fifo.tgz")
    (tmp_path / "text.tgz").write_text("text")

    said = [
        tuilab("import", str(tmp_path / name)) for name in ("fifo.tgz", "text.tgz", "nothing.tgz")
    ]
    assert [done.returncode for done in said] == [2, 2, 2]
    assert all(done.stderr.count("\n") == 1 for done in said) and newest(root) is None


def test_a_run_of_another_name_is_refused_wherever_its_record_says_so(tmp_path: Path) -> None:
    """Its name would reach processes of this box that carry it."""
    run_dir = make_run(tmp_path / "one")
    stream = run_dir / "journal" / "supervisor.jsonl"
    first, *rest = stream.read_text().splitlines(keepends=True)
    other = first.partition(" ")[2].strip().replace(RUN, "20270115T080000000Z-other-abc123")
    stream.write_text(f"not a record\n{crc32(other.encode()):08x} {other}\n{''.join(rest)}")
    pack(run_dir, tmp_path / "run.tgz")

    with pytest.raises(
        RefusedArchive,
        match=f"the archive calls the run {RUN}, its record 20270115T080000000Z-other-abc123: not",
    ):
        unpack(tmp_path / "run.tgz", tmp_path / "two")


def test_an_archive_that_is_not_as_it_was_packed_is_refused(tmp_path: Path) -> None:
    """The checksum of all of it stands at its end, behind what is unpacked."""
    pack(make_run(tmp_path / "a"), tmp_path / "whole.tar.gz")
    data = (tmp_path / "whole.tar.gz").read_bytes()
    changed = bytes([data[-5] ^ 1])
    for name, odd in {
        "changed": data[:-5] + changed + data[-4:],
        "cut": data[:-1],
        "longer": data + gzip.compress(b"x" * 2_000_000),
    }.items():
        (tmp_path / name).write_bytes(odd)
        with pytest.raises(RefusedArchive):
            unpack(tmp_path / name, tmp_path / "b")

    assert unpack(tmp_path / "whole.tar.gz", tmp_path / "b").run_dir.name == RUN
