"""The line chart: what it shows, what it keeps, and how little changes when a point comes."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from tests.drawing_aids import SECOND, changed_cells, series
from tuilab.drawings.axis import growing_range, x_axis, y_axis
from tuilab.drawings.linechart import Guide, LineChart, draw, x_at, x_range
from tuilab.drawings.lines import ArrayCache, lines_of, next_bad, next_point, smooth, values_at
from tuilab.drawings.picture import cell_codes
from tuilab.drawings.raster import raster
from tuilab.drawings.symbols import ALL, ASCII, BLOCK, BRAILLE, Symbols
from tuilab.drawings.units import labels
from tuilab.record.series import LIMIT, Series, wants_log_y

DECAY = [2 * math.exp(-step / 8) for step in range(40)]
BROKEN = [
    math.inf if step == 3 else math.nan if step in (20, 21) else 1.2 - step / 40
    for step in range(40)
]

GOLDENS = {
    "braille": """
loss  A fp32 0.0470355  B amp 0.45      NaN/Inf ×3 from 3
           ▲
      2┤⠱⡀  ·   ·   ·   ·   ·   ·   ·  │·   ·   ·   ·   ·
       │ ⠱⡀                            │
       │╌╌⠘⢄╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│╌╌╌╌╌╌╌╌╌╌╌╌ limit ╌
       │⠑⠒⠂ A⢄⣀⡀                       │
      1┤·   · ⠑⢌⠉B⠉⠒⠒⠒⠤⠤⣀⣀⣀ ·   ·   ·  │·   ·   ·   ·   ·
       │        ⠉⠒⠤⣀       ⠉  ⠐⠒⠤⠤⠤⢄⣀⡀ │
       │            ⠉⠒⠤⠤⣀⣀           ⠈⠉⠉⠑B⠢⠤⠤⢄⣀⡀
      0┤                  ⠉⠉⠉⠒⠒⠒⠒⠢⠤⠤A⠤⠤⠤⠤⠤⢄⣀⣀⣀⣀⣈⡁
       └┬───────────────────××───────────────────┬──────────
        0                  20         30        40
""",
    "block": """
loss  A fp32 0.0470355  B amp 0.45      NaN/Inf ×3 from 3
           ▲
      2┤▚   ·   ·   ·   ·   ·   ·   ·  │·   ·   ·   ·   ·
       │ ▚▖                            │
       │╌╌▝▖╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│╌╌╌╌╌╌╌╌╌╌╌╌ limit ╌
       │▀▀▘▝A▄▄▖                       │
      1┤·   ·▝▚▟█B▀▀▀▀▄▄▄▄▄ ·   ·   ·  │·   ·   ·   ·   ·
       │         ▀▄▄       ▀  ▝▀▄▄▄▄▄▄▖│
       │            ▀▀▀▄▄▄▄           ▝▀▀B▀▚▄▄▄▄▖
      0┤                   ▀▀▀▀▀▀▀▀▀A▄▄▄▄▄▄▄▄▄▄▄▖
       └┬───────────────────××───────────────────┬──────────
        0                  20         30        40
""",
    "ascii": """
loss  A fp32 0.0470355  B amp 0.45      NaN/Inf x3 from 3
           ^
      2+'.  .   .   .   .   .   .   .  |.   .   .   .   .
       | '.                            |
       |---'.--------------------------|------------ limit -
       |''- A...                       |
      1+.   . '-|B''---.... .   .   .  |.   .   .   .   .
       |        '--.       '  -----... |
       |            ''--..            '''B---....
      0+                  ''''------A---.........
       ++-------------------xx-------------------+----------
        0                  20         30        40
""",
}


@pytest.mark.parametrize("symbols", ALL, ids=lambda symbols: symbols.name)
def test_a_chart_in_three_sets_of_symbols(symbols: Symbols) -> None:
    lines = lines_of([series(DECAY, "fp32"), series(BROKEN, "amp")])

    picture = draw(
        LineChart(lines, title="loss", x_end=50, guides=(Guide(1.5, "limit"),), cursor=30),
        60,
        12,
        symbols,
    )

    assert picture.text == GOLDENS[symbols.name].strip("\n")


@pytest.mark.parametrize("is_timed", [False, True])
def test_lines_of_series_that_grew_are_those_of_new_ones(is_timed: bool) -> None:
    rng = random.Random(0)
    growing, known = [Series("loss", arm) for arm in "ab"], ArrayCache()
    for _ in range(30):
        for one in growing:
            for _ in range(rng.randrange(600)):
                one.add(
                    one.count,
                    one.count * SECOND,
                    rng.choice([rng.random(), rng.random(), math.nan]),
                )
        grew = lines_of(growing, is_timed=is_timed, array_cache=known)
        new = lines_of(growing, is_timed=is_timed)

        for part in ("xs", "lows", "highs", "breaks", "bad_xs", "bad_values"):
            for one_line, other in zip(grew, new, strict=True):
                np.testing.assert_array_equal(getattr(one_line, part), getattr(other, part))

    assert all(
        one.count - one.bad_count > LIMIT for one in growing
    )  # so that neighbours were merged


def test_lines_of_others_are_dim_behind_and_in_view_and_named_once() -> None:
    own, others = (
        lines_of([series([1.0, 2.0, 3.0])]),
        lines_of([series([50.0] * 9, "before"), series([70.0] * 9, "beside")]),
    )
    found = draw(LineChart(own, title="loss", is_over=True, overlays=others), 60, 12)

    roles = {role for row in found.rows for _, role in row}
    assert found.text.splitlines()[0] == "loss  3          1 before 50         2 beside 70"
    assert "other" in roles and "arm0" in roles
    assert {text for row in found.rows[1:] for text, role in row if role == "muted"} == {
        "1",
        "2",
    }  # where they lie
    assert "8" in found.text.splitlines()[-1]  # the axis reaches as far as they do


def test_another_run_of_two_close_lines_has_no_value_in_the_legend() -> None:
    own = lines_of([series([1.0, 2.0, 3.0])])
    close_lines = lines_of([series([1.52346] * 3, "run 2"), series([1.52357] * 3, "run 2")])

    chart = LineChart(own, title="loss", is_over=True, cursor=1.0, overlays=close_lines)
    legend = draw(chart, 60, 12).text.splitlines()[0]

    assert "run 2" in legend
    assert "1.52" not in legend


@pytest.mark.parametrize(("width", "height"), [(34, 8), (30, 11), (34, 12)])
def test_long_name_is_cut_in_the_legend_of_a_narrow_chart(width: int, height: int) -> None:
    lines = lines_of([series([0.0312] * 3)], ["forward of the long model name"])

    legend = draw(LineChart(lines, unit="seconds"), width, height).text.splitlines()[0]

    assert "…" in legend
    assert "0.0312" in legend
    assert "+1" not in legend


@pytest.mark.parametrize("symbols", ALL, ids=lambda symbols: symbols.name)
@pytest.mark.parametrize("place", [0, 1234, 4095, 9999, 50_000])
def test_one_point_among_many_is_seen(symbols: Symbols, place: int) -> None:
    """A spike is as high as the chart, however many points share its column."""
    values = [0.0] * 60_000
    values[place] = 1.0

    picture = draw(LineChart(lines_of([series(values)])), 80, 20, symbols)

    plot = [row[8:].replace(symbols.grid + "   ", "") for row in picture.text.splitlines()[1:-2]]
    assert all(row.strip() for row in plot)


@pytest.mark.slow
def test_a_point_more_changes_few_cells() -> None:
    """Counted at 120 x 40 over a whole run whose length is not known: what is sent over a slow link follows from this."""
    dice = random.Random(7)
    growing = [Series("loss", "fp32"), Series("loss", "amp")]
    before = None
    changes = []
    for step in range(400):
        for one in growing:
            one.add(step, step, 1 / (1 + step / 50) + dice.gauss(0, 0.01))
        picture = draw(LineChart(lines_of(growing), title="loss"), 120, 40)
        if before is not None:
            changes.append(changed_cells(before, picture))
        before = picture

    assert sorted(changes)[len(changes) // 2] <= 16
    assert sorted(changes)[len(changes) * 9 // 10] <= 36
    assert sum(change > 100 for change in changes) <= 25  # an axis grew


def test_the_x_axis_grows_in_steps() -> None:
    ends = {growing_range(0.0, float(last), 10.0)[1] for last in range(1, 1001)}

    assert sorted(ends) == [10, 15, 25, 40, 60, 100, 150, 250, 400, 600, 1000]
    assert growing_range(0.0, 3.0, 10.0, end=500.0) == (0.0, 500.0)
    assert growing_range(0.0, 700.0, 10.0, end=500.0) == (0.0, 1000.0)


def test_a_run_that_is_over_fills_the_chart() -> None:
    chart = LineChart(lines_of([series(DECAY)]), is_over=True)

    assert x_range(chart) == (0.0, 39.0)


def test_numbers_have_units_that_people_read() -> None:
    assert [label for _, label in y_axis(0, 5 * 2**30, "bytes", 3).ticks] == ["0", "2 GiB", "4 GiB"]
    assert [label for _, label in y_axis(0, 0.0012, "s", 3).ticks] == ["0", "0.5 ms", "1 ms"]
    assert [label for _, label in y_axis(1e-5, 0.3, "", 6, is_log=True).ticks] == [
        "1e-5",
        "1e-4",
        "0.001",
        "0.01",
        "0.1",
    ]


def test_steps_have_short_labels_that_tell_them_apart() -> None:
    assert [label for _, label in x_axis(0, 2000, "", 8).ticks] == [
        "0",
        "250",
        "500",
        "750",
        "1k",
        "1.25k",
        "1.5k",
        "1.75k",
        "2k",
    ]
    assert [label for _, label in x_axis(1e6, 1.002e6, "", 2).ticks] == ["1M", "1.001M", "1.002M"]
    assert [label for _, label in x_axis(0, 120, "time", 4).ticks] == [
        "0 s",
        "30 s",
        "1:00",
        "1:30",
        "2:00",
    ]
    assert [label for _, label in x_axis(0, 1, "", 8).ticks] == ["0", "1"]


def test_great_numbers_keep_their_digits_on_the_axis_as_beside_the_cursor() -> None:
    chart = LineChart(
        lines_of([series([100_000.0 + step for step in range(7)])]),
        title="loss",
        is_over=True,
        cursor=3.0,
    )

    assert "loss  100003" in draw(chart, 60, 12).text
    assert [label for _, label in y_axis(99_990, 100_020, "", 4).ticks] == [
        "99990",
        "100000",
        "100010",
        "100020",
    ]
    assert [label for _, label in y_axis(1e9, 2e9, "", 4).ticks] == [
        "1e9",
        "1.25e9",
        "1.5e9",
        "1.75e9",
        "2e9",
    ]


@pytest.mark.parametrize("range_", [(0.0, 150.0), (0.4, 4.2), (17.0, 31.0), (99.0, 1010.0)])
@pytest.mark.parametrize("unit", ["", "time"])
def test_an_x_axis_has_two_ticks_however_little_room_there_is(
    range_: tuple[float, float], unit: str
) -> None:
    assert len(x_axis(*range_, unit, 2).ticks) >= 2


def test_a_logarithmic_axis_of_near_values_is_filled_and_has_ticks() -> None:
    axis = y_axis(0.12, 0.19, "", 2, is_log=True)

    assert [label for _, label in axis.ticks] == ["0.1", "0.15", "0.2"]
    assert axis.share(0.15) == pytest.approx(axis.ticks[1][0])


def test_the_axis_of_a_run_that_is_over_begins_where_it_began_before() -> None:
    lines = lines_of([series(DECAY)])
    lines = (replace(lines[0], xs=lines[0].xs + 1),)
    going, over = (
        draw(LineChart(lines, is_over=is_over, x_name="step"), 60, 12).text
        for is_over in (False, True)
    )

    assert [text.splitlines()[-1].split()[:2] for text in (going, over)] == [
        ["step", "0"],
        ["step", "0"],
    ]


@pytest.mark.parametrize(
    "name", ["step of Adam", "step of the optimizer", "busy programs beside it", "步数" * 9]
)
@pytest.mark.parametrize("width", [37, 58])
def test_a_long_name_of_x_hides_none_of_the_first_two_ticks(name: str, width: int) -> None:
    chart = LineChart(
        lines_of([series(1.0 / step for step in range(1, 152))]), x_name=name, is_over=True
    )
    below = draw(chart, width, 7).text.splitlines()[-1]

    assert below.split()[:2] == ["0", "50"]
    assert len(cell_codes(below)) == width and name.startswith(
        below.split("  ")[-1].strip().removesuffix("…")
    )


def test_a_long_name_of_x_is_whole_in_a_row_of_its_own_where_the_chart_is_high() -> None:
    name = "bits of the mantissa that factors keep"
    chart = LineChart(lines_of([series(range(24))]), x_name=name, is_over=True)
    high, low = (draw(chart, 56, height).text.splitlines()[-2:] for height in (14, 13))

    assert [line.split() for line in high] == [["0", "10", "20"], name.split()]
    assert low[-1].endswith("bits of the mantissa …")


def test_the_axis_stays_where_it_was_planned_to_end_unless_the_run_ended_before() -> None:
    whole, cut = (lines_of([series(range(steps))]) for steps in (400, 120))

    assert [
        x_range(LineChart(whole, x_end=400.0, is_over=is_over)) for is_over in (False, True)
    ] == [(0.0, 400.0)] * 2
    assert [
        x_range(LineChart(cut, x_end=400.0, is_over=is_over))[1] for is_over in (False, True)
    ] == [400.0, 119.0]


def test_few_points_fill_the_chart_of_a_run_that_goes_on() -> None:
    """As where two numbers of workers out of three have been tried."""
    tried = Series("epoch_ms")
    for workers in (0, 2):
        tried.add(workers, workers * SECOND, 5.0)

    assert x_range(LineChart(lines_of([tried]))) == (0.0, 4.0)


def test_the_label_of_the_cursor_takes_the_place_of_a_tick_but_not_a_part_of_it() -> None:
    lines = lines_of([series(range(1001))])
    places = [
        draw(LineChart(lines, is_over=True, x_name="step", cursor=float(at)), 60, 12).text
        for at in range(0, 1001, 25)
    ]

    ticks = {"step", "0", "250", "500", "750", "1k"}
    for at, text in zip(range(0, 1001, 25), places, strict=True):
        assert set(text.splitlines()[-1].split()) <= ticks | {str(at)}, text


def test_only_nan_is_said_and_marked() -> None:
    text = draw(LineChart(lines_of([series([math.nan] * 5)]), title="loss"), 60, 12).text

    assert "NaN ×5 from 0" in text
    assert text.splitlines()[-2].count("×") == 5


def test_a_flood_of_nan_is_marked_to_its_end() -> None:
    flooded = series([1.0] * 5000 + [math.nan] * 5000)

    axis = draw(LineChart(lines_of([flooded]), is_over=True), 87, 12).text.splitlines()[-2]

    assert axis.count("×") == 40


def test_no_points_yet_is_said() -> None:
    picture = draw(
        LineChart((), title="GPU memory", empty="no NVIDIA driver (libnvidia-ml.so.1 not found)"),
        60,
        12,
    )

    assert "no NVIDIA driver (libnvidia-ml.so.1 not found)" in picture.text
    assert "GPU memory" in picture.text


def test_a_logarithm_says_what_it_cannot_show() -> None:
    lines = lines_of([series([1.0, -1.0, 0.0, 100.0])])

    assert "log, 2 not above 0" in draw(LineChart(lines, is_log=True), 60, 12).text
    assert (
        "linear: nothing above 0"
        in draw(LineChart(lines_of([series([-1.0, 0.0])]), is_log=True), 60, 12).text
    )


def test_what_shares_its_place_with_a_zero_is_drawn_on_the_logarithm_that_is_said() -> None:
    (line,) = lines_of([series([1.0, 10.0, 100.0])])
    mixed = replace(line, lows=np.array([1.0, 0.0, 100.0]))  # somewhere near 10 there was a 0

    text = draw(LineChart((mixed,), is_log=True), 60, 12).text

    assert "log, 1 not above 0" in text
    assert [tick for tick in ("100┤", " 10┤", " 1┤") if tick not in text] == []


def test_a_tiny_chart_is_numbers() -> None:
    assert (
        draw(LineChart(lines_of([series([2.0, 0.5, 1.0])]), title="loss"), 19, 3).text
        == "loss\n1\n0.5..2"
    )


def test_a_guide_near_the_data_comes_into_view_and_a_far_one_does_not() -> None:
    lines = lines_of([series([50_000.0, 60_000.0])])

    text = draw(
        LineChart(lines, guides=(Guide(65504.0, "float16 max"), Guide(3.4e38, "float32 max"))),
        60,
        12,
    ).text
    assert ("float16 max" in text, "float32 max" in text) == (False, False)

    text = draw(
        LineChart(lines_of([series([0.0, 60_000.0])]), guides=(Guide(65504.0, "float16 max"),)),
        60,
        12,
    ).text
    assert "float16 max" in text


def test_points_are_marked_where_they_are_few_of_all_repeats_together() -> None:
    """As the memory of six repeats in a row, each of which has few points: their letters hid the line."""

    def letters(firsts: list[int], count: int = 6) -> int:
        repeats = [Series("reserved") for _ in firsts]
        for first, one in zip(firsts, repeats, strict=True):
            for second in range(first, first + count):
                one.add(second, second * SECOND, 5.0 + second % 2)
        chart = LineChart(
            lines_of(
                [*repeats, series([1.0] * 60)], names=["held"] * len(firsts) + ["x"], is_timed=True
            )
        )
        return sum(
            row.count("A")
            for row in draw(replace(chart, is_timed=True), 80, 12, BRAILLE).text.splitlines()[1:]
        )

    assert letters([0] * 6) == letters([0]) == 6
    assert len(range(0, 60, 10)) <= letters([*range(0, 60, 10)]) <= 8


def test_a_gap_in_time_is_not_bridged() -> None:
    gapped = Series("rss_bytes")
    for second in [*range(20), *range(80, 100)]:
        gapped.add(second, second * SECOND, 5.0)

    by_time = draw(LineChart(lines_of([gapped], is_timed=True), is_timed=True), 80, 12, ASCII).text
    by_step = draw(LineChart(lines_of([gapped])), 80, 12, ASCII).text

    row_by_time, row_by_step = (
        max(text.splitlines()[1:-2], key=lambda row: row.count("-")) for text in (by_time, by_step)
    )
    assert row_by_time.count("-") < 40 < row_by_step.count("-")


def test_a_line_is_broken_where_it_was_no_number() -> None:
    lines = lines_of([series([1.0, 1.0, math.nan, 1.0, 1.0])])

    assert lines[0].breaks.tolist() == [False, True, False]


def test_steps_that_begin_again_are_drawn_in_order() -> None:
    twice = Series("loss")
    for step, value in [(0, 1.0), (1, 2.0), (0, 3.0), (1, 4.0)]:
        twice.add(step, step, value)

    assert lines_of([twice])[0].xs.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_values_at_the_cursor() -> None:
    lines = lines_of([series([1.0, math.nan, 3.0], "a"), series([5.0], "b")])

    assert [one.low for one in values_at(lines, 2.0)] == [3.0, 5.0]
    assert math.isnan(values_at(lines, 1.0)[0].low)
    assert values_at(lines, -1.0) == []


def test_a_cursor_in_a_gap_reads_nothing_and_says_why() -> None:
    memory = Series("rss_bytes")
    for second in [*range(10), *range(60, 70)]:
        memory.add(second, second * SECOND, 2048.0)
    untold = Series("rss_bytes")
    for second in (0, 1, 20, 21):
        untold.add(second, second * SECOND, 4096.0)
        if second == 1:
            untold.leave_gap(3 * SECOND)
    lines = lines_of([memory, untold], ["left out", "told"], is_timed=True)

    def legend(cursor: float) -> str:
        chart = LineChart(
            lines,
            unit="bytes",
            is_timed=True,
            is_over=True,
            cursor=cursor,
            gap_reason="nothing was at work",
        )
        return draw(chart, 90, 12).text.splitlines()[0]

    assert legend(2.0).split() == ["A", "left", "out", "2", "KiB", "B", "told", "4", "KiB"]
    assert legend(5.0).split("  ")[-1] == "B told n/a: nothing was at work"
    assert legend(10.5).startswith("A left out 2 KiB")  # the next point may still come
    assert legend(30.0).startswith("A left out n/a")
    assert legend(100.0).split() == ["A", "left", "out", "n/a", "B", "told", "n/a"]


def test_a_cursor_among_points_that_are_no_numbers_reads_the_last_of_them() -> None:
    broken = lines_of([series([1.0, 2.0, math.nan, math.nan, 3.0])], is_timed=True)

    assert [math.isnan(values_at(broken, x)[0].low) for x in (1.5, 2.5, 3.9, 4.0)] == [
        False,
        True,
        True,
        False,
    ]
    for second in (60, 61):
        one = lines_of(
            [series([1.0, math.nan, 2.0, 3.0])], is_timed=True
        )  # which came before what counts there
        assert values_at(one, second) == []


def test_a_value_has_more_digits_where_the_cursor_is_and_there_is_room() -> None:
    lines = lines_of([series([0.123456789, 0.123456789])])
    charts = [
        draw(LineChart(lines, title="loss", is_over=True, cursor=cursor), 60, 12).text
        for cursor in (None, 1.0)
    ]

    assert ["0.1235" in chart for chart in charts] == [True, False]
    assert "0.123457" in charts[1]


def test_a_bucket_of_many_points_has_a_range_at_the_cursor() -> None:
    many = series([float(step % 10) for step in range(10_000)])

    (reading,) = values_at(lines_of([many]), 5000.0)

    assert (reading.low, reading.high) != (reading.high, reading.low)
    assert 0 <= reading.low < reading.high <= 9


def test_the_next_bad_point_comes_round_again() -> None:
    lines = lines_of([series(BROKEN, "a"), series(DECAY, "b")])

    assert [next_bad(lines, after) for after in (-1, 3, 20, 21)] == [3, 20, 21, 3]
    assert next_bad(lines_of([series(DECAY)]), 0) is None


def test_the_cursor_always_reaches_another_point() -> None:
    lines = lines_of([series(DECAY)])

    assert next_point(lines, 5.0, 5.3) == 6.0
    assert next_point(lines, 5.0, 1.9) == 2.0
    assert next_point(lines, 39.0, 45.0) is None
    assert next_point(lines, None, 7.4) == 7.0


def test_smoothing_does_not_lag_behind_a_line_that_falls() -> None:
    (line,) = lines_of([series([200.0 - step for step in range(200)])])

    assert smooth(line).highs[50:150] == pytest.approx(line.highs[50:150], abs=0.2)


def test_a_greater_weight_smooths_more() -> None:
    (line,) = lines_of([series([float(step % 20) for step in range(400)])])
    spans = [float(np.ptp(smooth(line, weight).highs[100:300])) for weight in (0.9, 0.98)]

    assert spans[1] < spans[0] / 2 < 5


def test_where_lines_lie_on_each_other_the_colour_of_each_is_seen() -> None:
    lines = lines_of([series([1.0] * 90, "a"), series([1.0] * 90, "b")])
    rows = draw(LineChart(lines), 80, 10).rows
    counts = {
        arm: sum(len(text) for row in rows for text, role in row if role == arm)
        for arm in ("arm0", "arm1")
    }

    assert min(counts.values()) > 25


def test_smoothing_starts_at_the_first_value_and_passes_over_what_is_no_number() -> None:
    smoothed = smooth(lines_of([series([4.0, math.nan, 4.0, math.inf, 4.0])])[0])

    assert smoothed.highs.tolist() == pytest.approx([4.0, 4.0, 4.0])


def test_every_line_of_eight_gpus_is_named_where_a_chart_fills_a_small_screen() -> None:
    words = ("device", "run", "reserved", "allocated")
    lines = lines_of(
        [series([1e9 + gpu], f"GPU {gpu} {word}") for gpu in range(8) for word in words]
    )
    text = draw(LineChart(lines, title="memory", unit="bytes"), 78, 21).text

    assert [
        f"{gpu} {word}" for gpu in range(8) for word in words if f"{gpu} {word} " not in text
    ] == []
    assert "+" not in text and "a GPU 6 reserved" in text


def test_repeats_of_an_arm_share_its_letter() -> None:
    lines = lines_of([series(DECAY, "fp32"), series(BROKEN, "amp"), series(DECAY, "fp32")])

    assert [line.style for line in lines] == [0, 1, 0]
    assert draw(LineChart(lines), 80, 12).text.splitlines()[0].split()[:2] == ["A", "fp32"]


def test_arms_can_be_told_apart_without_colour() -> None:
    dense = [
        series([1.0 + 0.1 * math.sin(step / 9) for step in range(400)], "up"),
        series([0.2] * 400, "low"),
    ]

    plot = "\n".join(draw(LineChart(lines_of(dense)), 80, 16).text.splitlines()[1:])

    assert plot.count("A") >= 2
    assert plot.count("B") >= 2


def test_an_arms_name_cannot_steer_the_terminal() -> None:
    text = draw(LineChart(lines_of([series(DECAY, "a\x1b[31m\u202e[/b]")])), 60, 12).text

    assert ("\x1b" in text, "\u202e" in text, "[/b]" in text) == (False, False, True)


def test_a_column_of_the_screen_tells_its_x() -> None:
    chart = LineChart(lines_of([series(DECAY)]), is_over=True)

    assert x_at(chart, 60, 12, 0) is None
    assert [round(x_at(chart, 60, 12, column) or 0) for column in (7, 59)] == [0, 39]


def test_only_plain_ascii_is_drawn_where_nothing_else_is_shown() -> None:
    chart = LineChart(
        lines_of([series(BROKEN, "µ模型"), series(DECAY, "b")]),
        title="α",
        unit="µs",
        guides=(Guide(1.0, "≤"),),
    )

    assert draw(chart, 70, 14, ASCII).text.isascii()
    assert not draw(chart, 70, 14, BLOCK).text.isascii()
    assert not draw(chart, 70, 14, BRAILLE).text.isascii()


def test_lines_of_two_gpus_are_told_apart_however_short_their_names_must_be() -> None:
    words = [
        f"GPU {gpu} {word}" for gpu in (1, 2) for word in ("device", "run", "reserved", "allocated")
    ]
    lines = [
        replace(line, label=word)
        for line, word in zip(lines_of([series([2.0**30])] * 8), words, strict=True)
    ]
    looks = [replace(line, style=look) for look, line in enumerate(lines)]

    text = draw(LineChart(tuple(looks), title="memory", unit="bytes"), 58, 12, BRAILLE).text

    assert [
        word in text
        for word in ("1 device", "1 run", "1 reser…", "1 alloc…", "2 device", "2 alloc…")
    ] == [True] * 6


def test_in_a_narrow_legend_numbers_have_no_unit_and_ranges_keep_theirs() -> None:
    lines = lines_of([series([71.123, 72.5])] * 5, [f"arm {letter * 12}" for letter in "abcde"])
    wide = replace(lines[0], lows=lines[0].lows * 2.0**30, highs=lines[0].highs * 2.0**31)

    assert draw(LineChart(lines, title="loss"), 38, 6).text.startswith(
        "loss  A aaa… 72.5  B bbb… 72.5"
    )
    ranges = LineChart(
        tuple(replace(wide, style=look) for look in range(5)), unit="bytes", cursor=1.0
    )
    assert draw(ranges, 38, 6).text.startswith("A aaaaaaaaaaaa 72.5 GiB..145 GiB")


@pytest.mark.parametrize(
    ("width", "height", "legend"),
    [
        (
            58,
            12,
            [
                "A device 71.1 GiB   B run 61.44 GiB  C reserved 58.9 GiB",
                "D allocated 43.21 GiB  E processes 1 GiB",
            ],
        ),
        (
            58,
            7,
            [
                "A device 71.1 GiB   B run 61.44 GiB  C reserved 58.9 GiB",
                "D allocated 43.21 GiB  E processes 1 GiB",
            ],
        ),
        (38, 6, ["GiB  A dev… 71.1  B run 61.4", "C res… 58.9  D all… 43.2  E pro… 1"]),
        (38, 5, ["A device 71.1 GiB  B run 61.4 GiB   +3"]),
    ],
)
def test_each_line_of_memory_is_named_with_its_value_on_a_small_screen(
    width: int, height: int, legend: list[str]
) -> None:
    """At 120x40 and 80x24 these are the sizes of its pane, with few others beside it and with many."""
    known = {"device": 71.1, "run": 61.44, "reserved": 58.9, "allocated": 43.21, "processes": 1.0}
    lines = lines_of([series([gib * 2**30]) for gib in known.values()], list(known))

    text = draw(LineChart(lines, unit="bytes"), width, height, BRAILLE).text

    assert [line.rstrip() for line in text.splitlines()[: len(legend)]] == legend


def test_lines_of_few_points_on_each_other_are_named_by_turns() -> None:
    lines = lines_of([series([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])] * 4, ["one", "two", "three", "four"])
    plot = draw(LineChart(lines), 80, 14).text.split("\n", 1)[1]

    assert [plot.count(letter) for letter in "ABCD"] == [2, 2, 1, 1]


def test_a_constant_is_drawn_in_the_middle() -> None:
    lines = lines_of([series([0.1235] * 50)])
    rows = draw(LineChart(lines, is_over=True), 60, 13).text.splitlines()
    (drawn,) = [
        at
        for at, row in enumerate(rows)
        if "⠒⠒⠒" in row or "⠤⠤⠤" in row or "⠉⠉⠉" in row or "⣀⣀⣀" in row
    ]

    assert abs(drawn - 10 / 2) <= 1


def test_a_long_name_keeps_its_first_word_and_its_end() -> None:
    lines = lines_of([series([1.0, 2.0])] * 2, ["a very long arm name that goes on to 7", "b"])

    assert "a very long…goes on to 7" in draw(LineChart(lines), 60, 20).text


def test_a_curve_that_nearly_touches_0_is_on_a_linear_axis_and_one_that_falls_on_a_logarithmic_one() -> (
    None
):
    waves = series([math.sin(step / 25) + 1.000001 for step in range(1000)])
    falls = series([math.exp(-step / 100) for step in range(1000)])

    assert not wants_log_y([waves], "")
    assert wants_log_y([falls], "")
    assert not wants_log_y([falls, series([-1.0, 1.0])], "")
    assert wants_log_y([series([1.0, 10.0, 100.0])], "")


def test_ticks_of_milliseconds_are_in_the_unit_that_their_size_asks_for() -> None:
    assert labels([0, 500, 1000, 1500], 500, "ms") == ["0", "0.5 s", "1 s", "1.5 s"]
    assert labels([0, 0.001, 0.002], 0.001, "ms") == ["0", "1 µs", "2 µs"]
    assert labels([0, 20], 20, "ms") == ["0", "20 ms"]


@pytest.mark.parametrize("symbols", [BRAILLE, ASCII])
def test_lines_that_share_their_places_are_drawn_together_as_each_by_itself(
    symbols: Symbols,
) -> None:
    lines = lines_of(
        [series([math.sin(step / 9 + n) for step in range(150)], str(n)) for n in range(5)]
    )
    x, y = x_axis(20.0, 90.0, "", 5), y_axis(-1.0, 1.0, "", 5)

    together = raster(lines, x, y, 40, 12, symbols)

    assert all(one.xs is lines[0].xs for one in lines)
    assert together.any()
    assert all(
        (alone == raster([one], x, y, 40, 12, symbols)[0]).all()
        for one, alone in zip(lines, together, strict=True)
    )
