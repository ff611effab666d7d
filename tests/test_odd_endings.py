"""How a scenario ends that leaves odd things behind: a good run stays good, and a bad one says why."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.engine import do_first, look, write_scenario
from tuilab.lab import worker
from tuilab.lab.failures.failure import describe, reason_of
from tuilab.record.journal.writer import Writer
from tuilab.record.tracebacks import frames
from tuilab.runs import lesson_score, store

Tuilab = Callable[..., "CompletedProcess[str]"]

ODD = """
class Odd:
    def write(self, text): return len(text)
    def flush(self): raise KeyboardInterrupt
    def __getattr__(self, name): raise SystemExit(3)
"""


@pytest.mark.parametrize("left", ["None", "3", "Odd()", "open(os.devnull)"])
def test_a_good_run_stays_good_whatever_its_scenario_left_as_stdout(
    tuilab: Tuilab, tmp_path: Path, left: str
) -> None:
    path = write_scenario(
        tmp_path, f'lab.claim("one-is-one", True)\nsys.stdout = sys.stderr = {left}', ODD
    )

    done = tuilab("run", str(path), "--json", "--quiet")

    (run,) = json.loads(done.stdout)["runs"]
    assert (run["state"], done.returncode) == ("succeeded", 0), run["reason"]


@pytest.mark.parametrize(
    "left",
    [
        "del sys.stdout, sys.stderr",
        "sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()",
    ],
)
def test_a_good_run_stays_good_whatever_its_scenario_took_away(
    tuilab: Tuilab, tmp_path: Path, left: str
) -> None:
    path = write_scenario(tmp_path, f'lab.claim("one-is-one", True)\n{left}')

    done = tuilab("run", str(path), "--json", "--quiet")

    (run,) = json.loads(done.stdout)["runs"]
    assert (run["state"], done.returncode) == ("succeeded", 0), run["reason"]


class Silent(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class Hiding(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(0)


def of_nameless() -> BaseException:
    """Return an exception of a class that tells nothing of itself: made here, as pytest asks the classes of a module."""

    class Nameless(type):
        def __getattribute__(cls, name: str) -> Any:
            raise KeyboardInterrupt

    return Nameless("OfNameless", (Exception,), {})()  # type: ignore[no-any-return]


PLACES: list[Any] = [
    ("f", line, at, text)
    for line in ("x", [3], -1)
    for at in ("y", None, 10**9)
    for text in (3, "a")
]
ODD_ONES = [Silent(), *(SyntaxError("odd", place) for place in PLACES)]


@pytest.mark.parametrize("problem", ODD_ONES, ids=lambda one: type(one).__name__)
def test_an_exception_of_any_kind_is_recorded_by_its_name(problem: BaseException) -> None:
    told = describe(problem, Path("scenario.py"))

    assert told.type == type(problem).__name__
    assert reason_of(problem).startswith(told.type)


@pytest.mark.parametrize(("make", "name"), [(Hiding, "Hiding"), (of_nameless, "OfNameless")])
def test_an_exception_that_cannot_be_printed_says_its_name_and_where_it_was_raised(
    make: Callable[[], BaseException], name: str
) -> None:
    try:
        raise make()
    except BaseException as problem:
        told, reason = describe(problem, Path(__file__)), reason_of(problem)

    assert (told.type, reason.partition(":")[0]) == (name, name)
    assert "raise make()" in frames(told)


class OddText(str):
    def __getitem__(self, at: Any) -> Any:
        raise KeyboardInterrupt

    splitlines = __getitem__  # type: ignore[assignment]


class Worded(Exception):
    def __str__(self) -> str:
        return OddText("odd")


def test_an_exception_whose_text_has_code_of_its_own_says_it() -> None:
    assert describe(Worded(), Path("scenario.py")).message == "odd"
    assert reason_of(Worded()) == "Worded: odd"


class CodeRaises(SystemExit):
    @property
    def code(self) -> int:  # type: ignore[override]
        raise SystemExit(0)


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise KeyboardInterrupt

    __hash__ = None  # type: ignore[assignment]


class OwnExit(SystemExit): ...


@pytest.mark.parametrize(
    ("leaving", "code", "said", "is_placed"),
    [
        (CodeRaises(3), 1, "CodeRaises: 3", True),
        (OwnExit(3), 3, "OwnExit: 3", True),
        (OwnExit(0), 0, "", False),
        (SystemExit(None), 0, "", False),
        (
            SystemExit(Unequal()),
            1,
            "the scenario called sys.exit('<tests.test_odd_endings.Unequal object",
            False,
        ),
        (
            SystemExit(10**5000),
            10**5000,
            "the scenario called sys.exit('(its text cannot be read: ValueError)')",
            False,
        ),
        (SystemExit(-1), -1, "the scenario called sys.exit(-1)", False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_exit_of_any_kind_has_a_code_and_says_what_it_was(
    tmp_path: Path, leaving: SystemExit, code: int, said: str, *, is_placed: bool
) -> None:
    journal = Writer(tmp_path / "journal.jsonl")

    try:
        raise leaving
    except SystemExit as problem:
        farewell, found = worker.result_of_exit(problem, describe(problem, Path(__file__)), journal)

    assert (farewell.error[: len(said)], bool(farewell.error), found) == (said, bool(said), code)
    assert ("raise leaving" in (tmp_path / "journal.jsonl").read_text()) == is_placed


def test_what_a_box_lacks_may_be_said_by_an_exception_that_cannot_be_told(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    more = """
from tuilab.errors import BoxLacks
class Lacks(BoxLacks):
    def __str__(self): raise KeyboardInterrupt
"""

    done = tuilab("run", str(write_scenario(tmp_path, "raise Lacks()", more)), "--json", "--quiet")

    (run,) = json.loads(done.stdout)["runs"]
    assert run["reason"] == "not testable here: (its text cannot be read: KeyboardInterrupt)"


FORKS = """
statuses = []
for number in range(5):
    child = os.fork()
    if child == 0:
        if number == 0: sys.exit(0)
        if number == 1: sys.exit("what it says last")
        if number == 2: raise OSError("nobody catches it")
        if number == 3: raise Hiding()
        return
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
lab.text(str(statuses))
"""
HIDING = """
class Hiding(Exception):
    __class__ = property(lambda self: 1 / 0)
"""


def test_a_child_of_a_fork_ends_as_in_any_script(tuilab: Tuilab, tmp_path: Path) -> None:
    root = tmp_path / "runs"

    tuilab(
        "run",
        str(write_scenario(tmp_path, FORKS, HIDING)),
        "--headless",
        "--quiet",
        "--root",
        str(root),
    )

    (run_dir,) = store.list_runs(root)
    assert [text.text for text in look(run_dir).summary.texts] == ["[0, 1, 1, 1, 0]"]
    said = (run_dir / "stderr.log").read_text()
    assert (
        "what it says last\n" in said
        and "OSError: nobody catches it\n" in said
        and "Hiding" in said
    )
    assert "RuntimeError" not in said and "worker.py" not in said


LINES = [
    b"[" * 60_000,
    b'{"lesson": "a", "run": "r", "predicted": NaN}',
    b'{"lesson": "a", "run": "r", "predicted": 1e999}',
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[-20:]))
def test_a_line_of_the_score_that_is_none_of_ours_is_passed_over(
    tmp_path: Path, line: bytes
) -> None:
    kept = tmp_path / "state" / "tuilab" / "learned.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(line + b'\n{"lesson": "b", "run": "r"}\n')

    assert list(lesson_score.read()) == ["b"]


LOSES_ONE = """
import sys
if {"tuilab.engine.supervisor", "tuilab.engine.early_start"} & {*sys.orig_argv}:
    from tuilab.record.journal.writer import Writer
    def append(self, event, *more, append=Writer.append):
        if type(event).__name__ != "WorkerExited":
            return append(self, event, *more)
        self._next += 1
        return self._lose("the disk is full")
    Writer.append = append
"""


def test_a_run_whose_supervisor_could_not_write_a_record_says_so(
    tuilab: Tuilab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    do_first(tmp_path, monkeypatch, LOSES_ONE)

    done = tuilab(
        "run", str(write_scenario(tmp_path, 'lab.claim("one-is-one", True)')), "--json", "--quiet"
    )

    (run,) = json.loads(done.stdout)["runs"]
    assert (run["state"], run["reason"]) == (
        "failed",
        "1 record could not be written: the disk is full",
    )
