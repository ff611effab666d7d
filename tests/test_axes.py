"""What a scenario says of the axes of a chart, and values that stand between steps: on the screen, as text, in a report."""

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from tuilab.drawings.axis import x_axis
from tuilab.drawings.linechart import LineChart, draw
from tuilab.drawings.lines import lines_of, step_at
from tuilab.drawings.symbols import ASCII
from tuilab.drawings.text_chart import line_chart
from tuilab.record.events import AxesNamed, Logged
from tuilab.record.folding.fold import fold
from tuilab.record.series import Series, is_log_x, is_log_y
from tuilab.reports.charts import geometry
from tuilab.reports.charts.panels import panel_of, series_panels
from tuilab.tui.state.run_source import cut

ROWS = AxesNamed(metric="backward_ms", x="rows", y="backward", log="xy")


def placed(points: Sequence[tuple[float, float]], name: str = "backward_ms") -> Series:
    series = Series(name)
    for second, (x, value) in enumerate(points):
        series.add(x, second, value)
    return series


SQUARES = placed([(rows, rows**2 / 1000) for rows in (1, 10, 100, 1000)])


def chart_of(series: Series, axes: AxesNamed, **known: object) -> LineChart:
    is_along_log = is_log_x(axes, [series])
    lines = lines_of([series], is_log_x=is_along_log)
    chart = LineChart(
        lines,
        title=axes.y,
        is_log=is_log_y(axes, [series]),
        is_over=True,
        is_log_x=is_along_log,
        x_name=axes.x,
    )
    return replace(chart, **known)  # type: ignore[arg-type]


def test_a_power_law_is_a_straight_line_where_both_axes_are_logarithmic() -> None:
    assert draw(chart_of(SQUARES, ROWS), 40, 9, ASCII).text == STRAIGHT.strip("\n")


STRAIGHT = """
backward, log xy  1000
   1000+.   .   .   .   .   .   .  ..--*
       |                      ..--'
       |                ..--'*
      1+.   .   . *.--''.   .   .   .
       |     .--''
  0.001+*--''
       ++--------------------+----------
rows    1                   100
"""


def test_the_cursor_and_what_is_no_number_are_told_by_the_step_and_not_by_its_logarithm() -> None:
    broken = placed([(1, 1.0), (1000, math.nan), (2000, 2.0)])
    shown = draw(chart_of(broken, ROWS, cursor=math.log10(2000)), 60, 9).text

    assert "NaN ×1 from 1000" in shown
    assert shown.splitlines()[-1].split()[-1] == "2000"


def test_what_has_no_logarithm_along_x_is_left_out_and_counted() -> None:
    from_zero = placed([(0, 1.0), (0.5, math.inf), (1, 1.0), (10, 2.0)])

    assert "1 at x not above 0" in draw(chart_of(from_zero, ROWS), 60, 9).text
    assert not is_log_x(ROWS, [placed([(0, 1.0), (-1, 2.0)])])


def test_places_between_whole_numbers_have_ticks_there_and_steps_have_none() -> None:
    sweep = AxesNamed(metric="total", x="logit")
    between = draw(
        chart_of(placed([(0.25 * at, at) for at in range(5)]), sweep), 60, 9
    ).text.splitlines()
    steps = draw(chart_of(placed([(at, at) for at in range(2)]), sweep), 60, 9).text.splitlines()

    assert between[-1].split() == ["logit", "0", "0.25", "0.5", "0.75", "1"]
    assert steps[-1].split() == ["logit", "0", "1"]


def test_a_name_that_is_long_leaves_more_than_half_of_the_width_to_the_first_ticks() -> None:
    shown = draw(
        chart_of(SQUARES, AxesNamed(metric="m", x="the number of rows that are added up", log="x")),
        40,
        9,
        ASCII,
    ).text

    assert shown.splitlines()[-1] == "        1        10     the number of r~"


def test_a_logarithmic_axis_tells_the_steps_that_its_ticks_stand_for() -> None:
    assert [label for _, label in x_axis(0, 6, "", 8, is_log=True).ticks] == [
        "1",
        "10",
        "100",
        "1k",
        "10k",
        "100k",
        "1M",
    ]
    assert [label for _, label in x_axis(-3, -2, "", 2, is_log=True).ticks] == ["0.001", "0.01"]
    near = x_axis(math.log10(23), math.log10(41), "", 4, is_log=True)
    assert [label for _, label in near.ticks] == ["25", "30", "35", "40"]
    assert [step_at(math.log10(step), is_log_x=True) for step in (1, 7, 1_234_567, 10**12)] == [
        1,
        7,
        1_234_567,
        10**12,
    ]


def test_an_axis_is_as_the_scenario_said_or_as_the_values_suggest() -> None:
    far, near = placed([(1, 1.0), (2, 1000.0)], "m"), placed([(1, 1.0), (2, 2.0)], "m")

    assert [is_log_y(AxesNamed(metric="m"), [one]) for one in (far, near)] == [True, False]
    assert [is_log_y(AxesNamed(metric="m", log="x"), [one]) for one in (far, near)] == [
        False,
        False,
    ]
    assert [is_log_y(AxesNamed(metric="m", log="y"), [one]) for one in (far, near)] == [True, True]


def test_the_chart_of_a_result_has_the_same_axes() -> None:
    text = line_chart([SQUARES], 60, 10, axes=ROWS)
    head, *_, ticks, name = text.splitlines()

    assert head.startswith("backward (log)")
    assert ticks.split() == ["1", "10", "100", "1000"]
    assert name == name.rjust(60) and name.strip() == "rows (log)"


def test_less_than_a_power_of_ten_has_ticks_too() -> None:
    close = placed([(125, 1.0), (250, 2.0), (1000, 8.0)])

    assert line_chart([close], 60, 10, axes=ROWS).splitlines()[-2].split() == ["200", "500", "1000"]


def test_the_chart_of_a_result_draws_a_sweep_with_its_gaps_and_leaves_out_what_has_no_logarithm() -> (
    None
):
    sweep = placed([(0.5, 0.0), (0.75, math.nan), (1.0, 2.0), (1.25, 3.0)], "total")
    rows = line_chart(
        [sweep], 60, 10, axes=AxesNamed(metric="total", x="logit", log="y")
    ).splitlines()

    assert rows[-2].strip() == "logit"
    assert rows[-1].split() == ["n", "NaN"]
    assert rows[-3].split() == ["0.6", "0.8", "1", "1.2"]
    assert line_chart([sweep], 60, 10, axes=AxesNamed(metric="total", log="xy"))


def test_narrow_text_chart_is_the_same_in_every_process() -> None:
    script = (
        "from tests.test_axes import placed\n"
        "from tuilab.drawings.text_chart import line_chart\n"
        "series = placed([(step * 1000, 10.0 ** (step % 9)) for step in range(40)])\n"
        "for width in (20, 24, 40):\n"
        "    print(line_chart([series], width, 8))\n"
    )

    charts = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        charts.add(subprocess.check_output([sys.executable, "-c", script], env=environment))

    assert len(charts) == 1


def test_a_report_draws_the_same_axes_and_keeps_the_steps_as_they_are() -> None:
    chart = geometry.draw_chart(panel_of(ROWS, [SQUARES], [""]))

    assert (chart.title, chart.about) == ("backward", "ms, logarithmic, over rows, logarithmic")
    assert [tick.label for tick in chart.x_ticks] == ["1", "10", "100", "1k"]
    assert (chart.x_name, chart.is_log_x, chart.low_x, chart.high_x) == ("rows", True, 0.0, 3.0)
    (curve,) = chart.curves
    assert curve.xs == "1 10 100 1000"
    assert curve.path == f"M{chart.left} {chart.bottom}L246.7 146L431.3 84L616 {chart.top}"


def test_a_run_knows_the_axes_of_its_metrics_and_a_replay_the_places_of_its_points() -> None:
    points = [Logged(n=at, t=at, s=at, x=at + 0.5, v={"backward_ms": 1.0}) for at in range(3)]
    summary = fold([("worker-0", ROWS), *(("worker-0", point) for point in points)])
    (series,) = summary.series.values()

    assert summary.axes_of("backward_ms") == ROWS
    assert summary.axes_of("loss") == AxesNamed(metric="loss")
    assert [panel.x_name for panel in series_panels(summary)] == ["rows"]
    assert series.steps == [0.5, 1.5, 2.5]
    assert cut(series, 1).last_step == 1.5
