"""Every file that tuilab writes and reads again: whatever stands in it, nothing breaks, hangs, steers the terminal or is lost.

Who adds such a file gives it a row in OWN.
"""

import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from tests.conftest import CHECKOUT
from tests.engine import write_scenario
from tests.faults.oracle import UNSAFE, view
from tests.file_damage import obeying_permissions
from tests.fuzzed_files import REPLACEMENTS, fuzz, is_stored_in, replace_file
from tests.made_runs import finished, identity, make_run, started
from tests.test_tampering import read, write
from tests.transcripts import FORMAT_1
from tuilab.catalogue import catalog
from tuilab.doctor import Box, bundle, lab
from tuilab.engine import worker_records
from tuilab.engine.spawn import Child
from tuilab.engine.worker_records import stream_counts
from tuilab.errors import ExitCode, TuilabError
from tuilab.judging import calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.record import held_back_records
from tuilab.record.events import Record, StateChanged
from tuilab.record.folding import saved_summary
from tuilab.record.live_run import read_run
from tuilab.record.origin import carried, taken_out
from tuilab.record.origin.carried import Carrier
from tuilab.record.origin.imported import mark_imported
from tuilab.record.states import RunState
from tuilab.runs import notes, queue, redaction
from tuilab.runs.archive.pack import pack
from tuilab.runs.index import FILE as INDEX
from tuilab.runs.lesson_score import LearnedLesson
from tuilab.runs.queue import Ticket
from tuilab.storage import places, user_data
from tuilab.tui.looks.sgr import uncoloured
from tuilab.tui.state import printed_output, settings
from tuilab.tui.state.settings import Settings

RUN = "20261121T223458225Z-fails-eec319"  # a run of everything: streams, a source, an artifact, and what it printed
OTHER = "20270115T080000000Z-good-abcdef"
WAITS = "20270116T080000000Z-softmax-abcdef"
Ask = Callable[[], object]


@dataclass(frozen=True)
class Own:
    """A file of ours: who meets it, what is said when nothing of it is left, and what of that it may be rightfully."""

    path: str  # in the folder of the test
    asks: list[str | Ask]  # a command line, or a function
    told: str = ""  # in what they say; nothing for what is made again from the runs, or is no more than was printed
    right: list[str] = field(default_factory=list)  # harms that leave what may stand there
    write: Ask | None = None  # what writes it again: what stood there is still somewhere then
    is_same: bool = False  # whether the answer is the same whatever stands there: it is made again


def ticket() -> Ticket:
    return Ticket(
        run=WAITS,
        name="stability/softmax",
        devices=["cores"],
        supervisor=identity(is_alive=True),
        place=1.0,
        since_ns=1,
    )


def note_lesson() -> None:
    user_data.append_line(places.score_file(), vars(LearnedLesson("mul", "a", 1.0, 2.0)), 1 << 20)


def ask_doctor() -> str:
    return str(lab.calibrated(Box(Path("/"), {})))


def ask_taken_out() -> str:
    found = taken_out.taken_out(Path("runs", RUN))
    return redaction.describe_redactions(found.places) if found else ""


def ask_supervisor() -> object:
    """What the supervisor records of a worker by the files that it left can be read again."""
    record = worker_records.exited(ended_child(), Path("runs", RUN))
    return msgspec.json.decode(msgspec.json.encode(record), type=Record)


@cache
def ended_child() -> Child:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    child = Child("worker-0", process)
    child.code = 0
    return child


def ask_printed() -> str:
    run_dir = Path("runs", RUN)
    return uncoloured(printed_output.whole(run_dir, read_run(run_dir)))  # as the pager is given it


NOTES, TICKET = f"runs/{RUN}/notes.jsonl", f"runs/.queue/{WAITS}.json"
LINES = ["empty"]  # of lines there may be none
OWN = {
    "supervisor's stream": Own(f"runs/{RUN}/journal/supervisor.jsonl", ["runs", f"attach {RUN}"], "eec319"),
    "worker's stream": Own(f"runs/{RUN}/journal/worker-0.jsonl", [f"verify {RUN}"], "problem: "),
    "judge's stream": Own(f"runs/{RUN}/journal/judge.jsonl", ["runs", f"verify {RUN}"], "problem: "),
    "sampler's stream": Own(f"runs/{RUN}/journal/sampler.jsonl", [f"verify {RUN}"], "problem: "),
    "source": Own(f"runs/{RUN}/scenario.py", [f"verify {RUN}"], "scenario.py"),
    "artifact": Own(f"runs/{RUN}/artifacts/note.txt", [f"verify {RUN}"], "note.txt"),
    "printed": Own(f"runs/{RUN}/stdout.log", [ask_printed]),
    "errors": Own(f"runs/{RUN}/stderr.log", [bundle.failures]),
    "supervisor's errors": Own(f"runs/{RUN}/supervisor.log", [f"export {RUN} -o packed.tgz"]),
    "faults": Own(f"runs/{RUN}/fault-worker-0.log", [bundle.failures, ask_supervisor]),
    "held back": Own(f"runs/{RUN}/unwritten-worker-0", [ask_supervisor]),
    "mark of an import": Own(f"runs/{RUN}/imported", ["runs"], is_same=True),
    "notes": Own(
        NOTES, [f"note {RUN}", "runs", "runs --json"], "notes.jsonl", LINES,
        write=lambda: view("note", RUN, "more", "--tag", "good"),
    ),
    "taken out": Own(f"runs/{RUN}/taken-out.json", [ask_taken_out], "taken-out.json"),
    "folded": Own(f"runs/{OTHER}/{saved_summary.FILE}", [f"attach {OTHER} --headless"], is_same=True),
    "carrier": Own(f"runs/{OTHER}/{carried.FILE}", ["runs"], is_same=True),
    "word for the carrier": Own(f"runs/{OTHER}/{carried.STOP}", ["runs"], is_same=True),
    "index": Own(f"runs/{INDEX}", ["list", "runs"], is_same=True),
    "ticket": Own(
        TICKET, ["queue", "queue --json", f"queue move {WAITS} 1"], f"{WAITS}.json",
        write=lambda: queue.begin(Path("runs"), WAITS),
    ),
    "pause": Own("runs/.queue/paused", ["queue"], is_same=True, write=lambda: queue.pause(Path("runs"))),
    "calibration": Own(
        "calibration.json", ["calibrate --show", "calibrate --show --json", ask_doctor],
        "calibration.json", ["other fields"], write=lambda: calibration_file.save({"over 6 processes": Trials(9, 0, 9, 9)}),
    ),
    "lessons": Own(
        "state/tuilab/learned.jsonl", ["learn --headless", "learn --json"], "learned.jsonl", LINES, write=note_lesson
    ),
    "choices": Own(
        "state/tuilab/screens.json", [settings.load], "screens.json", ["other fields"], write=lambda: settings.save(Settings())
    ),
    "catalogue": Own("cache/tuilab/CATALOGUE", ["list"], is_same=True),
    "config": Own("config/tuilab/config.toml", ["config validate", "config"], "config.toml", ["empty"]),
    "archive": Own("run.tgz", ["import run.tgz --root elsewhere", "import run.tgz --root elsewhere --json"], "run.tgz"),
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with each of our files, which tuilab made itself."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        settle(folder, patch)
        make_all(folder)
        yield folder


def settle(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let everything be kept in this folder, and the catalogue be one scenario."""
    patch.setattr(catalog, "scenario_dirs", lambda extra=(): [str(folder / "mine")])
    patch.setattr(saved_summary, "_LEAST_JOURNAL_BYTES", 1)
    patch.setattr("socket.gethostname", lambda: "HOST")
    patch.setenv("TUILAB_ROOT", str(folder / "runs"))
    for name in ("state", "cache", "config"):
        patch.setenv(f"XDG_{name.upper()}_HOME", str(folder / name))


def make_all(folder: Path) -> None:
    run_dir = shutil.copytree(FORMAT_1 / RUN, Path("runs", RUN))
    streams = read(run_dir)
    counted = [
        msgspec.to_builtins(one) | {"t": streams["supervisor"][-1]["t"]}
        for one in stream_counts(run_dir / "journal")
    ]
    write(
        run_dir,
        {
            **streams,
            "supervisor": [*streams["supervisor"][:-1], *counted, streams["supervisor"][-1]],
        },
    )
    (folder / "mine").mkdir()
    (folder / "mine" / "good.py").write_text(
        '"""One sum."""\ndef run(lab) -> None:\n    lab.claim("a", True)\n'
    )
    finished(Path("runs"), {"a": "REFUTED"}, name="good")
    make_run(
        Path("runs"),
        started(is_alive=True),
        StateChanged(state=RunState.QUEUED),
        at_s=1.8e9 + 86400,
    )
    (run_dir / "fault-worker-0.log").write_text("Fatal Python error: Aborted\n")
    held_back = held_back_records.UnwrittenCount(run_dir, "worker-0")
    held_back.count = 3
    held_back.tell()
    mark_imported(run_dir)
    pack(run_dir, Path("run.tgz"))
    (run_dir / taken_out.FILE).write_bytes(
        msgspec.json.encode(taken_out.TakenOut({"notes": 2}, "abc"))
    )
    notes.add(run_dir, "kept", ["good"])
    carried.write(Path("runs", OTHER), Carrier(identity(is_alive=False), "far", is_over=True))
    carried.ask_to_stop(Path("runs", OTHER), at_once=True)
    queue.enter(Path("runs"), ticket())
    queue.pause(Path("runs"))
    calibration_file.save({"over 6 processes": Trials(9, 0, 9, 9)}, process_sd=0.01)
    Path("state/tuilab").mkdir(parents=True)
    user_data.append_line(
        places.score_file(), vars(LearnedLesson("good", OTHER, 1.0, 2.0)), 1 << 20
    )
    settings.save(Settings(theme="nord"))
    Path("config/tuilab").mkdir(parents=True)
    Path("config/tuilab/config.toml").write_text("fps = 1\n")
    view("attach", OTHER, "--headless")
    view("list")
    view("runs")


# ---- one file at a time


class Hangs(BaseException):
    """Something waits for what never comes."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def end(number: int, frame: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer(name: str) -> str:
    """Return all that those who meet a file say, with what is told when a command ends; no exit code is undocumented."""
    shutil.rmtree("elsewhere", ignore_errors=True)
    Path("packed.tgz").unlink(missing_ok=True)
    with within(20):
        said = [ask_verb(ask) if isinstance(ask, str) else str(ask()) for ask in OWN[name].asks]
    told = "\n".join([*said, *user_data.complaints()])
    assert not UNSAFE.findall(told), told
    assert "runs" not in OWN[name].asks or all(id in told for id in ("eec319", "abcdef")), (
        f"a run is lost: {told}"
    )
    return re.sub(r"[0-9]+ s", "# s", told)


def ask_verb(line: str) -> str:
    try:
        code, text = view(*line.split())
    except click.ClickException as problem:
        return problem.format_message()
    assert int(code) in [*ExitCode], code
    return text


def place(name: str) -> Path:
    return Path(OWN[name].path.replace("CATALOGUE", os.path.basename(catalog.cache_path())))


@contextmanager
def spoiling(path: Path) -> Iterator[None]:
    """Put everything in the folder of a file back as it was in the end."""
    before = {entry: entry.read_bytes() for entry in path.parent.iterdir() if entry.is_file()}
    folders = {entry for entry in path.parent.iterdir() if entry.is_dir()}
    try:
        yield
    finally:
        for entry in {*path.parent.iterdir()} - folders:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for entry, content in before.items():
            entry.write_bytes(content)


def check(name: str, good: str, *, is_gone: bool, may_be_right: bool) -> None:
    """Ask all who meet a file that was spoilt, and write it again; of one of which nothing is left that is told."""
    own, path = OWN[name], place(name)
    is_small = path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20
    there = path.read_bytes() if is_small and is_gone and own.write and not own.is_same else b""
    with obeying_permissions():
        said = answer(name)
        assert said == good or may_be_right or not own.is_same, f"it says something else: {said}"
        assert own.told in said or not is_gone, f"nothing is told: {said}"
        if own.write:
            with suppress(TuilabError, OSError), within(20):
                own.write()
            answer(name)
    assert is_stored_in(there, path.parent), "what stood there is lost"


def wrong_with(name: str, seed: int, count: int) -> str:
    """Return what goes wrong with anything in the place of a file."""
    content = place(name).read_bytes()
    with spoiling(place(name)):
        good = answer(name)
    kinds: list[tuple[str, bytes | None]] = (
        [(kind, None) for kind in REPLACEMENTS] if seed == 0 else []
    )
    kinds += fuzz(content, random.Random(f"{name} {seed}"), count)
    wrong = []
    for kind, data in kinds:
        with spoiling(place(name)):
            replace_file(place(name), kind) if data is None else place(name).write_bytes(data)
            try:
                may_be_right = kind in OWN[name].right or kind.endswith(("place", "text"))
                check(
                    name, good, is_gone=data is None and not may_be_right, may_be_right=may_be_right
                )
            except (Exception, Hangs) as problem:
                wrong.append(f"{kind}: {type(problem).__name__}: {str(problem)[:600]}")
    return "\n".join(wrong)


@pytest.fixture
def in_world(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    settle(world, monkeypatch)


@pytest.mark.parametrize("name", OWN)
def test_whatever_stands_in_a_file_of_ours_nothing_breaks_and_nothing_is_lost(
    in_world: None, name: str
) -> None:
    assert wrong_with(name, seed=0, count=1) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("name", OWN)
def test_of_much_more_nonsense_the_same_holds(in_world: None, name: str, seed: int) -> None:
    assert wrong_with(name, seed, count=4) == ""


# ---- no file is without a row

WRITES = re.compile(
    r"O_CREAT|\.write_(?:bytes|text)\(|\.touch\(|mkdtemp|user_data\.(?:update|append_line)\(|\bopen\([^)\n]*\"[wax]b?\"|"
    r"from tuilab\.storage\.files import[^\n]*\b(?:replace|new_file)\b"
)
HANDED_ON = "what is handed on, and never read again"
WRITERS: dict[str, list[str] | str] = {
    "catalogue/catalog.py": ["catalogue"],
    "cli/verbs/authors/new.py": "a new scenario, which is its author's",
    "cli/verbs/compare.py": HANDED_ON,
    "commands/watcher/_tuilab_watch/__init__.py": "why nothing is watched, which tuilab reads and removes: tests/commands",
    "commands/watcher/_tuilab_watch/out_of_memory.py": "who held the memory of a GPU: tests/commands/test_out_of_memory.py",
    "commands/watcher/_tuilab_watch/ring.py": "marks of a command, which its worker reads and removes: tests/commands",
    "commands/watched.py": "marks of a command, which its worker reads and removes: tests/commands",
    "doctor/bundle.py": HANDED_ON,
    "engine/capture.py": ["printed", "errors"],
    "engine/create_run.py": ["source", "supervisor's errors"],
    "storage/files.py": "what the others write with",
    "judging/calibration_file.py": ["calibration"],
    "storage/user_data.py": "what the others write with",
    "lab/shown_records.py": ["artifact"],
    "lab/worker.py": ["faults"],
    "record/folding/saved_summary.py": ["folded"],
    "fleet/folders.py": "a folder on a node, locked: no file",
    "fleet/host.py": "a folder on a node, which its keeper removes (tests/fleet); how soon the kernel ends it: no file",
    "fleet/file_pieces.py": "what a node has of a run, as it is there",
    "fleet/rank_process.py": "what ranks print on a node, which goes to that of the run",
    "record/origin/carried.py": ["carrier", "word for the carrier"],
    "record/origin/imported.py": ["mark of an import"],
    "record/journal/writer.py": [
        "supervisor's stream",
        "worker's stream",
        "judge's stream",
        "sampler's stream",
    ],
    "record/held_back_records.py": ["held back"],
    "reports/write_report.py": HANDED_ON,
    "reports/formats/tensorboard.py": HANDED_ON,
    "runs/archive/pack.py": ["archive", "taken out"],
    "runs/archive/unpack.py": "what was packed",
    "runs/index.py": ["index"],
    "runs/notes.py": ["notes"],
    "runs/queue.py": ["ticket", "pause"],
    "runs/lesson_score.py": ["lessons"],
    "tui/state/settings.py": ["choices"],
}


def test_what_writes_a_file_of_ours_has_a_row_for_it() -> None:
    house = CHECKOUT / "tuilab"
    writers = {
        str(path.relative_to(house))
        for path in house.rglob("*.py")
        if WRITES.search(path.read_text())
    }

    assert writers == WRITERS.keys()
    rows = {row for rows in WRITERS.values() if isinstance(rows, list) for row in rows}
    assert rows | {"config"} == OWN.keys()  # which people write


CRASHES = """
print("printed")
lab.artifact("note.txt", "kept")
os.abort()
"""


def one_name_each(path: str) -> str:
    """Return a path with the names that differ from run to run as they are in the table."""
    path = re.sub(
        r"\d{8}T\d{9}Z-[\w-]+-[0-9a-f]{6}", "RUN", path.replace(RUN, "RUN").replace(WAITS, "RUN")
    )
    return re.sub(r"(worker|sampler|rank)-\d+", r"\1-0", path).replace("sampler-0", "sampler")


@pytest.mark.slow
def test_each_file_that_a_session_leaves_has_a_row(
    tuilab: Callable[..., Any], tmp_path: Path, root: Path
) -> None:
    write_scenario(tmp_path, CRASHES, name="crashes")
    for name in ("one", "two"):
        write_scenario(
            tmp_path,
            'if False: lab.claim_ratio("r", "a/b", at_least=1)\nlab.claim("it-is-so", True)',
            name=name,
        )
    kept_in = {
        f"XDG_{name.upper()}_HOME": str(tmp_path / name) for name in ("state", "cache", "config")
    }
    for line in (
        "run crashes.py --headless", "run one.py --headless", "note last good --tag kept", "list", "runs",
        "export last -o run.tgz", "import run.tgz --root runs/other", "queue pause", "run one.py two.py --detach",
    ):  # fmt: skip
        tuilab(*line.split(), env=kept_in)
    left = {
        str(path.relative_to(tmp_path)).replace("runs/other", "runs")
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    tuilab(
        "queue",
        "cancel",
        *[path.stem for path in (root / queue.FOLDER).glob("*.json")],
        env=kept_in,
    )

    names = {
        one_name_each(path)
        for path in left
        if path.startswith(("runs", "state", "cache", "config", "run.tgz"))
    }
    rows = {one_name_each(str(place(name))): name for name in OWN}
    assert names - rows.keys() == set()
    seldom = {
        "carrier",
        "word for the carrier",
        "folded",
        "held back",
        "taken out",
        "calibration",
        "choices",
        "config",
    }
    assert {*rows.values()} - {rows[name] for name in names} == seldom
