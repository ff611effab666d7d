"""The widgets in a running app: what keys do through the screen, and how little is painted again."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widget import Widget

from tests.drawing_aids import SECOND, drawn_text, series
from tuilab.drawings.linechart import Guide, LineChart, draw
from tuilab.drawings.picture import Picture
from tuilab.drawings.spreads import MeasuredSpread, draw_spreads
from tuilab.drawings.symbols import ALL, BRAILLE, Symbols
from tuilab.record.series import Series
from tuilab.text.words import format_number
from tuilab.tui.looks import themes
from tuilab.tui.state.other_runs.overlays import OverlaidCurve
from tuilab.tui.state.view import View
from tuilab.tui.terminal.frames import Frames
from tuilab.tui.terminal.textual_parts import rendered
from tuilab.tui.widgets.chart import Chart, Curves
from tuilab.tui.widgets.drawing import Drawing

LOSSES = [2 * math.exp(-step / 8) + 0.5 for step in range(40)]


class Showing(App[None]):
    """One chart and one drawing; it keeps the view, as a screen does."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols = BRAILLE
        self.view = View()
        self.clicked: list[int] = []
        for theme in themes.OURS:
            self.register_theme(theme)

    def compose(self) -> ComposeResult:
        yield Chart(name="the chart")
        yield Drawing()

    def on_chart_clicked(self, event: Chart.Clicked) -> None:
        self.clicked.append(event.spot.t)

    def show(self, *found: Series, **known: Any) -> None:
        """Show series, and what is known of them."""
        self.curves = Curves(found, **known)
        self.look(self.view)

    def look(self, view: View) -> None:
        """Look at what is shown in another way."""
        self.view = view
        self.chart.show_curves(self.curves, view)

    def move(self, columns: int) -> None:
        """Move the cursor."""
        spot = self.chart.spot_beside(columns)
        assert spot is not None
        self.look(self.view.with_cursor("the chart", spot))

    def zoom(self, factor: float) -> None:
        self.look(self.view.with_windows({"the chart": self.chart.zoomed(factor)}))

    @property
    def window(self) -> tuple[float, float] | None:
        return self.view.windows.get("the chart")

    @property
    def chart(self) -> Chart:
        return self.query_one(Chart)

    @property
    def lines(self) -> list[list[Segment]]:
        return rendered(self.screen)


def drive(
    body: Callable[[Showing, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (80, 40)
) -> Showing:
    async def run() -> Showing:
        app = Showing()
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await body(app, pilot)
        return app

    return asyncio.run(run())


def test_a_chart_shows_series_and_then_only_what_is_new() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        loss = series(LOSSES)
        frames = Frames(ColorSystem.TRUECOLOR)
        app.show(loss, title="loss", x_end=100)
        await pilot.pause()
        first = frames.difference(app.lines)
        app.show(loss, title="loss", x_end=100)
        await pilot.pause()
        same = frames.difference(app.lines)
        loss.add(40, 40 * SECOND, 0.51)
        app.show(loss, title="loss", x_end=100)
        await pilot.pause()
        more = frames.difference(app.lines)

        assert "loss" in drawn_text(app.chart)
        assert len(first) > 2000
        assert same == ""
        assert 0 < len(more) < 300

    drive(body)


def test_only_changed_rows_are_painted_again() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        loss = series(LOSSES)
        app.show(loss, x_end=100)
        await pilot.pause()
        painted: list[int] = []
        paint = app.chart.render_line
        app.chart.render_line = lambda y: painted.append(y) or paint(y)  # type: ignore[method-assign,func-returns-value]
        loss.add(40, 40 * SECOND, 0.51)
        app.show(loss, x_end=100)
        await pilot.pause()

        assert 0 < len(set(painted)) <= 4

    drive(body)


def test_rows_are_rendered_as_textual_would() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        def are_alike() -> bool:
            crops = app.chart.outer_size.region, Region(3, 2, 40, 5)
            return all([*map(list, app.chart.render_lines(crop))] == [*map(list, Widget.render_lines(app.chart, crop))]
                       for crop in crops)  # fmt: skip

        loss = series(LOSSES)
        app.show(loss, title="模型")
        await pilot.pause()
        assert are_alike()
        loss.add(40, 40 * SECOND, 0.51)
        app.show(loss, title="模型")
        assert are_alike()
        app.theme = themes.OURS[1].name
        await pilot.pause()
        assert are_alike()
        app.chart.styles.border = ("round", "red")
        await pilot.pause()
        assert are_alike()
        assert app.chart.render_lines(app.chart.outer_size.region)[0].text.startswith("╭")
        app.chart.styles.border = None
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert are_alike()

    drive(body)


def test_the_cursor_stands_on_points() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series(LOSSES), x_end=40)
        app.move(-1)
        assert (app.chart.cursor, app.view.cursor_t) == (39.0, 39 * SECOND)
        app.move(-10)
        place = app.chart.cursor

        assert place is not None and place == int(place)
        assert 30 <= place < 39
        assert app.view.cursor_t == int(place) * SECOND

    drive(body)


def test_the_cursor_is_a_moment_whatever_the_axis() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series(LOSSES))
        app.look(View(cursor_t=7 * SECOND + 1))
        assert app.chart.cursor == 7.0
        app.look(View(cursor_t=7 * SECOND, is_timed=True))
        assert app.chart.cursor == 7.0

    drive(body)


def test_a_chart_without_steps_is_always_along_time() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        memory = series(LOSSES)
        memory.steps = [0] * 40
        app.show(memory, has_steps=False)
        app.look(View(cursor_t=7 * SECOND))

        assert app.chart.is_timed
        assert app.chart.cursor == 7.0

    drive(body)


def test_where_steps_are_counted_again_the_cursor_stays_on_the_step_that_it_was_moved_to() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        again = series([1.0] * 30)
        again.steps = [*range(10), *range(100, 110), *range(10)]
        app.show(again)
        app.look(View(cursor_t=16 * SECOND))
        assert app.chart.cursor == 106.0
        app.move(-1)

        assert app.chart.cursor == 104.0

    drive(body)


def test_runs_that_began_at_different_times_are_laid_over_each_other() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        late = series(LOSSES)
        late.times = [t + 9000 * SECOND for t in late.times]
        app.show(series(LOSSES), late, names=("first run", "second run"), starts=(0, 9000 * SECOND))
        app.look(View(cursor_t=3 * SECOND, is_timed=True))
        await pilot.pause()

        assert drawn_text(app.chart).count(format_number(LOSSES[3], digits=6)) == 2

    drive(body)


@pytest.mark.parametrize("arm", ["second", "second arm with a name of more than thirty letters"])
def test_overlaid_arm_has_the_style_of_its_arm_whatever_its_length(arm: str) -> None:
    own_first = series(LOSSES, "first")
    own_second = series([loss + 1 for loss in LOSSES], arm)
    overlaid = OverlaidCurve("earlier run", series([loss + 2 for loss in LOSSES], arm), 0)

    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(
            own_first,
            own_second,
            names=("first", "second"),
            order=("first", arm),
            overlays=(overlaid,),
        )
        await pilot.pause()
        (line,) = app.chart.overlaid_lines()

        assert line.style == 1

    drive(body)


def test_the_jump_to_what_is_no_number_comes_round() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series([1.0, math.nan, 2.0, math.inf]))
        places = []
        for _ in range(3):
            spot = app.chart.next_bad_spot()
            assert spot is not None
            app.look(app.view.with_cursor("the chart", spot))
            places.append(app.chart.cursor)
        assert places == [1.0, 3.0, 1.0]
        app.show(series([1.0, 2.0]))
        assert app.chart.next_bad_spot() is None

    drive(body)


def test_zoom_goes_to_the_cursor_and_stops_at_the_ends() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series(LOSSES), x_end=40)
        app.look(View(cursor_t=10 * SECOND))
        app.zoom(0.5)
        assert app.window == (5.0, 25.0)
        app.zoom(2.0)
        assert app.window is None
        app.look(View(cursor_t=0))
        app.zoom(0.5)
        assert app.window == (0.0, 20.0)
        for _ in range(50):
            app.zoom(0.5)
        assert app.window == (0.0, 0.004)

    drive(body)


def test_the_cursor_takes_the_window_along() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series([*LOSSES[:39], math.nan]), x_end=40)
        app.look(View(cursor_t=5 * SECOND))
        app.zoom(0.25)

        assert app.chart.next_bad_spot() == (39 * SECOND, (30.0, 40.0))

    drive(body)


def test_the_window_of_another_chart_is_no_reason_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series(LOSSES), title="loss")
        await pilot.pause()
        drawn: list[str] = []

        def draw_and_note(chart: LineChart, width: int, height: int, symbols: Symbols) -> Picture:
            drawn.append(chart.title)
            return draw(chart, width, height, symbols)

        monkeypatch.setattr("tuilab.tui.widgets.chart.draw", draw_and_note)
        app.look(app.view.with_windows({"another": (1.0, 2.0)}))
        assert drawn == []
        app.look(app.view.with_windows({"the chart": (1.0, 2.0)}))
        assert drawn == ["loss"]

    drive(body)


def test_a_loss_that_falls_far_is_shown_on_a_logarithmic_axis_and_bytes_are_not() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series([100.0, 1.0]))
        assert app.chart.is_log
        app.look(View(is_log=False))
        assert not app.chart.is_log
        app.look(View())
        app.show(series([100.0, 1.0], name="rss_bytes"), unit="bytes")
        assert not app.chart.is_log

    drive(body)


def test_smoothing_leaves_the_values_in_the_legend() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series([1.0, 9.0, 2.0]), title="loss")
        app.look(View(is_smooth=True))
        await pilot.pause()

        assert drawn_text(app.chart).splitlines()[0].split() == ["loss,", "smoothed", "2"]

    drive(body)


def test_lines_can_be_smoothed_more() -> None:
    saw = [float(step % 20) for step in range(200)]
    shown: list[str] = []

    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series(saw), is_over=True)
        for is_smoother in (False, True):
            app.look(View(is_smooth=True, is_smoother=is_smoother))
            shown.append(drawn_text(app.chart))

    drive(body)

    assert shown[0] != shown[1]
    assert ["smoothed" in text for text in shown] == [True, True]


def test_a_click_puts_the_cursor_on_the_nearest_point() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(series(LOSSES), is_over=True)
        await pilot.pause()
        await pilot.click(Chart, offset=(79, 5))
        await pilot.pause()

        assert app.clicked == [39 * SECOND]

    drive(body)


@pytest.mark.parametrize("theme", themes.NAMES)
def test_every_theme_gives_arms_colours_of_their_own(theme: str) -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        arms = [series([1.0, 2.0], f"arm {number}") for number in range(6)]
        app.show(*arms, title="loss", guides=(Guide(1.5, "limit"),))
        app.theme = theme
        await pilot.pause()
        looks = {segment.text: segment.style or Style() for line in app.lines for segment in line}
        of_arms = [looks[letter] for letter in "ABCDEF"]

        assert len({str(look.color) for look in of_arms}) == 6
        assert all(look.color != look.bgcolor for look in of_arms)
        assert looks["loss"] != looks["1.8"]

    drive(body)


def test_a_new_theme_changes_the_colours_on_the_screen() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.theme = "tuilab-dark"
        app.show(series(LOSSES))
        await pilot.pause()
        dark = {segment.style.color for strip in app.lines for segment in strip if segment.style}
        app.theme = "tuilab-light"
        await pilot.pause()
        light = {segment.style.color for strip in app.lines for segment in strip if segment.style}

        assert not dark & light

    drive(body)


@pytest.mark.parametrize("symbols", ALL, ids=lambda symbols: symbols.name)
def test_every_size_is_drawn_at_once(symbols: Symbols) -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.symbols = symbols
        app.show(series([*LOSSES, math.nan], "模型"), series(LOSSES, "b"), title="loss")
        for size in [(200, 50), (60, 20), (3, 2), (1, 1), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert len(app.lines) == size[1]
            assert {sum(segment.cell_length for segment in line) for line in app.lines} == {size[0]}

        assert "loss" in drawn_text(app.chart)

    drive(body)


def test_a_drawing_is_painted_again_only_for_another_version_or_size() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        spreads = [MeasuredSpread("fp32", 0.012, 0.0115, 0.0125, 0.010, 0.015)]
        sizes: list[tuple[int, int]] = []

        def paint(width: int, height: int, symbols: Symbols, has_colour: bool) -> Picture:
            sizes.append((width, height))
            return draw_spreads(spreads, width, height, symbols, unit="s")

        for version in (1, 1, 2):
            app.query(Drawing).last().show(paint, version)
        await pilot.resize_terminal(60, 20)
        await pilot.pause()

        assert sizes == [(80, 20), (80, 20), (60, 10)]
        assert "12 ms" in drawn_text(app.query(Drawing).last())

    drive(body)


def test_no_points_yet_is_said_until_there_are_some() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        app.show(title="GPU memory", empty="no NVIDIA driver")
        app.look(View(is_log=True, is_smooth=True, cursor_t=1))
        await pilot.pause()

        assert "no NVIDIA driver" in drawn_text(app.chart)
        assert app.chart.cursor is None
        assert (app.chart.spot_beside(1), app.chart.next_bad_spot()) == (None, None)

    drive(body)


class Deaf(Chart):
    """Is never told its size, as happens to widgets that came while the screen scrolled."""

    def on_resize(self, event: events.Resize) -> None:  # type: ignore[override]  # Textual hands over what is asked for
        event.prevent_default()


def test_a_chart_is_drawn_at_its_first_size_though_nobody_told_it() -> None:
    async def body(app: Showing, pilot: Pilot[None]) -> None:
        chart = Deaf()
        chart.show_curves(Curves((series(LOSSES),), title="loss"), View())
        await app.mount(chart)
        await pilot.pause()
        assert app.lines

        assert "loss" in drawn_text(chart)

    drive(body)
