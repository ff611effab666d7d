"""A tuning on the screens: its table, live and afterwards, and in the lists of runs."""

from pathlib import Path

import pytest

from tests.made_runs import identity
from tests.made_tuning import (
    hostile_tuning,
    make_tuning,
    running_tuning,
    stopped_tuning,
    whole_tuning,
)
from tests.tui.pictures import compare, picture, text_of
from tests.tui.screens import UNSAFE, app_on, eventually, open_run, opened, text
from tuilab.record.events import StateChanged
from tuilab.runs.past_runs import read_past_run
from tuilab.tui.state.own.own_commands import last
from tuilab.tui.widgets.run.tuning import TuningPane

HOSTILE = "[/b][red]x[/]\x1b]0;owned\x07\x1b[2J\u202e<b>$(reboot) [@click=app.leave]y[/]"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_the_table_of_a_tuning_comes_first(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=size) as pilot:
        await open_run(pilot, whole_tuning(tmp_path))

        compare(f"run-tune-{size[0]}x{size[1]}", text_of(picture(app)))


async def test_the_pane_has_the_next_commands_at_its_end(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, whole_tuning(tmp_path))

        pane = page.query_one(TuningPane).as_text()
        joined = " ".join(pane.split())
        assert (
            "to compare what is learned with bf16 autocast: cd /home/ada/project && tuilab ab"
            in joined
        )
        assert "--budget 1800s --only compile" in joined


async def test_a_running_tuning_shows_intervals_stage_and_budget(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, running_tuning(tmp_path, 4))
        pane = page.query_one(TuningPane)

        await eventually(pilot, lambda: "1.58x [1.19, 2.08]" in pane.as_text(), "an interval")
        shown = text(pilot)
        assert "1.05x in one process" in shown
        assert "comparison, 34 processes" in shown
        assert "of the budget left" in shown
        assert " of 81" not in shown


async def test_a_tuning_without_a_plan_says_what_happens_first(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app) as pilot:
        supervisor = identity(is_alive=True)
        state = StateChanged(state="running")
        await open_run(pilot, make_tuning(tmp_path, state, supervisor=supervisor))

        assert "the script runs once, and is watched" in text(pilot)


async def test_a_stopped_tuning_keeps_its_table(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(100, 40)) as pilot:
        await open_run(pilot, stopped_tuning(tmp_path))

        assert "the run ended before it was compared" in text(pilot)


async def test_a_tuning_can_be_replayed(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(100, 40)) as pilot:
        page = await open_run(pilot, whole_tuning(tmp_path))
        page.action_play("replay")

        pane = page.query_one(TuningPane)
        await eventually(pilot, lambda: "1.55x [1.41, 1.7]" in pane.as_text(), "the winners")
        assert "replay" in text(pilot)


async def test_hostile_texts_of_a_tuning_reach_no_terminal(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, hostile_tuning(tmp_path, HOSTILE))

        pane = page.query_one(TuningPane).as_text()
        assert "[red]x[/]" in pane
        assert not UNSAFE.search(pane.replace("\n", ""))
        assert not UNSAFE.search(text(pilot).replace("\n", ""))


async def test_the_history_lists_a_tuning_with_its_command(tmp_path: Path) -> None:
    whole_tuning(tmp_path)
    app = app_on(tmp_path)
    async with opened(app, "h", size=(120, 24)) as pilot:
        (line,) = [line for line in text(pilot).splitlines() if "tune/train" in line]

        assert "python train.py" in line


def test_a_tuned_command_is_listed_with_the_command_that_tunes_again(tmp_path: Path) -> None:
    whole_tuning(tmp_path)

    command, _ = last(read_past_run, tmp_path)
    assert command.title == "python train.py --data 'my data'"
    assert "Tune it again: `cd /home/ada/project && tuilab tune --budget 15m" in command.lesson
