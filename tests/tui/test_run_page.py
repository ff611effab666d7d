"""The Run screen, shown from recorded runs."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import FAST, finished, judged, make_run, started, write
from tests.slow_cases import slow_cases
from tests.tui.pictures import COLOURS, compare, picture, recorded, text_of
from tests.tui.screens import (
    NotingDesk,
    ShownApp,
    app_on,
    eventually,
    open_run,
    opened,
    press,
    said,
    settle,
    shown,
    text,
)
from tuilab.drawings.glyphs import Style
from tuilab.drawings.linechart import LineChart, draw
from tuilab.drawings.picture import Picture
from tuilab.drawings.symbols import Symbols
from tuilab.record import presence
from tuilab.record.events import (
    AxesNamed,
    BarsShown,
    EnvironmentRecorded,
    GpuFound,
    GpuHeld,
    GpuShared,
    Logged,
    RunStarted,
    Sampled,
    SpanShown,
    StateChanged,
    TableShown,
    Tenant,
    TextShown,
    Unavailable,
    XidReported,
)
from tuilab.record.journal.writer import Writer
from tuilab.reports.missing_data import gaps
from tuilab.reports.reported_run import read_subject
from tuilab.reports.result_text import render
from tuilab.runs import store
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.state.settings import Settings
from tuilab.tui.widgets.pane import Pane
from tuilab.tui.widgets.run.output import OutputPane
from tuilab.tui.widgets.run.series import ChartPane

SIZES = [(60, 20), (80, 24), (120, 40), (200, 50)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["tour", "not-a-number", "crash-in-the-third-repeat"])
@pytest.mark.first(4)
async def test_a_recorded_run_looks_as_it_should(
    tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=size) as pilot:
        await open_run(pilot, recorded(name, tmp_path))

        compare(f"run-{name}-{size[0]}x{size[1]}", text_of(picture(app)))


@pytest.mark.parametrize("colours", COLOURS)
@pytest.mark.first(2)
async def test_the_words_are_the_same_in_every_depth_of_colour(
    tmp_path: Path, colours: str
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        await open_run(pilot, recorded("tour", tmp_path))
        shown = picture(app, colours=colours)

        compare("run-tour-120x40", text_of(shown))
        used = {cell.fg for row in shown.buffer.values() for cell in row.values()}
        assert (used == {"default"}) is (colours == "none")


def figures(root: Path) -> Path:
    """Make a run that shows what can be shown besides curves, over steps up to a thousand."""
    began = {"worker 0": 0.0, "worker 1": 0.01}
    loads = [
        SpanShown(lane=lane, began=at, ended=at + 0.04, name="loads", arm="2 workers")
        for lane, at in began.items()
    ]
    return make_run(
        root,
        started(scenario="shown", topic="mine"),
        AxesNamed(metric="backward_ms", x="rows", log="xy"),
        *(
            Logged(s=rows, v={"backward_ms": rows**2 / 1e3}, a="index")
            for rows in (1, 10, 100, 1000)
        ),
        BarsShown(title="largest logit", names=["float32", "float16"], values=[88.72, 11.0859]),
        TableShown(
            title="calls",
            head=["call", "raises"],
            rows=[["a + b", "sizes 2 and 4 must match"], ["x @ y", ""]],
        ),
        *loads,
        SpanShown(lane="loop", began=0.04, ended=0.05, name="trains", arm="2 workers"),
        StateChanged(state="succeeded"),
    )


@pytest.mark.parametrize("size", SIZES[1:3], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_figures_stand_beside_the_first_chart(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=size) as pilot:
        await open_run(pilot, figures(tmp_path))

        compare(f"run-figures-{size[0]}x{size[1]}", text_of(picture(app)))


async def test_a_logarithmic_x_axis_is_changed_by_a_key_and_its_cursor_stays_at_its_point(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        await open_run(pilot, figures(tmp_path))
        chart = app.screen.query(ChartPane).first().chart
        await pilot.press("left", "left")

        assert (chart.is_log_x, chart.cursor) == (True, 2.0)
        await pilot.press("L")
        assert (chart.is_log_x, chart.cursor) == (False, 100)
        await pilot.press("t", "L")
        assert not chart.is_log_x


async def test_without_utf8_everything_is_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        await open_run(pilot, recorded("tour", tmp_path))
        drawn = text_of(picture(app, is_utf8=False))

        assert drawn.isascii()
        compare("run-tour-120x40-ascii", drawn)


async def test_a_claim_in_wide_characters_stands_beside_its_mark_at_every_width(
    tmp_path: Path,
) -> None:
    claim = "随机数 稳定写法与参照写法相差不超过百万分之一"
    async with opened(app_on(tmp_path), size=(60, 20)) as pilot:
        await open_run(pilot, finished(tmp_path, {claim: "SUPPORTED"}))

        assert f"│ ✓ {claim} " in text(pilot)
        await pilot.resize_terminal(40, 20)
        await settle(pilot)
        assert f"│ ✓ {claim[:16]}" in text(pilot)
        assert f"│   {claim[16:]} " in text(pilot)


async def test_an_earlier_run_of_a_claim_is_told_below_its_verdict(tmp_path: Path) -> None:
    judged(tmp_path, 1, "INCONCLUSIVE")
    run_dir = judged(tmp_path, 2)
    async with opened(app_on(tmp_path), size=(200, 50)) as pilot:
        await open_run(pilot, run_dir)

        assert "2nd run of this claim on this machine; the other:" in text(pilot)


async def test_one_cursor_moves_over_all_charts(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        await pilot.press("left", "left", "left")
        await pilot.pause()
        charts = [pane.chart for pane in page.query(ChartPane)]

        assert len(charts) > 2
        assert [chart.key for chart in charts if chart.cursor is None] == []


async def test_along_time_the_cursor_is_at_one_moment_in_all_charts(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        await pilot.press("left", "left", "left", "t")
        await pilot.pause()
        places = {pane.chart.cursor for pane in page.query(ChartPane)}

        assert len(places) == 1 and None not in places


async def test_looked_at_closely_every_chart_keeps_the_cursor_in_view(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("crash-in-the-third-repeat", tmp_path))
        await pilot.press("plus", "plus", "plus", *["left"] * 9)
        await pilot.pause()
        memory = next(pane.chart for pane in page.query(ChartPane) if pane.chart.key == "memory")
        low, high = page.views.view.windows["memory"]

        assert memory.cursor is not None and low <= memory.cursor <= high


async def test_each_chart_is_drawn_once_for_a_record_and_once_for_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(tmp_path)
    run_dir = make_run(
        tmp_path, started(is_alive=True), StateChanged(state="running"), at_s=time.time()
    )
    journal = Writer(run_dir / "journal" / "worker-0.jsonl")
    for step in range(30):
        journal.append(Logged(s=step, v={"loss": 1.0 / (step + 1), "x": float(step)}))
    drawn: list[str] = []

    def draw_and_note(chart: LineChart, width: int, height: int, symbols: Symbols) -> Picture:
        drawn.append(chart.title)
        return draw(chart, width, height, symbols)

    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, run_dir)
        monkeypatch.setattr("tuilab.tui.widgets.chart.draw", draw_and_note)
        counts = {}
        journal.append(Logged(s=30, v={"loss": 0.01, "x": 30.0}))
        await eventually(
            pilot,
            lambda: page.source.summary.series["loss", "", "worker-0"].count == 31,
            "the last record",
        )
        counts["a record"], drawn[:] = sorted(drawn), []
        for press in ("left", "left", "plus", "o", "t"):
            await pilot.press(press)
            await pilot.pause()
            counts[press], drawn[:] = sorted(drawn), []

    both = ["loss", "x"]
    every = ["loss", "memory", "x"]
    assert counts == {"a record": both, "left": every, "plus": every, "o": both, "t": both}


async def test_n_goes_to_the_first_value_that_is_no_number(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("not-a-number", tmp_path))
        await pilot.press("n")
        await pilot.pause()

        assert 7.0 in [
            pane.chart.cursor for pane in page.query(ChartPane)
        ]  # 2 squared seven times is more than a float32


@pytest.mark.parametrize("key", ["tab", *slow_cases("shift+tab")])
async def test_zoomed_each_pane_is_reached_in_turn(tmp_path: Path, key: str) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, recorded("not-a-number", tmp_path))
        await pilot.press("tab", "z")
        panes = {pane for pane in page.query(Pane) if pane.can_focus}
        shown = []
        for _ in panes:
            await pilot.press(key)
            await pilot.pause()
            shown.append(page.maximized)

        assert len(panes) > 3 and set(shown) == panes


async def test_z_fills_the_screen_with_a_pane_and_gives_it_back(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        await pilot.press("tab", "z")
        await pilot.pause()
        whole = page.maximized
        await pilot.press("z")
        await pilot.pause()

        assert whole is not None
        assert page.maximized is None


async def test_a_run_that_is_over_is_played_again(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        whole = page.source.summary.records
        await pilot.press("space")
        await eventually(pilot, lambda: page.source.is_caught_up, "the end of the record")
        await pilot.press("space")  # pause
        first = page.source.summary.records
        await pilot.press("full_stop", "full_stop", "full_stop", "full_stop", "full_stop")
        middle = page.source.summary.records
        for _ in range(25):
            await pilot.press("full_stop")
        at_end = page.source.is_over, page.source.state

        assert first < middle < whole
        assert at_end == (True, "succeeded")


async def test_a_run_whose_supervisor_is_gone_is_said_to_be_lost(tmp_path: Path) -> None:
    run_dir = store.create("alone", tmp_path)
    with subprocess.Popen(["sleep", "60"]) as child:
        gone = presence.identify(child.pid)
        child.kill()
    assert gone is not None
    writer = Writer(run_dir / "journal" / "supervisor.jsonl")
    writer.append(
        RunStarted(
            format=1, run=run_dir.name, scenario="alone", topic="mine", title="", source_sha256="", params={}, supervisor=gone,
            tuilab="0", wall_ns=time.time_ns(),
        )
    )  # fmt: skip
    writer.append(StateChanged(state="running"))
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, run_dir)

        assert page.source.state == "lost"
        assert "mine/alone" in text(pilot).splitlines()[0]
        assert "! lost" in text(pilot).splitlines()[0]


async def test_again_is_the_form_of_the_file_that_was_run_where_it_is_in_no_folder(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "own", fast=FAST) / "mine" / "fast.py"
    about: dict[str, Any] = {
        "topic": "mine",
        "params": {"rows": 5},
        "changed": ["rows"],
        "argv": ["run", str(file)],
    }
    run_dir = finished(tmp_path / "runs", {"a": "SUPPORTED"}, name="fast", **about)
    app = app_on(tmp_path / "runs")
    async with opened(app, size=(120, 40)) as pilot:
        await open_run(pilot, run_dir)
        assert "1 try next" in text(pilot)
        await press(pilot, "a")
        lab = app.screen
        assert isinstance(lab, LabPage)
        assert lab.scenario is not None and lab.scenario.path == str(file)
        assert lab.command().startswith(f"tuilab run {file} --rows 5")
        file.unlink()
        await open_run(pilot, run_dir)
        app.desk.__dict__.pop("scenarios")
        await press(pilot, "a")
        assert app.screen is not lab
        assert app.said[-1].startswith(
            f"the file of fast is no longer here; where the file exists, use: tuilab run {file} --rows"
        )


async def test_a_run_that_somebody_deleted_is_told_once_and_has_no_output(tmp_path: Path) -> None:
    run_dir = finished(tmp_path / "runs", {"a": "SUPPORTED"})
    async with opened(app_on(tmp_path / "runs"), size=(80, 24)) as pilot:
        page = await open_run(pilot, run_dir)
        run_dir.rename(tmp_path / "gone")
        for _ in range(2):
            page.action_play("speed_up", 1.0)  # which looks at the run again
        assert said(pilot) == ["this run was deleted; the screen shows what was read before"]
        await press(pilot, "v")
        assert len(said(pilot)) == 1  # it stands there yet, and no pager was opened


async def test_a_run_that_is_deleted_while_it_goes_on_is_shown_so_and_cannot_be_stopped(
    root: Path,
) -> None:
    run_dir = make_run(root, started(is_alive=True), StateChanged(state="running"))
    async with opened(app_on(root), size=(80, 24)) as pilot:
        page = await open_run(pilot, run_dir)
        before = text(pilot)
        shutil.rmtree(run_dir)
        page.turn()
        after = await shown(pilot, "! deleted")
        await press(pilot, "s")

        assert "● running" in before and "s stop" in before
        assert "running" not in after and "s stop" not in after
        assert said(pilot)[-1] == "this run is not running: deleted"


async def test_what_is_told_stands_in_one_line_above_the_keys_and_goes_with_its_screen(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path / "runs")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        for number in range(5):
            app.tell(f"sentence {number}", is_problem=False)
            await pilot.pause()
        lines = text(pilot).split("\n")
        assert ["sentence 4" in line for line in lines if "sentence" in line] == [True]
        assert "sentence 4" in lines[-2] and "│" not in lines[-2]
        await press(pilot, "h")
        assert "sentence" not in text(pilot)


async def test_history_and_queue_are_reached_from_a_run_by_the_keys_of_the_lab(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, finished(tmp_path, {"a": "SUPPORTED"}))
        for key, place in (("h", "history"), ("Q", "queue")):
            await press(pilot, key)
            assert getattr(app.screen, "PLACE", "") == place
            await press(pilot, "escape")
            assert app.screen is page


async def test_a_run_with_a_nan_says_so_at_its_head_though_it_succeeded(tmp_path: Path) -> None:
    values = [
        Logged(s=step, v={"grad": value})
        for step, value in enumerate((1.0, float("nan"), float("inf")))
    ]
    run_dir = make_run(tmp_path, started(), *values, StateChanged(state="succeeded"))
    async with opened(app_on(tmp_path), size=(80, 24)) as pilot:
        await open_run(pilot, run_dir)
        assert "✓ succeeded  NaN/Inf in grad" in text(pilot).split("\n")[0]


async def test_what_stands_against_a_claim_comes_first_and_one_without_verdict_says_why(
    tmp_path: Path,
) -> None:
    names = ["holds", "no", "never judged"]
    run_dir = finished(
        tmp_path,
        {"holds": "SUPPORTED", "no": "REFUTED"},
        state="failed",
        claims=names,
        claim_keys=["", "", ""],
    )
    async with opened(app_on(tmp_path), size=(80, 24)) as pilot:
        page = await open_run(pilot, run_dir)
        claims = page.panes.named("claims")
        assert claims is not None
        lines = [line.strip() for line in claims.as_text().splitlines()]

        assert [line for line in lines if line.startswith(("✗", "✓", "…"))] == [
            "✗ no  refuted",
            "✓ holds",
            "… never judged",
        ]
        assert " ".join(lines).endswith("never judged not judged: the run ended early (failed)")


async def test_what_the_lesson_says_to_try_next_is_a_key_away(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        await open_run(pilot, finished(tmp_path, {"a": "SUPPORTED"}))
        shown = text(pilot)
        await pilot.press("1")
        await pilot.pause()
        lab = app.screen

        assert "1 --tied 1000" in shown
        assert "1 try next" in shown
        assert isinstance(lab, LabPage)
        assert lab.draft is not None and lab.draft.given == {"tied": 1000}


async def test_a_drawing_in_the_notes_keeps_its_columns_and_prose_is_wrapped(
    tmp_path: Path,
) -> None:
    drawn = f"worker 0   {'#' * 90}\nworker 1   {'T' * 90}"
    prose = "a sentence that is longer than a pane on a small screen, and so goes on below itself"
    run_dir = make_run(
        tmp_path,
        started(),
        TextShown(title="", text=drawn),
        TextShown(title="two", text=prose),
        StateChanged(state="succeeded"),
    )
    async with opened(app_on(tmp_path), size=(80, 24)) as pilot:
        page = await open_run(pilot, run_dir)
        notes = page.panes.named("notes")
        assert notes is not None
        notes.focus()
        lines = [
            line.strip("│ ")
            for line in text(pilot).splitlines()
            if "worker" in line or "###" in line or "TTT" in line
        ]

        assert [line.split()[:2] for line in lines] == [["worker", "0"], ["worker", "1"]]
        assert all("…" in line for line in lines)


async def test_what_the_run_had_already_is_not_offered_to_be_tried(tmp_path: Path) -> None:
    async with opened(app_on(tmp_path), size=(120, 40)) as pilot:
        await open_run(
            pilot, finished(tmp_path, {"a": "SUPPORTED"}, params={"tied": 1000}, changed=["tied"])
        )

        assert "1 --tied 1000" not in text(pilot) and "--tied 1000" in text(pilot)


async def test_the_lab_behind_the_run_that_is_shown_first_is_at_its_scenario(
    tmp_path: Path,
) -> None:
    desk = NotingDesk(tmp_path, [], Settings(scenario="xyy", has_seen_hint=True))
    async with opened(ShownApp(desk, finished(tmp_path, {"a": "SUPPORTED"})), "escape") as pilot:
        assert isinstance(pilot.app.screen, LabPage)
        assert pilot.app.screen.scenario is not None and pilot.app.screen.scenario.id == "softmax"


async def test_the_pane_that_had_the_focus_and_its_zoom_are_kept_until_reset(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        page.panes.every[3].focus()
        await pilot.press("z", "o")
        await pilot.pause()
        first = app.desk.settings.pane, app.desk.settings.is_zoomed, app.desk.settings.is_smooth
    again = app_on(tmp_path, app.desk.settings)
    async with opened(again, size=(120, 40)) as pilot:
        page = await open_run(pilot, next(tmp_path.glob("*-tour-*")))
        await pilot.pause()
        second = page.maximized, page.views.view.is_smooth
        await pilot.press("0")
        await pilot.pause()

        assert first == ("claims", True, True)
        assert second == (page.panes.named("claims"), True)
        assert page.maximized is None
        assert again.desk.settings.pane == ""


@pytest.mark.parametrize("is_top", [True, False])
async def test_a_run_opens_at_its_top_whatever_pane_had_the_focus_in_another(
    tmp_path: Path, *, is_top: bool
) -> None:
    run = recorded("tour", tmp_path)
    async with opened(app_on(tmp_path), size=(80, 24)) as pilot:
        panes = (await open_run(pilot, run)).panes
        names = [panes.name_of(pane) for pane in panes.every]
    settings = Settings(pane=names[0 if is_top else -1], has_seen_hint=True)
    async with opened(app_on(tmp_path, settings), size=(80, 24)) as pilot:
        page = await open_run(pilot, run)
        await pilot.pause()

        assert page.panes.max_scroll_y > 0 and page.panes.scroll_y == 0
        assert page.focused is (page.panes.every[0] if is_top else None)


async def test_tab_goes_from_pane_to_pane_while_one_fills_the_screen_and_escape_gives_it_back(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(80, 24)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        await pilot.press("tab", "z", "tab")
        await pilot.pause()
        shown = text(pilot).splitlines()
        second = page.maximized
        await pilot.press("escape")
        await pilot.pause()

        assert second is page.panes.every[1]
        assert "journals/tour" in shown[0] and "esc back" in shown[-1]
        assert page.maximized is None
        assert app.screen is page


async def test_the_stage_of_the_moment_under_the_cursor_is_marked(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with opened(app, size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("tour", tmp_path))
        await pilot.press("left")
        await pilot.pause()
        t = page.views.view.cursor_t
        stages = page.source.summary.stages

        assert t is not None
        output = page.panes.named("output")
        assert isinstance(output, OutputPane)
        assert output.stage_at_cursor == max(
            number for number, stage in enumerate(stages) if stage.t <= t
        )


async def test_the_keys_of_a_run_that_goes_on_are_others_than_of_one_that_is_over(
    tmp_path: Path,
) -> None:
    app = app_on(tmp_path)
    over = finished(tmp_path, {"a": "SUPPORTED"}, name="nobody", end="aaaaaa")
    going = make_run(
        tmp_path,
        started(is_alive=True),
        StateChanged(state="running"),
        at_s=time.time(),
        end="bbbbbb",
    )
    async with opened(app, size=(120, 40)) as pilot:
        told = []
        for run_dir in (over, going):
            await open_run(pilot, run_dir)
            await settle(pilot)
            told.append(text(pilot).splitlines()[-1].strip())
            await pilot.press("escape")

        assert told[0].startswith("a rerun  space replay  e report")
        assert told[1].startswith("s stop  space freeze  z zoom")


async def test_a_run_that_went_to_the_cpu_though_there_is_a_gpu_says_so_on_its_first_line(
    tmp_path: Path,
) -> None:
    notice = "this ran on the CPU, although the machine has a GPU"
    facts = {
        "wanted": "auto",
        "chosen": "cpu",
        "why": "torch cannot use the GPU",
        "notice": f"{notice}: torch is a build",
    }
    make_run(
        tmp_path,
        started(),
        EnvironmentRecorded(part="device", facts=facts),
        StateChanged(state="succeeded"),
    )

    async with opened(tmp_path, "h", "enter", size=(140, 40)) as pilot:
        assert notice in text(pilot)


async def test_an_error_of_a_gpu_is_a_notice_on_the_run(tmp_path: Path) -> None:
    gpu = GpuFound(uuid="GPU-a", index=1, name="H100")
    run_dir = make_run(
        tmp_path, started(), gpu, XidReported(uuid="GPU-a", xid=31), StateChanged(state="failed")
    )
    notice = "GPU 1 reported Xid 31 (a kernel used an invalid memory address)"
    subject = read_subject(run_dir)

    async with opened(tmp_path, "h", "enter", size=(140, 40)) as pilot:
        assert notice in text(pilot)
    style = Style()
    assert f"notice: {notice}" in render(
        subject.summary, subject.state, run_dir, style, 100, has_chart=False
    )
    assert f"{notice}." in gaps(subject)


GIVEN = EnvironmentRecorded(
    part="cuda", facts={"devices": [{"uuid": "u0"}, {"uuid": "u1"}], "chosen": "u1"}
)
TWO_GPUS = [GpuFound(uuid=f"GPU-u{n}", index=n, name="H100", bytes_total=80 << 30) for n in (0, 1)]


def sampled(**gpus: dict[str, float]) -> Sampled:
    readings = {f"GPU-{name}": values for name, values in gpus.items()}
    return Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=1 << 30, gpus=readings)


def busy_gpu() -> list[Any]:
    """Return half a minute of a GPU that is held down for ten seconds, with somebody else on it."""
    alice = GpuShared(uuid="GPU-u1", others=[Tenant(4711, "alice", "", 3 << 30)], count=1)
    readings = []
    for second in range(31):
        hot = 10 <= second < 20
        values = {
            "busy_percent": 97.0,
            "power_w": 20.0 * second,
            "sm_mhz": 1410.0 if hot else 1980.0,
        }
        reading = sampled(
            u1={**values, "temperature_c": 40.0 + second, "throttle_mask": 0x20 if hot else 0x1}
        )
        reading.gpus_asked = {"GPU-u1": time.monotonic_ns() + second * 10**9}
        readings.append(reading)
    return [*TWO_GPUS, GIVEN, alice, *readings, StateChanged(state="succeeded")]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_a_gpu_of_the_run_has_a_pane_with_what_it_did_what_held_it_and_who_else_was_there(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    make_run(tmp_path, started(), *busy_gpu())

    async with opened(tmp_path, "h", "enter", size=size) as pilot:
        shown = text(pilot)
        await pilot.press("tab", "z")
        await pilot.pause()
        zoomed = text(pilot)

    for word in (
        "GPU 1 H100",
        "busy",
        "97 %",
        "power",
        "600 W",
        "clock",
        "1980 MHz",
        "heat",
        "70 °C",
        "held",
        "██",
        "others",
    ):
        assert word in shown
    assert "throttled: software thermal slowdown 10 s" in zoomed
    assert "others alice (pid 4711) 3 GiB" in zoomed and "others on GPU 1: alice" in shown


async def test_a_gpu_that_is_lost_is_told_first_of_all_on_a_small_screen_too(
    tmp_path: Path,
) -> None:
    notice = EnvironmentRecorded(
        part="device",
        facts={"wanted": "auto", "chosen": "cuda:1", "notice": "passed over: " + "x" * 80},
    )
    lost = [
        XidReported(uuid="GPU-u1", xid=79),
        Unavailable(what="GPU-u1", reason="GPU is lost after Xid 79"),
    ]
    *before, end = busy_gpu()
    make_run(tmp_path, started(), notice, *before, *lost, end)

    async with opened(tmp_path, "h", "enter", size=(80, 24)) as pilot:
        shown = text(pilot)

    assert "GPU 1 reported Xid 79" in shown.splitlines()[0]
    assert "lost   GPU is lost" in shown and "GPU 1 reported Xid 79 (the GPU has" in shown


async def test_a_gpu_that_is_not_the_runs_has_no_pane(tmp_path: Path) -> None:
    make_run(tmp_path, started(), *(record for record in busy_gpu() if record is not GIVEN))

    async with opened(tmp_path, "h", "enter", size=(80, 24)) as pilot:
        assert "1980 MHz" not in text(pilot) and "  2 other GPUs: d ─" in text(pilot)


async def test_memory_is_that_of_the_gpu_of_the_run_and_a_key_adds_the_others(
    tmp_path: Path,
) -> None:
    readings = sampled(
        u0={"memory_used_bytes": float(70 << 30)}, u1={"memory_used_bytes": float(3 << 30)}
    )
    held = GpuHeld(uuid="u1", allocated_bytes=1 << 30, reserved_bytes=2 << 30)
    make_run(tmp_path, started(), *TWO_GPUS, GIVEN, readings, held, StateChanged(state="succeeded"))

    async with opened(tmp_path, "h", "enter", size=(160, 40)) as pilot:
        own = text(pilot)
        await pilot.press("d")
        await pilot.pause()
        every = text(pilot)

    assert (
        "memory, GPU 1 ─" in own
        and "A device 3 GiB      B reserved 2 GiB      C allocated 1 GiB" in own
    )
    assert "D processes 1 GiB" in own and "peak of device 3 GiB" in own
    assert "1 other GPU: d" in own and "d all GPUs" in own
    assert "70 GiB" not in own and "GPU 0 device 70 GiB" in every
