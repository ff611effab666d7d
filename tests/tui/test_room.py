"""How much room the terminal gives, which may change at any moment: what the user sees is the same when it is back."""

import time
from pathlib import Path

import pytest

from tests.made_runs import finished, make_run, started
from tests.tui.screens import app_on, open_run, opened, press, settle, shown, text
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.tui.state.settings import Settings


@pytest.mark.parametrize("keys", [("down",), ("h", *["down"] * 2)], ids=["catalogue", "history"])
async def test_a_list_that_had_no_room_for_a_moment_is_scrolled_as_before(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    now = time.time()
    for number in range(12):
        finished(tmp_path, {"a": "SUPPORTED"}, at_s=now - number, end=f"{number:06}")
    async with opened(tmp_path, *keys, size=(100, 12)) as pilot:
        before = text(pilot)
        for size in ((100, 5), (100, 12)):
            await pilot.resize_terminal(*size)
            await settle(pilot)

        assert text(pilot) == before


@pytest.mark.parametrize("is_zoomed", [False, True], ids=["small", "zoomed"])
async def test_what_failed_is_in_sight_wherever_the_user_was(
    tmp_path: Path, is_zoomed: bool
) -> None:
    logged = events.Logged(s=0, v=dict.fromkeys("abcd", 1.0))
    run_dir = make_run(tmp_path / "runs", started(scenario="mine"), logged)
    app = app_on(
        tmp_path / "runs", Settings(has_seen_hint=True, pane="output", is_zoomed=is_zoomed)
    )
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, run_dir)
        await press(pilot, *([] if is_zoomed else ["tab"] * 5))
        assert page.panes.scroll_y == 0 if is_zoomed else page.panes.scroll_y > 0
        journal = Writer(run_dir / "journal" / "worker-0.jsonl")
        journal.append(
            events.ScenarioFailed(type="RuntimeError", message="no such shape", traceback="")
        )
        journal.append(events.StateChanged(state="failed"))
        journal.close()

        assert "no such shape" in await shown(pilot, "What failed")
        await settle(pilot)
        await settle(pilot)
        assert page.panes.scroll_y == 0
