"""What is copied of a run: a menu that lists the pane, the commands, each claim, each value and each chart."""

from pathlib import Path

from tests.made_runs import hostile, make_run, started
from tests.tui.pictures import recorded
from tests.tui.screens import UNSAFE, NotingApp, NotingDesk, open_run, opened, press, text
from tuilab.tui.state.settings import Settings
from tuilab.tui.widgets.menu import Menu
from tuilab.tui.widgets.run.copies import copies


def noting(root: Path) -> NotingApp:
    root.mkdir(exist_ok=True, parents=True)
    return NotingApp(NotingDesk(root, [], Settings(has_seen_hint=True)))


async def chosen(tmp_path: Path, words: str, *keys: str) -> str:
    """Open a recorded run, press keys, and copy the line of the menu that has these words."""
    app = noting(tmp_path)
    async with opened(app, size=(120, 50)) as pilot:
        await open_run(pilot, recorded("not-a-number", tmp_path))
        await press(pilot, *keys, "c")
        assert isinstance(app.screen, Menu)
        lines = [line.strip("│▁▂▃▄▅▆▇█ ") for line in text(pilot).splitlines()]
        first = next(at for at, line in enumerate(lines) if "╭─ Copy" in line)
        await press(
            pilot,
            *["down"] * (next(at for at, line in enumerate(lines) if words in line) - first - 1),
            "enter",
        )
    return "\n".join(app.copied)


async def test_a_claim_is_copied_in_a_line_with_its_verdict_its_numbers_and_its_run(
    tmp_path: Path,
) -> None:
    told = await chosen(tmp_path, "claim  ")

    assert told.startswith(
        "✗ REFUTED  the loss ends below one  measured nan, claimed at most 1  ("
    )  # what stands first there
    assert "\n" not in told


async def test_a_value_is_copied_with_all_its_digits_the_last_or_the_one_at_the_cursor(
    tmp_path: Path,
) -> None:
    assert (
        await chosen(tmp_path / "last", "value    step_size at 11: 0.08333")
        == "0.08333333333333333"
    )
    assert await chosen(tmp_path / "bad", "value    loss at 11: NaN", "left") == "nan"
    assert (
        await chosen(tmp_path / "cursor", "value    step_size at 6: 0.1429", *["left"] * 6)
        == "0.14285714285714285"
    )


async def test_a_chart_that_has_not_the_focus_is_copied_as_it_is_drawn(tmp_path: Path) -> None:
    told = await chosen(tmp_path, "chart    step_size, as shown")

    assert told.startswith("step_size") and len(told.splitlines()) > 4


async def test_escape_copies_nothing_and_a_run_without_a_record_has_little_to_copy(
    tmp_path: Path,
) -> None:
    app = noting(tmp_path)
    async with opened(app) as pilot:
        page = await open_run(pilot, make_run(tmp_path, started(scenario="mine")))
        await press(pilot, "c", "escape", "c", "down", "enter")

        assert app.screen is page
    assert [line.split()[:2] for line in app.copied] == [["tuilab", "attach"]]


async def test_a_hostile_run_steers_neither_the_menu_nor_what_is_copied(tmp_path: Path) -> None:
    app = noting(tmp_path)
    async with opened(app) as pilot:
        page = await open_run(pilot, hostile(tmp_path))
        await press(pilot, "c")
        shown = text(pilot)
        items = copies(page.source, page.views.view, page.panes, page.command())

    assert not UNSAFE.search(shown.replace("\n", ""))
    assert items and not [item for item in items if UNSAFE.search(item.text.replace("\n", ""))]
