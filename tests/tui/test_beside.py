"""The runs beside the one that is shown: keys to those that go on, curves of others behind its own, one repeat in front."""

from pathlib import Path
from typing import Any

import pytest

from tests.drawing_aids import drawn_text
from tests.made_runs import make_run, started
from tests.tui.pictures import recorded
from tests.tui.screens import (
    NotingDesk,
    ShownApp,
    app_on,
    open_run,
    opened,
    press,
    said,
    settle,
    shown,
    text,
)
from tuilab.engine.messages import RunOrder
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.runs import notes
from tuilab.tui.screens.compare import ComparePage
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.settings import Settings
from tuilab.tui.widgets.chart import Chart


def curve(top: float, arms: tuple[str, ...] = ("",)) -> list[events.Event]:
    return [
        events.Logged(s=step, v={"loss": top - step}, a=arm) for step in range(3) for arm in arms
    ]


def going(root: Path, end: str, at_s: float, name: str = "softmax") -> Path:
    """Make a run that goes on: this process is its supervisor."""
    records = [
        started(is_alive=True, scenario=name),
        events.StateChanged(state="running"),
        *curve(5.0),
    ]
    return make_run(root, *records, end=end, at_s=at_s, name=name)


def end(run_dir: Path) -> None:
    journal = Writer(run_dir / "journal" / "judge.jsonl")
    journal.append(events.StateChanged(state="succeeded"))
    journal.close()


def over(
    root: Path,
    end: str,
    at_s: float,
    top: float = 5.0,
    arms: tuple[str, ...] = ("",),
    **fields: Any,
) -> Path:
    records = [started(**fields), *curve(top, arms), events.StateChanged(state="succeeded")]
    return make_run(root, *records, end=end, at_s=at_s)


def chart_of(page: RunPage) -> str:
    return drawn_text(page.query(Chart).first())


async def test_keys_go_round_the_runs_that_go_on_and_the_heading_tells_how_many(root: Path) -> None:
    first, second = going(root, "aaaaaa", 1.8e9), going(root, "bbbbbb", 1.8e9 + 1, name="xyy")
    ended = over(root, "cccccc", 1.8e9 + 2)
    seen = []
    async with opened(app_on(root)) as pilot:
        await open_run(pilot, ended)
        await settle(pilot)
        heading = text(pilot).splitlines()[0]
        for key in ("w", "w", "w", "W"):
            await press(pilot, key)
            assert isinstance(pilot.app.screen, RunPage)
            seen.append((pilot.app.screen.run_dir, text(pilot).splitlines()[0]))
        depth = len(pilot.app.screen_stack)

    assert "2 others running" in heading
    assert [run_dir for run_dir, _ in seen] == [first, second, first, second]
    assert "1 of 2 running" in seen[0][1] and "2 of 2 running" in seen[1][1]
    assert depth == 3  # each took the place of the one before


async def test_a_run_that_goes_on_alone_is_told_nothing_of_others(root: Path) -> None:
    alone = going(root, "aaaaaa", 1.8e9)
    async with opened(app_on(root)) as pilot:
        await open_run(pilot, alone)
        await press(pilot, "w")

        assert "other" not in text(pilot).splitlines()[0] and "next run" not in text(pilot)
        assert said(pilot) == ["no other run is running"]


class QueueingDesk(NotingDesk):
    """Starts nothing: what is queued are runs that are there."""

    def __init__(self, root: Path, runs: list[Path]) -> None:
        super().__init__(root, [], Settings(has_seen_hint=True))
        self._runs = runs

    def start(self, order: RunOrder) -> Path:
        return self._runs.pop(0)


async def test_the_next_of_several_runs_is_shown_only_to_whom_looks_at_the_one_before(
    root: Path,
) -> None:
    first, second, other = (
        going(root, end, 1.8e9 + at) for at, end in enumerate(("aaaaaa", "bbbbbb", "cccccc"))
    )
    app = ShownApp(QueueingDesk(root, [first, second]))
    async with opened(app) as pilot:
        app.run_orders(
            [RunOrder(root="", scenario="softmax", topic="", title="", path="", params={})] * 2
        )
        await settle(pilot)
        await press(pilot, "W")  # to the run of somebody else
        end(first)
        app.run_orders([])  # looks whether it is the turn of the next
        await settle(pilot)

        assert isinstance(app.screen, RunPage) and app.screen.run_dir == other
        await press(pilot, "w", "w")
        end(second)
        await shown(pilot, "succeeded")
        assert app.screen.run_dir == second  # a run that ends stays


async def test_the_baseline_lies_dim_behind_and_is_named_and_that_is_kept(root: Path) -> None:
    baseline, _ = over(root, "aaaaaa", 1.8e9, top=50.0), over(root, "bbbbbb", 1.8e9 + 1, top=70.0)
    run_dir = over(root, "cccccc", 1.8e9 + 2)
    notes.add(baseline, tags=["baseline"])
    app = app_on(root)
    async with opened(app) as pilot:
        page = await open_run(pilot, run_dir)
        alone = chart_of(page)
        await press(pilot, "b")
        beside = await shown(pilot, "baseline aaaaaa 48")
        is_kept = app.desk.settings.has_others
        await press(pilot, "b")
        again = chart_of(page)
        await press(pilot, "b")
        await shown(pilot, "baseline aaaaaa 48")
        await press(pilot, "0")
        reset = chart_of(page)

    assert "aaaaaa" not in alone and "50" not in alone
    assert "bbbbbb" not in beside
    assert is_kept and not app.desk.settings.has_others
    assert again == reset == alone
    assert said(pilot)[:2] == ["shown dimmed: baseline aaaaaa", "only this run"]


async def test_without_a_baseline_it_is_the_newest_earlier_run_that_was_as_quick(
    root: Path,
) -> None:
    over(root, "aaaaaa", 1.8e9)
    over(root, "bbbbbb", 1.8e9 + 1, quick=True)
    run_dir = over(root, "cccccc", 1.8e9 + 2)
    over(root, "dddddd", 1.8e9 + 3)  # after it
    async with opened(app_on(root, Settings(has_seen_hint=True, has_others=True))) as pilot:
        await open_run(pilot, run_dir)

        assert "earlier aaaaaa 3" in await shown(pilot, "earlier")


async def test_where_there_is_none_that_is_said(root: Path) -> None:
    run_dir = over(root, "cccccc", 1.8e9 + 2)
    async with opened(app_on(root)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "b")

        assert [words[:15] for words in said(pilot)] == ["nothing to show"]


async def test_runs_of_the_scenario_that_go_on_are_behind_and_followed(root: Path) -> None:
    over(root, "000000", 1.7e9)
    here, there = going(root, "aaaaaa", 1.8e9), going(root, "bbbbbb", 1.8e9 + 1)
    going(root, "cccccc", 1.8e9 + 2, name="xyy")
    async with opened(
        app_on(root, Settings(has_seen_hint=True, has_others=True)), size=(120, 40)
    ) as pilot:
        await open_run(pilot, here)
        before = await shown(pilot, "2 running bbbbbb 3")
        journal = Writer(there / "journal" / "worker-0.jsonl")  # of its next repeat
        journal.append(events.Logged(s=9, v={"loss": 123.0}))
        journal.close()
        after = await shown(pilot, "2 running bbbbbb 123")

    assert "1 earlier 000000" in before and "cccccc" not in before
    assert "1 earlier 000000" in after


async def test_where_arms_are_told_apart_the_lines_behind_have_their_letters_and_one_entry(
    root: Path,
) -> None:
    over(root, "aaaaaa", 1.8e9, arms=("one", "two"))
    run_dir = over(root, "bbbbbb", 1.8e9 + 1, top=7.0, arms=("one", "two"))
    async with opened(
        app_on(root, Settings(has_seen_hint=True, has_others=True)), size=(120, 40)
    ) as pilot:
        page = await open_run(pilot, run_dir)
        await shown(pilot, "earlier aaaaaa")
        head, *plot = chart_of(page).splitlines()

    assert "A one 5" in head and "B two 5" in head and head.count("earlier aaaaaa") == 1
    assert (
        sum(line.count("B") for line in plot) == 4
    )  # of this run one, as its lines take turns, and three of the one behind


async def test_one_repeat_comes_to_the_front_after_the_other(tmp_path: Path) -> None:
    async with opened(app_on(tmp_path), size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("crash-in-the-third-repeat", tmp_path))
        repeats = page.panes.repeats
        every = chart_of(page)
        await press(pilot, "r")
        first, told = chart_of(page), text(pilot)
        await press(pilot, *["r"] * len(repeats))

        assert chart_of(page) == every
    assert len(repeats) > 1 and f"repeat 1 of {repeats[-1]}" in told
    assert first.splitlines()[0].split()[:2] == every.splitlines()[0].split()[:2]
    assert said(pilot)[-1] == f"all {len(repeats)} repeats"


async def test_a_run_of_one_repeat_has_no_other_to_step_to(root: Path) -> None:
    run_dir = over(root, "aaaaaa", 1.8e9)
    async with opened(app_on(root)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "r")

        assert said(pilot) == ["this run has only one repeat"]


@pytest.mark.parametrize("has_other", [True, False])
async def test_a_run_is_compared_with_the_one_that_it_is_held_against(
    root: Path, has_other: bool
) -> None:
    if has_other:
        over(root, "aaaaaa", 1.8e9)
    run_dir = over(root, "bbbbbb", 1.8e9 + 1)
    async with opened(app_on(root)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "m")

        page = pilot.app.screen
        if has_other:
            assert (
                isinstance(page, ComparePage)
                and page.command() == f"tuilab compare aaaaaa bbbbbb --root {root}"
            )
        else:
            assert isinstance(page, RunPage) and said(pilot)[-1].startswith(
                "no run to compare with"
            )
