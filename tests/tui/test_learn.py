"""Learning on the screens: the next lesson, what was predicted of one, and lessons in another language."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from tests.made_runs import FAST, note_done, write
from tests.tui.screens import NotingApp, drive, settle, text
from tests.tui.test_lab_page import record_run, verdict
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.tui.screens.run import RunPage

if TYPE_CHECKING:
    from textual.pilot import Pilot

CHINESE = """\
# 快速求和：一个运算就够了

逐行相加要调用很多次算子，而*一个*算子一次就够了，所以快得多。

## 先猜一猜
快多少倍？
## 看什么
## 再试试
`--rows 5`：相加的更少。`--no-tidy --work mul`：别的运算。`--gone 1` 不是选项。
## 参数
- rows: 要相加的行数
- scale: 系数
- tidy: 删除名字
- work: 做什么
- word: 一段文字
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "scenarios", fast=FAST)


def test_a_key_goes_to_the_next_lesson_and_tells_the_score(folder: Path, root: Path) -> None:
    note_done("tensor-basics", "fast")

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("slash", *"fast", "enter")  # a filter that does not have it
        await pilot.press("l")
        await settle(pilot)
        assert app.page.scenario is not None
        assert app.page.scenario.id == "autograd-chain"
        assert app.said[0].startswith("2 of ") and app.said[0].endswith(" lessons done")

    drive(body, folder, root)


def test_the_lesson_tells_what_was_predicted_and_what_came_out(folder: Path, root: Path) -> None:
    run_dir = record_run(root, verdict("the sum is right", "SUPPORTED"))
    stream = run_dir / "journal" / "supervisor.jsonl"
    stream.unlink()
    journal = Writer(stream)
    started = events.RunStarted(
        format=events.FORMAT, run=run_dir.name, scenario="fast", topic="mine", title="A fast sum", source_sha256="",
        params={}, supervisor=events.Identity(host="h", boot="b", pid=1, start=1), tuilab="0", wall_ns=0, prediction=8.0,
    )  # fmt: skip
    answered = events.QuestionAnswered(text="the sum is right", value=10.0)
    for record in (
        started,
        answered,
        verdict("the sum is right", "SUPPORTED"),
        events.StateChanged(state="succeeded"),
    ):
        journal.append(record)
    journal.sync()

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        lines = [line.partition("││")[2].strip(" │") for line in text(pilot).split("\n")]
        at = lines.index("How many times faster is it?")
        assert lines[at + 1] == "you predicted 8; measured 10: near (within a factor of 2)"

    drive(body, folder, root)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20)])
def test_a_lesson_in_wide_characters_fills_its_lines_and_breaks_no_border(
    folder: Path, root: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_LANG", "zh")
    (path,) = folder.rglob("fast.py")
    path.with_suffix(".zh.md").write_text(CHINESE)

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("p")
        await settle(pilot)
        lines = text(pilot).split("\n")
        assert any("逐行相加要调用很多次算子" in line for line in lines)
        assert any("快多少倍？" in line for line in lines)
        assert {cell_len(line) for line in lines if line.strip()} <= {size[0]} | {
            cell_len(line) for line in lines if "│" not in line
        }

    drive(body, folder, root, size=size)


def test_finished_lesson_shows_a_card_and_leads_to_the_next_lesson(
    folder: Path, root: Path
) -> None:
    run_dir = record_run(root, verdict("the sum is right", "SUPPORTED"))
    note_done("fast")

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        app.desk.is_learning = True
        app.open_run(run_dir)
        await settle(pilot)
        shown = text(pilot)
        count = len(app.desk.scenarios)
        assert f"Lesson {count} of {count}" in shown
        assert f"1 of {count} lessons done" in shown
        assert "next lesson: tensor-basics" in shown

        await pilot.press("enter")
        await settle(pilot)
        assert app.page.scenario is not None
        assert app.page.scenario.id == "tensor-basics"

    drive(body, folder, root)


def test_finished_run_of_a_user_who_does_not_learn_has_no_card(folder: Path, root: Path) -> None:
    run_dir = record_run(root, verdict("the sum is right", "SUPPORTED"))

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        app.open_run(run_dir)
        await settle(pilot)
        assert "Lesson" not in text(pilot)

        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, RunPage)

    drive(body, folder, root)
