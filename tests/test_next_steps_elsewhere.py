"""Each command that is told as a next step finds the runs that it is about, where these are in no usual folder."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.made_runs import make_run, started
from tests.packages import MODULES
from tests.tui.screens import app_on, open_run, opened, press, text
from tuilab.errors import UsageError
from tuilab.record.events import StateChanged, VerdictReached
from tuilab.record.folding.fold import fold
from tuilab.runs import queue, store
from tuilab.runs.command_line import deciding_line, hint
from tuilab.text.display import GONE
from tuilab.tui.goodbye import farewell
from tuilab.tui.state.session import Session
from tuilab.tui.state.settings import Settings

Tuilab = Callable[..., "CompletedProcess[str]"]
VERBS = "attach|stop|queue|runs|rm|verify|report|compare|replay|note|export"
USUAL = {"tuilab.doctor"}  # looks at the usual folder alone
NAMED = {  # verbs that are told as what there is, or with words that have a place of their own
    "tuilab.cli.subcommands": {"tuilab attach RUN --read-only"},
    "tuilab.cli.verbs.queue": {"tuilab queue "},
    "tuilab.lab.failures.hints": {"that tuilab runs in"},
}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder of runs that is not the usual one, and has a space in its name."""
    return tmp_path / "other runs"


def test_the_usual_folder_is_not_named_and_of_several_each_is(
    root: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))

    assert hint(root, "attach", "abc") == "tuilab attach abc"
    assert shlex.split(hint(other, "attach", "abc")) == [
        "tuilab",
        "attach",
        "abc",
        "--root",
        str(other),
    ]
    assert shlex.split(hint([root, other], "runs")) == [
        "tuilab",
        "runs",
        "--root",
        str(root),
        "--root",
        str(other),
    ]


AB = ["ab", "--arm", "two: A=1", "--repeat", "6", "--budget=9m", "--json", "--", "python", "t.py"]


@pytest.mark.parametrize(
    ("needed", "ran", "line"),
    [
        ([7], {}, "tuilab run softmax --repeat 13 --headless"),
        ([7, None, 20, 5000], {"params": {"n": 5}, "changed": ["n"]}, "tuilab run softmax --n 5 --repeat 26 --headless"),
        ([7], {"budget_s": 60.0, "looks": [6, 8], "timeout_s": 9.0}, "tuilab run softmax --repeat 13 --headless"),
        ([7], {"command": AB[-2:], "folder": "/w", "argv": AB},
         "cd /w && tuilab ab --arm 'two: A=1' --repeat 13 --headless -- python t.py"),
        ([None], {"quick": True, "params": {"n": 1, "m": 2}, "changed": ["n", "m"], "argv": ["run", "--quick", "--m=2"]},
         "tuilab run softmax --m 2 --headless"),
        ([7], {"command": [GONE], "folder": "/w", "argv": ["ab", "--", GONE]}, ""),
        ([None], {}, ""),
        ([-9], {}, ""),
        ([], {"quick": True}, ""),
    ],
)  # fmt: skip
def test_what_likely_decides_an_open_claim_is_a_line_to_type(
    needed: list[int | None], ran: dict[str, Any], line: str
) -> None:
    summary = fold(
        [
            ("supervisor", started(**ran)),
            *(("judge", left_open(number, more)) for number, more in enumerate(needed)),
        ]
    )
    assert deciding_line(summary) == ""  # it may fail still
    fold([("supervisor", StateChanged(state="succeeded"))], summary)

    assert deciding_line(summary) == line


async def test_the_result_the_screens_and_reports_tell_what_decides_an_open_claim(
    root: Path, tuilab: Tuilab
) -> None:
    run_dir = make_run(root, started(), left_open(1, 7), StateChanged(state="succeeded"))
    line = "tuilab run softmax --repeat 13 --headless"

    assert (
        f"to settle the inconclusive claims: {line}\n"
        in tuilab("attach", "last", "--headless").stdout
    )
    for form in ("md", "html"):
        assert line in tuilab("report", "last", "-o", "-", "--as", form).stdout
    async with opened(app_on(root), size=(120, 40)) as pilot:
        page = await open_run(pilot, run_dir)
        claims = page.panes.named("claims")
        assert claims is not None and line in " ".join(claims.as_text().split())


def left_open(number: int, more: int | None) -> VerdictReached:
    return VerdictReached(
        text=f"c{number}", verdict="INCONCLUSIVE", rule="r", units=6, more_repeats=more
    )


def test_no_command_about_runs_is_told_without_their_folder() -> None:
    """Who tells one builds it with `hint`."""
    told = [
        (name, words)
        for name in MODULES
        for words in _texts(name)
        if re.search(rf"\btuilab ({VERBS})\b", words)
    ]
    plain = [
        (name, words)
        for name, words in told
        if not name.startswith(tuple(USUAL))
        and not any(one in words for one in NAMED.get(name, ()))
    ]

    assert plain == []


def _texts(module: str) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings."""
    tree = ast.parse(MODULES[module].read_text())
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documents
        ):
            yield node.value


def test_the_farewell_of_the_screens_names_the_folder(other: Path) -> None:
    desk = Session(other, [], Settings())
    runs = [
        make_run(other, started(is_alive=True), StateChanged(state=state), end=state[:6])
        for state in ("running", "queued")
    ]
    desk.started = [run.name for run in runs]

    assert farewell(desk) == f"2 runs continue: tuilab runs --root '{other}'"


def test_what_is_refused_names_the_folder_in_the_next_step(other: Path) -> None:
    run_dir = make_run(other, started(is_alive=True), StateChanged(state="running"))
    where = re.escape(f"--root '{other}'")

    with pytest.raises(UsageError, match=f"tuilab runs {where}"):
        store.find("zzzz", other)
    with pytest.raises(UsageError, match=f"tuilab queue {where}"):
        queue.find(run_dir.name, other)


def test_the_commands_of_the_queue_take_the_folder_before_or_behind_them(
    tuilab: Tuilab, other: Path
) -> None:
    step = f"tuilab queue resume --root '{other}'"
    behind = tuilab("queue", "pause", "--root", str(other))
    before = tuilab("queue", "--root", str(other), "pause")
    shown = tuilab("queue", "--root", str(other))
    done = [
        tuilab("queue", *words, "--root", str(other))
        for words in (("resume",), ("again",), ("resume", "--json"))
    ]
    missing = [
        tuilab("queue", *words, "--root", str(other))
        for words in (("cancel", "zzzz"), ("move", "zzzz", "1"))
    ]

    assert step in behind.stdout and behind.stdout == before.stdout and step in shown.stdout
    assert [one.returncode for one in done] == [0, 0, 0] and not queue.is_paused(other)
    assert all(f"there are no runs in {other}" in one.stderr for one in missing)


async def test_the_palette_names_the_folder_in_what_the_command_line_does(other: Path) -> None:
    async with opened(app_on(other), "ctrl+p", size=(160, 40)) as pilot:
        await press(pilot, *"verify")

        assert f"tuilab verify RUN --root '{other}'" in text(pilot)
