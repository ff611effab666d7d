"""Keys that work everywhere, what they leave behind, and the line that tells them."""

import re
from pathlib import Path

import pytest

from tests.made_runs import FAST, finished, make_run, started
from tests.tui.pictures import recorded
from tests.tui.screens import (
    NotingApp,
    NotingDesk,
    app_on,
    open_run,
    opened,
    press,
    said,
    settle,
    shown,
    text,
)
from tuilab.record.events import Logged, StateChanged
from tuilab.tui.screens.history import HistoryPage
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.run_source import LiveRun
from tuilab.tui.state.settings import Settings
from tuilab.tui.widgets.keybar import KeyBar
from tuilab.tui.widgets.lab.lesson import Lesson
from tuilab.tui.widgets.lab.source import Source
from tuilab.tui.widgets.run import headline
from tuilab.tui.widgets.search import SearchedLines

WORDS = {"enter", "run", "h", "history", "b", "box", "^p", "commands"}


@pytest.fixture(autouse=True)
def no_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)


def noting(root: Path) -> NotingApp:
    root.mkdir(exist_ok=True, parents=True)
    return NotingApp(NotingDesk(root, [], Settings(has_seen_hint=True)))


async def test_a_zoom_that_was_left_with_escape_is_left_the_next_time(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        await press(pilot, "z")
        was_zoomed = app.desk.settings.is_zoomed, page.maximized is not None
        await press(pilot, "escape")

        assert was_zoomed == (True, True)
        assert (app.desk.settings.is_zoomed, page.maximized) == (False, None)
        assert app.screen is page


async def test_ctrl_c_says_once_how_to_leave_and_ends_nothing(root: Path) -> None:
    async with opened(app_on(root), "ctrl+c", "ctrl+c", "ctrl+c") as pilot:
        assert said(pilot) == ["q quits; a running run continues"]
        assert pilot.app.is_running


async def test_ctrl_c_at_a_run_that_goes_on_says_what_leaves_and_what_stops_it(root: Path) -> None:
    run_dir = make_run(root, started(is_alive=True), StateChanged(state="running"))
    async with opened(app_on(root)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "ctrl+c")

        assert said(pilot) == ["q quits; the run continues; s stops it"]


async def test_while_something_is_typed_ctrl_c_names_ctrl_q_which_leaves(root: Path) -> None:
    async with opened(app_on(root), "slash", "ctrl+c") as pilot:
        assert said(pilot) == ["^q quits; a running run continues"]
        await pilot.press("ctrl+q")

        assert pilot.app.return_code == 0


async def test_ctrl_q_leaves_while_something_is_asked(root: Path) -> None:
    async with opened(app_on(root), "ctrl+p", "ctrl+q") as pilot:
        assert pilot.app.return_code == 0


async def test_what_the_mouse_has_selected_is_copied_by_ctrl_c_with_a_word(root: Path) -> None:
    app = noting(root)
    async with opened(app) as pilot:
        await open_run(pilot, finished(root, {"the sum is right": "SUPPORTED"}))
        app.screen.text_select_all()
        await press(pilot, "ctrl+c")

        assert len(app.copied) == 1 and "the sum is right" in app.copied[0]


@pytest.mark.parametrize(("key", "kind"), [("p", Lesson), ("c", Source)])
async def test_what_the_mouse_selects_of_a_lesson_or_of_code_is_copied_as_it_stands(
    root: Path, tmp_path: Path, key: str, kind: type[SearchedLines]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/fast.py").write_text(FAST)
    app = NotingApp(
        NotingDesk(root, [str(tmp_path / "mine")], Settings(has_seen_hint=True, scenario="fast"))
    )
    async with opened(app, key, size=(120, 40)) as pilot:
        shown = app.screen.query_one(kind)
        left = 5 if kind is Source else 0  # of code, behind the numbers of its lines
        await pilot.mouse_down(shown, offset=(left + 2, 0))
        await pilot.hover(shown, offset=(left + 4, 2))
        await pilot.mouse_up(shown, offset=(left + 4, 2))
        await press(pilot, "ctrl+c")
        lines = [line.plain for line in shown.lines_to_search()]
        top = int(shown.scroll_offset.y)

    (copied,) = app.copied
    assert copied.splitlines() == [lines[top][2:], lines[top + 1], lines[top + 2][:5]]


async def test_a_chart_within_what_the_mouse_selects_adds_nothing(tmp_path: Path) -> None:
    app = noting(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        await open_run(pilot, recorded("not-a-number", tmp_path))
        app.screen.text_select_all()
        await press(pilot, "ctrl+c")

    assert "inf minus inf is nan" in app.copied[0] and "name=" not in app.copied[0]


async def test_a_pane_and_the_command_that_makes_a_run_again_are_copied_by_keys(
    tmp_path: Path,
) -> None:
    app = noting(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("not-a-number", tmp_path))
        await press(pilot, "left", "c", "enter")
        claims = page.panes.named("claims")
        assert claims is not None
        claims.focus()
        await press(pilot, "c", "enter", "Y")

    chart, told, command = app.copied
    assert chart.startswith("loss") and "NaN" in chart and len(chart.splitlines()) > 4
    assert "✓ inf minus inf is nan\n  measured nan" in told
    assert command.startswith("tuilab run ") and command.endswith(" --headless")


@pytest.mark.parametrize(("vi", "arrow"), [("j", "down"), ("G", "end"), ("ctrl+d", "pagedown")])
async def test_the_keys_of_vi_move_as_the_arrows_do(root: Path, vi: str, arrow: str) -> None:
    for number in range(40):
        finished(root, {}, at_s=1.8e9 + number, end=f"{number:06}")
    chosen = []
    for key in (vi, arrow):
        async with opened(root, "h", key) as pilot:
            assert (
                isinstance(pilot.app.screen, HistoryPage)
                and pilot.app.screen.runs.chosen is not None
            )
            chosen.append(pilot.app.screen.runs.chosen.run)

    assert chosen[0] == chosen[1] != "20270115T080039000Z-softmax-000039"


async def test_k_goes_up_in_the_lab_and_changes_no_form(root: Path) -> None:
    app = app_on(root)
    async with opened(app, "j", "j") as pilot:
        before = text(pilot)
        await press(pilot, "j", "k")

        assert text(pilot) == before


async def test_at_80_columns_the_line_of_keys_has_the_doors_and_says_that_there_is_more(
    root: Path,
) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        last = text(pilot).splitlines()[-1]

    assert set(last.split()) >= WORDS
    assert last.strip().endswith("? more")


async def test_where_every_key_is_told_there_is_no_more(root: Path) -> None:
    async with opened(app_on(root), size=(160, 24)) as pilot:
        assert text(pilot).splitlines()[-1].strip().endswith("? help")


async def test_next_bad_is_in_the_line_of_keys_when_there_is_a_nan(root: Path) -> None:
    lines = []
    for number, value in enumerate((1.0, float("nan"))):
        run_dir = make_run(
            root,
            started(),
            *(Logged(s=step, v={"loss": value}) for step in range(3)),
            StateChanged(state="succeeded"),
            end=f"{number:06}",
        )
        async with opened(app_on(root), size=(80, 24)) as pilot:
            await open_run(pilot, run_dir)
            page = pilot.app.screen
            assert isinstance(page, RunPage)
            page.show_keys()
            await settle(pilot)
            lines.append("n next NaN" in text(pilot).splitlines()[-1])

    assert lines == [False, True]


async def test_compare_stays_in_the_line_of_keys_when_runs_are_marked(root: Path) -> None:
    for number in range(3):
        finished(root, {}, at_s=1.8e9 + number, end=f"{number:06}")
    async with opened(root, "h", "space", "space", size=(80, 24)) as pilot:
        last = text(pilot).splitlines()[-1]

    assert "m compare" in last and "u unmark" in last


async def test_a_word_of_the_line_of_keys_can_be_clicked(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        at = text(pilot).splitlines()[-1].index("history")
        await pilot.click(KeyBar, offset=(at, 0))
        await settle(pilot)

        assert isinstance(pilot.app.screen, HistoryPage)


async def test_between_the_words_of_the_line_of_keys_nothing_is_done(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        line = text(pilot).splitlines()[-1]
        await pilot.click(KeyBar, offset=(line.index("h history") - 1, 0))
        await pilot.click(KeyBar, offset=(79, 0))
        await settle(pilot)

        assert len(pilot.app.screen_stack) == 2


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (["enter"], ["enter run", "esc cancel"]),
        (["h", "d"], ["y yes", "n no", "esc no"]),
        (["h", "n"], ["enter save", "esc cancel"]),
        (["ctrl+p"], ["enter choose", "esc cancel"]),
    ],
    ids=["prediction", "question", "written line", "palette"],
)
async def test_while_something_is_asked_the_last_line_tells_the_keys_that_answer(
    tmp_path: Path, keys: list[str], told: list[str]
) -> None:
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "fast.py").write_text(FAST)
    finished(tmp_path / "runs", {"a": "SUPPORTED"})
    app = app_on(
        tmp_path / "runs",
        Settings(scenario="fast", has_seen_hint=True),
        folders=[str(tmp_path / "lessons")],
    )
    async with opened(app, *keys[:-1], size=(80, 24)) as pilot:
        before = text(pilot).splitlines()[-1]
        await press(pilot, keys[-1])
        await settle(pilot)
        asked = text(pilot).splitlines()[-1]
        await press(pilot, "escape")
        await settle(pilot)

        assert asked.strip().split("  ") == told
        assert text(pilot).splitlines()[-1] == before


async def test_what_changes_how_all_is_shown_says_what_it_is_now(root: Path) -> None:
    async with opened(app_on(root), "T", "B", "0") as pilot:
        told = [
            "theme tuilab-light",
            "drawn with block characters",
            "layout and settings are reset",
        ]
        assert said(pilot) == told


async def test_smoothing_and_the_axis_say_what_they_are_now(tmp_path: Path) -> None:
    async with opened(app_on(tmp_path)) as pilot:
        await open_run(pilot, recorded("tour", tmp_path))
        await press(pilot, "o", "t", "o", "t")

        told = ["light smoothing; raw values stay visible", "x axis: seconds"]
        assert said(pilot) == [
            *told,
            "strong smoothing; raw values stay visible",
            "x axis: steps, if there are any",
        ]


async def test_a_theme_is_found_by_its_name_in_the_palette(root: Path) -> None:
    async with opened(app_on(root), "ctrl+p", *"light") as pilot:
        await shown(pilot, "theme tuilab-light")
        await press(pilot, "enter")
        await settle(pilot)

        assert pilot.app.theme == "tuilab-light"


async def test_a_key_that_would_be_typed_is_not_offered_for_a_run_that_goes_on(root: Path) -> None:
    make_run(root, started(is_alive=True), StateChanged(state="running"))
    async with opened(app_on(root)) as pilot:
        await shown(pilot, "a opens it")
        await press(pilot, "slash")
        while_typing = text(pilot)
        await press(pilot, "escape")

        assert "opens it" not in while_typing and "● running" in while_typing
        assert "a opens it" in text(pilot)


async def test_what_tuilab_itself_takes_is_told_in_as_many_words_as_no_key_gives_way_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headline, "_COST_S", -1.0)  # some seconds have passed
    monkeypatch.setattr(LiveRun, "age_s", 0.0)
    run_dir = make_run(tmp_path, started(is_alive=True), StateChanged(state="running"))
    ends = []
    for width in (160, 120, 80):
        async with opened(app_on(tmp_path), size=(width, 24)) as pilot:
            page = await open_run(pilot, run_dir)
            page.show_note()
            await pilot.pause()
            ends.append(
                re.sub(r"[\d.]+", "0", text(pilot).splitlines()[-1].split("  ")[-1]).strip()
            )

    assert ends == ["tuilab itself: 0 % of a core, 0 kB/s sent", "tuilab 0 %, 0 kB/s", "? more"]


async def test_on_a_very_narrow_screen_the_lab_fits(root: Path) -> None:
    async with opened(app_on(root), size=(30, 10)) as pilot:
        lines = text(pilot).splitlines()

    assert lines[1].endswith("╮") and max(map(len, lines)) == 30
