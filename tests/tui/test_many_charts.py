"""A run that logs more names than there are charts on the screen: all are reached, and it is told that there are more."""

import base64
import math
from pathlib import Path

import pytest

from tests.made_runs import make_run, started
from tests.tui.screens import app_on, open_run, opened, press, settle, text
from tuilab.record.events import (
    BarsShown,
    EnvironmentRecorded,
    GpuFound,
    ImageShown,
    Logged,
    Sampled,
    StateChanged,
    VerdictReached,
)
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.settings import Settings, keep_charts, recall_charts
from tuilab.tui.widgets.run.series import ChartPane, SeriesPane

NAMES = [
    "loss",
    *(f"grad {number}" for number in range(5)),
    *(f"weight {number}" for number in range(4)),
]


def many(root: Path, names: list[str] = NAMES, *, end: str = "abcdef") -> Path:
    """Make a run that logs ten names, one of the last with a value that is no number."""
    values = dict.fromkeys(names, 1.0)
    logged = [
        Logged(s=0, v=values),
        Logged(s=1, v={**values, names[-1]: math.nan}),
        Logged(s=2, v=values),
    ]
    verdicts = [
        VerdictReached(text=f"claim {number}", verdict="SUPPORTED", rule="r", why="so")
        for number in range(2)
    ]
    first = started(scenario="many", topic="mine")
    return make_run(
        root, first, *logged, *verdicts, StateChanged(state="succeeded"), name="many", end=end
    )


def shown(page: RunPage) -> list[str]:
    return [pane.series_name for pane in page.query(SeriesPane)]


async def test_every_name_that_is_logged_has_a_chart_on_some_page(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        first, told_first = shown(page), text(pilot)
        await press(pilot, "greater_than_sign")
        second, told_second = shown(page), text(pilot)
        await press(pilot, "greater_than_sign")

        assert (first, second) == (NAMES[:6], NAMES[6:])
        assert "charts 1-6 of 10  < > page  / filter" in told_first
        assert "charts 7-10 of 10" in told_second
        assert shown(page) == NAMES[:6]


async def test_the_first_chart_of_a_page_is_gone_to_when_that_with_the_focus_is_not_on_it(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        await press(pilot, "tab", "greater_than_sign")

        assert page.panes.focused is page.panes.named(f"series {NAMES[6]}")
        assert page.panes.scroll_y == 0


async def test_few_names_have_no_line_about_pages(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path, NAMES[:6]))
        await press(pilot, "greater_than_sign")

        assert not page.charts_line.display
        assert shown(page) == NAMES[:6]


async def test_words_narrow_the_charts_and_the_choice_is_kept_for_the_scenario(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        await press(pilot, "slash", *"weight", "enter", "z", "z")
        assert shown(page) == NAMES[6:]

        again = await open_run(pilot, many(tmp_path, end="123456"))
        assert shown(again) == NAMES[6:]
        assert "charts 1-4 of 4, 10 in all" in text(pilot) and "/ weight" in text(pilot)
        await press(pilot, "slash", "escape")
        assert shown(again) == NAMES[:6]
        assert app.desk.settings.charts == {}


async def test_words_that_no_name_has_are_told_and_nothing_else_is_lost(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        await press(pilot, "slash", *"xyz", "enter")

        assert shown(page) == []
        assert "none of 10 charts matches" in text(pilot) and "Claims" in text(pilot)


async def test_n_goes_to_the_page_of_the_first_value_that_is_no_number(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        await press(pilot, "n")

        assert shown(page) == NAMES[6:]
        assert [pane.chart.cursor for pane in page.query(SeriesPane)] == [1.0] * 4


async def test_o_smooths_more_and_then_not_at_all(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        looks = []
        for _ in range(4):
            looks.append((page.views.view.is_smooth, page.views.view.is_smoother))
            await press(pilot, "o")

        assert looks == [(False, False), (True, False), (True, True), (False, False)]


async def test_n_says_where_it_is_when_the_words_leave_out_what_is_no_number(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        await open_run(pilot, many(tmp_path))
        await press(pilot, "slash", *"grad", "enter", "n")

        assert app.said == [
            "NaN or Inf in weight 3, which the filter hides; press / and esc to show all charts"
        ]


@pytest.mark.parametrize("size", [(120, 40), (200, 60)], ids=["120x40", "200x60"])
async def test_on_a_large_screen_texts_take_the_lines_that_they_need_and_charts_the_rest(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=size) as pilot:
        page = await open_run(pilot, many(tmp_path, NAMES[:3]))
        claims, output = page.panes.named("claims"), page.panes.named("output")
        charts = [pane.size.height for pane in page.query(ChartPane)]

        assert claims is not None and output is not None
        assert claims.outer_size.height == output.outer_size.height == 4 + 2
        assert min(charts) > 10
        assert claims.region.bottom == size[1] - 1


async def test_a_window_that_becomes_as_narrow_as_the_frame_of_a_pane_ends_nothing(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(60, 20)) as pilot:
        page = await open_run(pilot, many(tmp_path, NAMES[:3]))
        for width in range(12, 0, -1):
            await pilot.resize_terminal(width, 3)
            await settle(pilot)
            page.panes.fit()

        assert page.is_mounted and app.return_code is None


def shown_things(root: Path) -> Path:
    """Make a run that shows eight pictures, twelve figures and times of twelve arms."""
    cells = base64.b64encode(bytes([0, 254, 254, 0])).decode()
    first = started(scenario="shown", topic="mine")
    images = [
        ImageShown(title=f"picture {number}", rows=2, cols=2, cells=cells, low=0, high=1)
        for number in range(8)
    ]
    bars = [
        BarsShown(title=f"bars {number}", names=["a", "b"], values=[1.0, 2.0])
        for number in range(12)
    ]
    return make_run(root, first, *images, *bars, StateChanged(state="succeeded"), name="shown")


@pytest.mark.parametrize(("kind", "last"), [("pictures", "picture 7"), ("figures", "bars 11")])
async def test_what_has_no_room_in_a_pane_is_counted_and_scrolled_to(
    tmp_path: Path, kind: str, last: str
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, shown_things(tmp_path))
        pane = page.panes.named(kind)
        assert pane is not None
        pane.focus()
        await pilot.pause()
        first, told = text(pilot), str(pane.border_subtitle)
        await press(pilot, "end")

        assert last not in first and "↓" in told
        assert last in text(pilot) and "↓" not in str(pane.border_subtitle)


def eight_gpus(root: Path) -> Path:
    """Make a run on one of eight GPUs, all of which were read."""
    found = [
        GpuFound(uuid=f"GPU-u{number}", index=number, name="H100", bytes_total=80 << 30)
        for number in range(8)
    ]
    given = EnvironmentRecorded(
        part="cuda", facts={"devices": [{"uuid": f"u{n}"} for n in range(8)], "chosen": "u1"}
    )
    values = {"busy_percent": 97.0, "power_w": 600.0, "memory_used_bytes": 1e9}
    gpus = {gpu.uuid: values for gpu in found}
    read = [
        Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=1 << 30, gpus=gpus)
        for _ in range(3)
    ]
    return make_run(
        root, started(), *found, given, *read, StateChanged(state="succeeded"), name="gpus"
    )


async def test_the_strips_of_all_gpus_of_a_box_are_scrolled_to(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, eight_gpus(tmp_path))
        pane = page.panes.named("gpu")
        assert pane is not None
        pane.focus()
        await press(pilot, "d", "z")
        first, told = text(pilot), str(pane.border_subtitle)
        await press(pilot, "end")

        assert "GPU 1 H100" in first and "GPU 7 H100" not in first and "↓" in told
        assert "GPU 7 H100" in text(pilot) and "↓" not in str(pane.border_subtitle)


def test_what_is_kept_of_another_kind_is_done_without() -> None:
    kept = {"a": ["loss", 1], "b": 3, "c": ["loss"], "d": [1, "x"]}

    assert [recall_charts(kept, name) for name in "abcde"] == [("loss", 1), *[("", 0)] * 4]


def test_of_many_scenarios_the_choice_for_the_last_is_kept() -> None:
    settings = Settings()
    for number in range(150):
        keep_charts(settings.charts, f"s{number}", "loss", 0)

    assert list(settings.charts) == [f"s{number}" for number in range(50, 150)]


async def test_escape_shows_all_charts_again_before_it_leaves(tmp_path: Path) -> None:
    async with opened(app_on(tmp_path), size=(80, 24)) as pilot:
        page = await open_run(pilot, many(tmp_path))
        await press(pilot, "slash", *"weight", "enter")
        narrowed = shown(page)
        await press(pilot, "escape")

        assert len(narrowed) == 4 and pilot.app.screen is page
        assert shown(page) == NAMES[:6] and page.views.view.words == ""
        await press(pilot, "escape")
        assert pilot.app.screen is not page


async def test_words_of_last_time_are_told_as_such_until_others_are_typed(tmp_path: Path) -> None:
    settings = Settings(has_seen_hint=True)
    keep_charts(settings.charts, "many", "weight", 0)
    async with opened(app_on(tmp_path, settings), size=(80, 24)) as pilot:
        await open_run(pilot, many(tmp_path))
        await settle(pilot)
        recalled_words = text(pilot)
        await press(pilot, "slash", "backspace")

        assert (
            "charts 1-4 of 4, 10 in all  as last time;  esc shows all" in recalled_words
            and "weight" in recalled_words
        )
        assert "as last time" not in text(pilot)


async def test_turning_the_page_of_a_run_without_metrics_shows_no_error(tmp_path: Path) -> None:
    """The page that was chosen for this scenario last time does not exist yet."""
    settings = Settings(has_seen_hint=True)
    keep_charts(settings.charts, "many", "", 1)
    first = started(scenario="many", topic="mine")
    run_dir = make_run(tmp_path, first, StateChanged(state="running"), name="many", end="abcdef")
    app = app_on(tmp_path, settings)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, run_dir)
        await press(pilot, "greater_than_sign")

        assert page.views.view.page == 1 and shown(page) == []
